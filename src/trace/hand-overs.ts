/**
 * Where one host thread goes on because another has done its part: a thread that was silent while
 * the other made calls, which then fell silent itself, as the thread of a training loop and the one
 * of its backward pass take turns. No trace records it; every such edge is inferred.
 */
import { CALL_KIND } from './call-kind.ts';
import type { EdgeList } from './edge-list.ts';
import { EDGE } from './edge-list.ts';
import type { Lanes } from './lanes.ts';
import type { Timeline } from './timeline.ts';

/** Longer than a thread that is busy launching pauses between two calls. */
const SILENCE_NS = 50_000;

/** A call behind which its thread falls silent. */
interface Leaving {
  readonly call: number;
  readonly startNs: number;
  readonly endNs: number;
  readonly resumesNs: number;
}

/** A call with which a thread goes on. */
interface Return {
  readonly call: number;
  readonly startNs: number;
  readonly silentSinceNs: number;
}

/** The silences of the threads of a process. */
interface Silences {
  readonly leavings: Leaving[];
  readonly returns: Return[];
}

/**
 * Adds edges from the end of a call to the start of another thread's call. Takes time by the calls and
 * the logarithm of how many silences there are, whatever threads they are of.
 */
export function addHandOvers(timeline: Timeline, lanes: Lanes, edges: EdgeList): void {
  const threads = [...lanes.callFrom.keys()].filter((thread) => isActor(timeline, lanes, thread));
  if (threads.length < 2) return;
  const byProcess = new Map<string | undefined, Silences>();
  for (const thread of threads) {
    const pid = timeline.threads[thread]?.pid;
    const silences = byProcess.get(pid) ?? { leavings: [], returns: [] };
    byProcess.set(pid, silences);
    addSilences(timeline, lanes, thread, silences);
  }
  for (const silences of byProcess.values()) addHandOversOf(silences, edges);
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

function addSilences(
  { calls }: Timeline,
  lanes: Lanes,
  thread: number,
  { leavings, returns }: Silences,
): void {
  const to = lanes.callTo[thread] ?? 0;
  let silentSinceNs = -Infinity;
  for (let call = lanes.callFrom[thread] ?? 0; call < to; call += 1) {
    const startNs = calls.startNs[call] ?? 0;
    const endNs = startNs + (calls.durationNs[call] ?? 0);
    const resumesNs = call + 1 < to ? (calls.startNs[call + 1] ?? 0) : Infinity;
    if (startNs - silentSinceNs >= SILENCE_NS) returns.push({ call, startNs, silentSinceNs });
    if (resumesNs - endNs >= SILENCE_NS) leavings.push({ call, startNs, endNs, resumesNs });
    silentSinceNs = endNs;
  }
}

/**
 * To each return, of the calls that ended in its silence and behind which their threads are silent
 * still, the one that ended last; of several the one of the first thread. A thread's own call before
 * its silence is none of them: it ended when the silence began.
 */
function addHandOversOf({ leavings, returns }: Silences, edges: EdgeList): void {
  // Calls are numbered thread by thread.
  leavings.sort((a, b) => a.endNs - b.endNs || b.call - a.call);
  returns.sort((a, b) => a.startNs - b.startNs || a.call - b.call);
  // By their ends, so that the last is the latest; one whose thread has gone on is of no use any more.
  const silent: Leaving[] = [];
  let next = 0;
  let atNs = -Infinity;
  let atOnce: Leaving | undefined;
  for (const { call, startNs, silentSinceNs } of returns) {
    if (startNs !== atNs) {
      atNs = startNs;
      for (let leaving = leavings[next]; leaving !== undefined && leaving.endNs < atNs; ) {
        silent.push(leaving);
        next += 1;
        leaving = leavings[next];
      }
      atOnce = endingAt(leavings, next, atNs);
    }
    while ((silent.at(-1)?.resumesNs ?? Infinity) < atNs) silent.pop();
    const latest = atOnce ?? silent.at(-1);
    if (latest !== undefined && latest.endNs > silentSinceNs) {
      edges.add(call, latest.call, EDGE.inferred);
    }
  }
}

/** Of those from `from` on that end just then, having begun before, the one of the first thread. */
function endingAt(leavings: readonly Leaving[], from: number, atNs: number): Leaving | undefined {
  let found: Leaving | undefined;
  for (let at = from; leavings[at]?.endNs === atNs; at += 1) {
    const leaving = leavings[at];
    if (leaving !== undefined && leaving.startNs < atNs) found = leaving;
  }
  return found;
}
