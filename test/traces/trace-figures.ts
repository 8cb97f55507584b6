/** The counts of a trace that tests compare, and how they follow from a timeline. */
import { CALL_KIND } from '#trace/call-kind';
import { hostWaits, WORK_KIND } from '#trace/timeline';
import type { Timeline, WorkKind } from '#trace/timeline';

export interface Copies {
  readonly count: number;
  readonly bytes: number;
}

export interface TraceCounts {
  readonly kernels: number;
  readonly kernelsAtMost10us: number;
  readonly memsets: number;
  readonly graphLaunches: number;
  readonly submissions: number;
  readonly hostWaits: number;
  readonly queries: number;
  readonly htod: Copies;
  readonly dtoh: Copies;
  readonly dtod: Copies;
}

export function countsOf(timeline: Timeline): TraceCounts {
  const { calls, work } = timeline;
  const ofKind = (kind: WorkKind): number[] =>
    [...work.kind.keys()].filter((row) => work.kind[row] === kind);
  const copies = (kind: WorkKind): Copies => {
    const rows = ofKind(kind);
    return { count: rows.length, bytes: rows.reduce((sum, row) => sum + work.bytes[row]!, 0) };
  };
  const kernels = ofKind(WORK_KIND.kernel);
  const callsOf = (kind: number): number => calls.kind.filter((own) => own === kind).length;
  return {
    kernels: kernels.length,
    kernelsAtMost10us: kernels.filter((row) => work.durationNs[row]! <= 10_000).length,
    memsets: ofKind(WORK_KIND.memset).length,
    graphLaunches: callsOf(CALL_KIND.graphLaunch),
    submissions: timeline.submissions,
    hostWaits: hostWaits(timeline).reduce((sum, flag) => sum + flag, 0),
    queries: callsOf(CALL_KIND.query),
    htod: copies(WORK_KIND.htod),
    dtoh: copies(WORK_KIND.dtoh),
    dtod: copies(WORK_KIND.dtod),
  };
}
