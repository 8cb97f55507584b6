/** What of a timeline pays the terms: its submissions, host waits and copies. */
import type { Lanes } from '#trace/lanes';
import { forEachCall, forEachWork } from '#trace/lanes';
import type { Timeline } from '#trace/timeline';
import { WORK_KIND } from '#trace/timeline';
import type { Payers } from './additive.ts';

/** Of the lanes alone. `waits` are the flags of `hostWaits`. */
export function payersOf(timeline: Timeline, lanes: Lanes, waits: Uint8Array): Payers {
  const { kind } = timeline.work;
  const rows: Record<'htod' | 'dtoh' | 'peer', number[]> = { htod: [], dtoh: [], peer: [] };
  forEachWork(lanes, (row) => {
    if (kind[row] === WORK_KIND.htod) rows.htod.push(row);
    else if (kind[row] === WORK_KIND.dtoh) rows.dtoh.push(row);
    else if (kind[row] === WORK_KIND.ptop) rows.peer.push(row);
  });
  return {
    submissions: submissionsOf(timeline, lanes),
    hostWaits: countWaits(lanes, waits),
    htod: Uint32Array.from(rows.htod),
    dtoh: Uint32Array.from(rows.dtoh),
    peer: Uint32Array.from(rows.peer),
  };
}

function submissionsOf(timeline: Timeline, lanes: Lanes): number {
  if (lanes.isWhole) return timeline.submissions;
  const seen = new Uint8Array(timeline.submissions);
  let count = 0;
  forEachWork(lanes, (row) => {
    const submission = timeline.work.submission[row] ?? 0;
    if (seen[submission] === 0) {
      seen[submission] = 1;
      count += 1;
    }
  });
  return count;
}

function countWaits(lanes: Lanes, waits: Uint8Array): number {
  let count = 0;
  forEachCall(lanes, (call) => {
    count += waits[call] ?? 0;
  });
  return count;
}
