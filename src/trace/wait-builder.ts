/** What the rules that find waits share. */
import type { CallStreams } from './call-streams.ts';
import type { EdgeList } from './edge-list.ts';
import { EDGE } from './edge-list.ts';
import type { Lanes } from './lanes.ts';
import type { Timeline } from './timeline.ts';
import { endOfCall, endOfWork } from './timeline.ts';

/** How far the clocks of host and GPU are taken to differ in one trace. */
const SKEW_NS = 10_000;
/** Copies from pageable memory up to this size return before they are done; others are held up. */
const STAGED_BYTES = 65_536;

export interface WaitCounts {
  /** Edges that the recorded times contradict. */
  contradicted: number;
  /** Stream waits for which neither record nor rule gives an edge. */
  unknownStreamWaits: number;
}

export interface WaitBuilder {
  readonly timeline: Timeline;
  readonly lanes: Lanes;
  /** Of calls: target a call, source a row of work. */
  readonly waits: EdgeList;
  /** Of work: target and source are rows. */
  readonly work: EdgeList;
  readonly streams: CallStreams;
  readonly counts: WaitCounts;
}

/**
 * The call ends after the row. Where the record contradicts that, it counts, and the edge stays only
 * if a weaker one is still true (`overhangNs`): when the clocks may differ so much, or when the call
 * copies the row itself in more pieces than fit ahead. What was inferred and is contradicted was a
 * wrong guess, and counts for nothing.
 */
export function addWait(builder: WaitBuilder, call: number, row: number, flags: number): boolean {
  const { timeline, waits, counts } = builder;
  const { work } = timeline;
  const overhangNs = endOfWork(timeline, row) - endOfCall(timeline, call);
  if (overhangNs > 0) {
    if ((flags & EDGE.inferred) !== 0) return false;
    counts.contradicted += 1;
    if ((work.startNs[row] ?? 0) > endOfCall(timeline, call)) return false;
    const isHeldUp = work.call[row] === call && (work.bytes[row] ?? 0) > STAGED_BYTES;
    if (overhangNs > SKEW_NS && !isHeldUp) return false;
  }
  waits.add(call, row, flags | EDGE.sync);
  return true;
}
