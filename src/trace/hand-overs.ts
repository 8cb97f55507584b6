/**
 * Where one host thread goes on because another has done its part: a thread that was silent while
 * the other made calls, which then fell silent itself, as the thread of a training loop and the one
 * of its backward pass take turns. No trace records it; every such edge is inferred.
 */
import { CALL_KIND } from './call-kind.ts';
import type { EdgeList } from './edge-list.ts';
import { EDGE } from './edge-list.ts';
import type { Lanes } from './lanes.ts';
import { firstNotBefore } from './lanes.ts';
import type { Timeline } from './timeline.ts';

/** Longer than a thread that is busy launching pauses between two calls. */
const SILENCE_NS = 50_000;

/** Adds edges from the end of a call to the start of another thread's call. */
export function addHandOvers(timeline: Timeline, lanes: Lanes, edges: EdgeList): void {
  const threads = [...lanes.callFrom.keys()].filter((thread) => isActor(timeline, lanes, thread));
  if (threads.length < 2) return;
  for (const thread of threads) {
    const from = lanes.callFrom[thread] ?? 0;
    const to = lanes.callTo[thread] ?? 0;
    let silentSinceNs = -Infinity;
    for (let call = from; call < to; call += 1) {
      const startNs = timeline.calls.startNs[call] ?? 0;
      if (startNs - silentSinceNs >= SILENCE_NS) {
        const source = handingOver(timeline, lanes, threads, thread, silentSinceNs, startNs);
        if (source >= 0) edges.add(call, source, EDGE.inferred);
      }
      silentSinceNs = startNs + (timeline.calls.durationNs[call] ?? 0);
    }
  }
}

/** A thread that only asks whether events are done hands nothing over. */
function isActor(timeline: Timeline, lanes: Lanes, thread: number): boolean {
  const to = lanes.callTo[thread] ?? 0;
  for (let call = lanes.callFrom[thread] ?? 0; call < to; call += 1) {
    const kind = timeline.calls.kind[call];
    if (kind !== CALL_KIND.query && kind !== CALL_KIND.other) return true;
  }
  return false;
}

/**
 * Of the other threads of the process, the call that ended last in the silence, if its thread fell
 * silent with it; -1 if there is none.
 */
function handingOver(
  timeline: Timeline,
  lanes: Lanes,
  threads: readonly number[],
  silent: number,
  sinceNs: number,
  untilNs: number,
): number {
  const { calls } = timeline;
  let latest = -1;
  let latestEndNs = sinceNs;
  for (const other of threads) {
    if (other === silent) continue;
    if (timeline.threads[other]?.pid !== timeline.threads[silent]?.pid) continue;
    const from = lanes.callFrom[other] ?? 0;
    const to = lanes.callTo[other] ?? 0;
    const next = firstNotBefore(calls.startNs, from, to, untilNs);
    const last = next - 1;
    if (last < from) continue;
    const endNs = (calls.startNs[last] ?? 0) + (calls.durationNs[last] ?? 0);
    if (endNs > untilNs || endNs <= latestEndNs) continue;
    const resumesNs = next < to ? (calls.startNs[next] ?? 0) : Infinity;
    if (resumesNs - endNs < SILENCE_NS) continue;
    latest = last;
    latestEndNs = endNs;
  }
  return latest;
}
