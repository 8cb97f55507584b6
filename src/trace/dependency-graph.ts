/**
 * What in a timeline follows from what. Nodes are the start and the end of each host call and each
 * piece of GPU work; an edge says that its target is not before its source plus a weight. A node is
 * the latest of its edges plus its *lag*: what the record shows beyond them, which stays as it is.
 *
 * The edges everybody takes as given are not stored, since the columns of the timeline tell them:
 * - a call after the one before it on its thread, by the recorded gap; its end after its start;
 * - work after the row before it on its stream: end to start, or, where the two overlap in the record,
 *   start to start by the recorded offset;
 * - work after the start of the call that launched it, by `launchNs`;
 * - the end of work after its start, by its duration.
 * The others are in `work` (between pieces of work), `waits` (the end of a call after the end of
 * work) and `handOvers` (the start of a call after the end of another thread's call, by the gap).
 *
 * Every edge points forward in recorded time, and a circle among events of one time is cut, so there
 * is an order (`runs`) in which sources come before targets. No node is tied to its recorded time.
 */
import type { Edges } from './edge-list.ts';
import { EDGE, EdgeList } from './edge-list.ts';
import { addHandOvers } from './hand-overs.ts';
import type { Lanes } from './lanes.ts';
import { hasCall } from './lanes.ts';
import { launchLatencies } from './launch-latency.ts';
import type { Runs } from './schedule.ts';
import { schedule } from './schedule.ts';
import type { Timeline } from './timeline.ts';
import { hostWaits } from './timeline.ts';
import { addUnrecordedOrder } from './unrecorded-order.ts';
import { addWaits } from './wait-edges.ts';
import type { Waits } from './waits.ts';
import { groupWaits } from './waits.ts';
import { addWorkOrder } from './work-order.ts';

export interface DependencyGraph {
  readonly timeline: Timeline;
  readonly lanes: Lanes;
  readonly work: Edges;
  readonly waits: Waits;
  readonly handOvers: Edges;
  readonly runs: Runs;
  /** Whether the host waits in the call, a flag a call; see `hostWaits`. */
  readonly isWait: Uint8Array;
  /** From the start of a launch to its work on an idle stream, by `CallKind`, ns. */
  readonly latencyNs: Float64Array;
  /** Rows of work whose launch edge closed a circle and is left out; hardly ever any. */
  readonly cutLaunches: ReadonlySet<number>;
  readonly counts: {
    /** Edges that the recorded times contradict. */
    readonly violations: number;
    readonly inferred: number;
    readonly edges: number;
    /** Pieces of work whose launch is not in the lanes. */
    readonly unlaunched: number;
    readonly unknownStreamWaits: number;
  };
}

/** The graph of the lanes. Time and memory grow with calls and work, not with their square. */
export function dependencyGraph(timeline: Timeline, lanes: Lanes): DependencyGraph {
  const workList = new EdgeList();
  const waitList = new EdgeList();
  const handOverList = new EdgeList();
  const overlaps = addWorkOrder(timeline, lanes, workList);
  const isWait = hostWaits(timeline);
  const waited = addWaits(timeline, lanes, isWait, waitList, workList);
  addUnrecordedOrder(timeline, lanes, workList);
  addHandOvers(timeline, lanes, handOverList);
  const waits = groupWaits(waitList.finish());
  const work = workList.finish();
  const handOvers = handOverList.finish();
  const { runs, cut, cutLaunches } = schedule({ timeline, lanes, work, waits, handOvers });
  const launches = countLaunches(timeline, lanes);
  return {
    timeline,
    lanes,
    work,
    waits,
    handOvers,
    runs,
    isWait,
    latencyNs: launchLatencies(timeline, lanes),
    cutLaunches,
    counts: {
      violations: overlaps + waited.contradicted + cut + launches.early,
      inferred: inferredOf(work) + inferredOf(waits.edges) + inferredOf(handOvers),
      edges: launches.known + launches.inOrder + work.count + waits.edges.count + handOvers.count,
      unlaunched: launches.unknown,
      unknownStreamWaits: waited.unknownStreamWaits,
    },
  };
}

/**
 * Weight of the edge from a launch to its work, ns; -1 where there is no such edge. It is the latency
 * of such launches, or the recorded offset where that is less; where the stream was idle when the
 * call began, a call that took longer (to load a module, to build a graph) explains as much as it
 * lasted.
 */
export function launchNs(graph: DependencyGraph, row: number): number {
  const { timeline, lanes } = graph;
  const { calls, work } = timeline;
  const call = work.call[row] ?? -1;
  if (call < 0 || !(lanes.isWhole || hasCall(timeline, lanes, call))) return -1;
  const launchedNs = calls.startNs[call] ?? 0;
  const offsetNs = (work.startNs[row] ?? 0) - launchedNs;
  if (offsetNs < 0 || (offsetNs === 0 && graph.cutLaunches.has(row))) return -1;
  const latencyNs = graph.latencyNs[calls.kind[call] ?? 0] ?? 0;
  if (offsetNs <= latencyNs) return offsetNs;
  const lastedNs = calls.durationNs[call] ?? 0;
  if (lastedNs <= latencyNs || graph.isWait[call] === 1) return latencyNs;
  const before = row - 1;
  const isFirst = row === 0 || work.stream[before] !== work.stream[row];
  const idleSinceNs = isFirst ? 0 : (work.startNs[before] ?? 0) + (work.durationNs[before] ?? 0);
  if (idleSinceNs > launchedNs) return latencyNs;
  return offsetNs < lastedNs ? offsetNs : lastedNs;
}

function inferredOf(edges: Edges): number {
  return edges.flags.reduce((sum, flags) => sum + ((flags & EDGE.inferred) === 0 ? 0 : 1), 0);
}

interface LaunchCounts {
  /** Launch edges; work whose launch is not there; work that starts before its launch. */
  readonly known: number;
  readonly unknown: number;
  readonly early: number;
  /** Edges between neighbours of a thread or stream. */
  readonly inOrder: number;
}

function countLaunches(timeline: Timeline, lanes: Lanes): LaunchCounts {
  const { calls, work } = timeline;
  const counts = { known: 0, unknown: 0, early: 0, inOrder: 0 };
  for (let thread = 0; thread < lanes.callFrom.length; thread += 1) {
    counts.inOrder += Math.max(0, (lanes.callTo[thread] ?? 0) - (lanes.callFrom[thread] ?? 0) - 1);
  }
  for (let stream = 0; stream < lanes.workFrom.length; stream += 1) {
    const from = lanes.workFrom[stream] ?? 0;
    const to = lanes.workTo[stream] ?? 0;
    counts.inOrder += Math.max(0, to - from - 1);
    for (let row = from; row < to; row += 1) {
      const call = work.call[row] ?? -1;
      if (!hasCall(timeline, lanes, call)) counts.unknown += 1;
      else if ((work.startNs[row] ?? 0) < (calls.startNs[call] ?? 0)) counts.early += 1;
      else counts.known += 1;
    }
  }
  return counts;
}
