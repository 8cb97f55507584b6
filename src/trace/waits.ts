/** Calls that end only when work has ended. */
import { firstAtLeast } from './column.ts';
import type { Edges } from './edge-list.ts';
import type { Timeline } from './timeline.ts';
import { endOfCall, endOfWork } from './timeline.ts';

/** Wait w has the edges `from[w]` up to, not including, `from[w + 1]`; their sources are rows of work. */
export interface Waits {
  readonly count: number;
  /** The calls, ascending. */
  readonly call: Uint32Array;
  readonly from: Uint32Array;
  readonly edges: Edges;
}

/** `edges` lead from rows of work to calls. */
export function groupWaits(edges: Edges): Waits {
  const call: number[] = [];
  const from: number[] = [];
  for (let edge = 0; edge < edges.count; edge += 1) {
    const target = edges.target[edge] ?? 0;
    if (edge > 0 && target === edges.target[edge - 1]) continue;
    call.push(target);
    from.push(edge);
  }
  from.push(edges.count);
  return {
    count: call.length,
    call: Uint32Array.from(call),
    from: Uint32Array.from(from),
    edges,
  };
}

/**
 * By how much the record shows a call to end before the work it waits for, ns; 0 where it does not.
 * The call then ends that much before the work in any replay.
 */
export function overhangNs(timeline: Timeline, call: number, row: number): number {
  return Math.max(0, endOfWork(timeline, row) - endOfCall(timeline, call));
}

/** First wait whose call is at least `call`. */
export function firstWait(waits: Waits, call: number): number {
  return firstAtLeast(waits.call, 0, waits.count, call);
}
