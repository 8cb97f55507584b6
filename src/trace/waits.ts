/** Calls that end only when work has ended. */
import type { Edges } from './edge-list.ts';
import type { Timeline } from './timeline.ts';

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
export function overhangNs({ calls, work }: Timeline, call: number, row: number): number {
  const callEndNs = (calls.startNs[call] ?? 0) + (calls.durationNs[call] ?? 0);
  const workEndNs = (work.startNs[row] ?? 0) + (work.durationNs[row] ?? 0);
  return workEndNs > callEndNs ? workEndNs - callEndNs : 0;
}

/** First wait whose call is at least `call`. */
export function firstWait(waits: Waits, call: number): number {
  let low = 0;
  let high = waits.count;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((waits.call[middle] ?? 0) < call) low = middle + 1;
    else high = middle;
  }
  return low;
}
