/** What the record shows beyond the edges of a graph: its lags. */
import { CALL_KIND } from './call-kind.ts';
import type { DependencyGraph } from './dependency-graph.ts';
import { launchNs } from './dependency-graph.ts';
import { EDGE } from './edge-list.ts';
import { firstWait, overhangNs } from './waits.ts';

const CALL_KINDS = Object.keys(CALL_KIND).length;
/** What takes longer is not the call's own. */
const MOST_OWN_NS = 20_000;

export interface Lags {
  /** Edges with one of these `EDGE` bits are left out. */
  readonly skip: number;
  /** By row of work: its start after its latest source, ns. */
  readonly workNs: Float64Array;
  /** By wait: its end after the latest of its start and its sources, ns. */
  readonly tailNs: Float64Array;
  /** Sum over the starts of work. */
  readonly startsNs: number;
  /** What a wait costs that finds its work done, by `CallKind`, ns: part of a tail that is explained. */
  readonly ownCostNs: Float64Array;
  /** Sum over the ends of all calls in which the host waits, known sources or not, their own cost apart. */
  readonly waitEndsNs: number;
}

/** With the edges of these `EDGE` bits left out, those that close a circle always. */
export function lagsWithout(graph: DependencyGraph, bits: number): Lags {
  const skip = bits | EDGE.dropped;
  const { workNs, startsNs } = workLags(graph, skip);
  const tailNs = tails(graph, skip);
  const ownCostNs = ownCosts(graph, tailNs, skip);
  const waitEndsNs = sumOfWaitEnds(graph, tailNs, ownCostNs);
  return { skip, workNs, tailNs, startsNs, ownCostNs, waitEndsNs };
}

/** The same edges with no lags: work starts, and waits end, as soon as the edges let them. */
export function edgesAlone(graph: DependencyGraph, lags: Lags): Lags {
  const { waits, timeline } = graph;
  const tailNs = lags.tailNs.map((tail, wait) => {
    const kind = timeline.calls.kind[waits.call[wait] ?? 0] ?? 0;
    return Math.min(tail, lags.ownCostNs[kind] ?? 0);
  });
  return {
    ...lags,
    workNs: new Float64Array(lags.workNs.length),
    tailNs,
    startsNs: 0,
    waitEndsNs: 0,
  };
}

function workLags(
  graph: DependencyGraph,
  skip: number,
): { readonly workNs: Float64Array; readonly startsNs: number } {
  const { timeline, lanes, work: edges } = graph;
  const { startNs, durationNs } = timeline.work;
  const workNs = new Float64Array(timeline.work.count);
  let startsNs = 0;
  for (let stream = 0; stream < lanes.workFrom.length; stream += 1) {
    const from = lanes.workFrom[stream] ?? 0;
    const to = lanes.workTo[stream] ?? 0;
    let latestOnStream = lanes.startNs;
    for (let row = from; row < to; row += 1) {
      const atNs = startNs[row] ?? 0;
      // Where the one before still ran, the order of starts explains this one whole.
      let latestNs = latestOnStream > atNs ? atNs : latestOnStream;
      const offsetNs = launchNs(graph, row);
      if (offsetNs >= 0) {
        const call = timeline.work.call[row] ?? 0;
        latestNs = Math.max(latestNs, (timeline.calls.startNs[call] ?? 0) + offsetNs);
      }
      workNs[row] = atNs - latestNs;
      latestOnStream = atNs + (durationNs[row] ?? 0);
    }
  }
  for (let edge = 0; edge < edges.count; edge += 1) {
    const flags = edges.flags[edge] ?? 0;
    if ((flags & skip) !== 0) continue;
    const row = edges.target[edge] ?? 0;
    const source = edges.source[edge] ?? 0;
    const endNs = (startNs[source] ?? 0) + (durationNs[source] ?? 0);
    const lagNs = (flags & EDGE.fromStart) === 0 ? (startNs[row] ?? 0) - endNs : 0;
    workNs[row] = Math.min(workNs[row] ?? 0, lagNs);
  }
  for (let row = 0; row < workNs.length; row += 1) {
    // Rounding alone makes one negative.
    const lagNs = Math.max(0, workNs[row] ?? 0);
    workNs[row] = lagNs;
    startsNs += lagNs;
  }
  return { workNs, startsNs };
}

function tails(graph: DependencyGraph, skip: number): Float64Array {
  const { timeline, waits } = graph;
  const { startNs, durationNs } = timeline.calls;
  const tailNs = new Float64Array(waits.count);
  for (let wait = 0; wait < waits.count; wait += 1) {
    const call = waits.call[wait] ?? 0;
    const callNs = startNs[call] ?? 0;
    const latestNs = Math.max(callNs, releasedNs(graph, wait, skip));
    tailNs[wait] = Math.max(0, callNs + (durationNs[call] ?? 0) - latestNs);
  }
  return tailNs;
}

/** The median tail of waits whose work had ended before they began, at most 20 µs. */
function ownCosts(graph: DependencyGraph, tailNs: Float64Array, skip: number): Float64Array {
  const { calls } = graph.timeline;
  const { waits } = graph;
  const tails = Array.from({ length: CALL_KINDS }, (): number[] => []);
  for (let wait = 0; wait < waits.count; wait += 1) {
    const call = waits.call[wait] ?? 0;
    const endedNs = releasedNs(graph, wait, skip);
    if (endedNs === -Infinity || endedNs > (calls.startNs[call] ?? 0)) continue;
    tails[calls.kind[call] ?? 0]?.push(tailNs[wait] ?? 0);
  }
  return Float64Array.from(tails, (values) => {
    values.sort((a, b) => a - b);
    return Math.min(MOST_OWN_NS, values[(values.length - 1) >> 1] ?? 0);
  });
}

function sumOfWaitEnds(
  graph: DependencyGraph,
  tailNs: Float64Array,
  ownCostNs: Float64Array,
): number {
  const { timeline, lanes, waits, isWait } = graph;
  const { durationNs, kind } = timeline.calls;
  const beyond = (call: number, lastedNs: number): number =>
    Math.max(0, lastedNs - (ownCostNs[kind[call] ?? 0] ?? 0));
  let sumNs = 0;
  for (let thread = 0; thread < lanes.callFrom.length; thread += 1) {
    const to = lanes.callTo[thread] ?? 0;
    let wait = firstWait(waits, lanes.callFrom[thread] ?? 0);
    for (let call = lanes.callFrom[thread] ?? 0; call < to; call += 1) {
      if (waits.call[wait] === call) {
        sumNs += beyond(call, tailNs[wait] ?? 0);
        wait += 1;
      } else if (isWait[call] === 1) {
        sumNs += beyond(call, durationNs[call] ?? 0);
      }
    }
  }
  return sumNs;
}

/** Recorded end of the last work the wait waits for; -Infinity without such work. */
function releasedNs({ timeline, waits }: DependencyGraph, wait: number, skip: number): number {
  const { startNs, durationNs } = timeline.work;
  let latest = -Infinity;
  const to = waits.from[wait + 1] ?? 0;
  for (let edge = waits.from[wait] ?? 0; edge < to; edge += 1) {
    if (((waits.edges.flags[edge] ?? 0) & skip) !== 0) continue;
    const source = waits.edges.source[edge] ?? 0;
    const endNs = (startNs[source] ?? 0) + (durationNs[source] ?? 0);
    latest = Math.max(latest, endNs - overhangNs(timeline, waits.call[wait] ?? 0, source));
  }
  return latest;
}

/** Whether the wait has an edge that is not left out. */
export function hasSource({ waits }: DependencyGraph, wait: number, skip: number): boolean {
  const to = waits.from[wait + 1] ?? 0;
  for (let edge = waits.from[wait] ?? 0; edge < to; edge += 1) {
    if (((waits.edges.flags[edge] ?? 0) & skip) === 0) return true;
  }
  return false;
}
