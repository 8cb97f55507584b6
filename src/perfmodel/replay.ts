/**
 * The replay: the dependency graph of a timeline run again in virtual time, with the terms on its
 * edges. A run goes once over calls and work in the graph's order and keeps their times, so that the
 * critical path can be followed back afterwards (`critical-path.ts`).
 *
 * The span is a convex, increasing, piecewise linear function of the added round trip: every weight
 * is one, and a node is the latest of sums of them.
 */
import type { DependencyGraph } from '#trace/dependency-graph';
import { launchNs } from '#trace/dependency-graph';
import { EDGE, firstEdge } from '#trace/edge-list';
import type { Lags } from '#trace/lags';
import { WORK_KIND } from '#trace/timeline';
import { firstWait, overhangNs } from '#trace/waits';
import type { CopyTerms, Terms } from './terms.ts';
import { DOORBELL_RTTS, WAIT_RTTS, leastCopyNs } from './terms.ts';

/** Something to change about the workload before it runs. */
export interface Change {
  /** Calls whose submission costs no doorbell and no fetch, a flag a call. */
  readonly freeLaunches?: Uint8Array;
  /** Waits that do not wait, a flag a wait of the graph. */
  readonly skippedWaits?: Uint8Array;
  /** HtoD copies last as recorded and cost no round trip. */
  readonly isHtodHidden?: boolean;
}

/** Times of the last run, ns since the start of the lanes. */
export interface ReplayTimes {
  readonly callStartNs: Float64Array;
  readonly workStartNs: Float64Array;
  readonly waitEndNs: Float64Array;
}

/** The terms of the native replay: nothing is added, copies last as recorded. */
export const NATIVE_TERMS = null;

/** `lags` may be exchanged between runs. */
export class Replay {
  readonly graph: DependencyGraph;
  readonly times: ReplayTimes;
  lags: Lags;
  terms: Terms | null = NATIVE_TERMS;
  change: Change = {};
  /** Span of the last run, ns, and what ended last: a lane as `Runs` numbers them, and its row. */
  spanNs = 0;
  lastLane = -1;
  lastRow = -1;
  readonly #next: Uint32Array;
  readonly #edge: Uint32Array;
  readonly #wait: Uint32Array;
  readonly #isInCall: Uint8Array;
  readonly #endNs: Float64Array;
  readonly #firstEdge: Uint32Array;
  readonly #firstWait: Uint32Array;

  constructor(graph: DependencyGraph, lags: Lags, times: ReplayTimes = newTimes(graph)) {
    this.graph = graph;
    this.lags = lags;
    this.times = times;
    const { lanes, work, handOvers, waits } = graph;
    const threads = lanes.callFrom.length;
    const laneCount = threads + lanes.workFrom.length;
    this.#next = new Uint32Array(laneCount);
    this.#edge = new Uint32Array(laneCount);
    this.#isInCall = new Uint8Array(threads);
    this.#endNs = new Float64Array(laneCount);
    this.#wait = new Uint32Array(threads);
    this.#firstWait = lanes.callFrom.map((row) => firstWait(waits, row));
    this.#firstEdge = new Uint32Array(laneCount);
    this.#firstEdge.set(lanes.callFrom.map((row) => firstEdge(handOvers, row)));
    this.#firstEdge.set(
      lanes.workFrom.map((row) => firstEdge(work, row)),
      threads,
    );
  }

  /** The span on the terms, ns; natively with `NATIVE_TERMS`. */
  run(terms: Terms | null, change: Change = {}): number {
    this.terms = terms;
    this.change = change;
    const { lanes, runs } = this.graph;
    const threads = lanes.callFrom.length;
    this.#next.set(lanes.callFrom);
    this.#next.set(lanes.workFrom, threads);
    this.#edge.set(this.#firstEdge);
    this.#wait.set(this.#firstWait);
    this.#isInCall.fill(0);
    this.#endNs.fill(0);
    this.spanNs = 0;
    this.lastLane = -1;
    for (let run = 0; run < runs.count; run += 1) {
      const lane = runs.lane[run] ?? 0;
      const steps = runs.steps[run] ?? 0;
      if (lane < threads) this.#runThread(lane, steps);
      else this.#runStream(lane, threads, steps);
    }
    return this.spanNs;
  }

  #ended(lane: number, row: number, atNs: number): void {
    this.spanNs = atNs;
    this.lastLane = lane;
    this.lastRow = row;
  }

  #runThread(lane: number, steps: number): void {
    const { graph, times, change } = this;
    const { timeline, waits, handOvers, lanes } = graph;
    const { startNs, durationNs } = timeline.calls;
    const first = lanes.callFrom[lane] ?? 0;
    let call = this.#next[lane] ?? 0;
    let edge = this.#edge[lane] ?? 0;
    let wait = this.#wait[lane] ?? 0;
    let isInCall = this.#isInCall[lane] ?? 0;
    let endNs = this.#endNs[lane] ?? 0;
    for (let step = 0; step < steps; step += 1) {
      if (isInCall === 1) {
        endNs = times.callStartNs[call] ?? 0;
        if (change.skippedWaits?.[wait] !== 1) {
          const releasedNs = this.#releasedNs(wait);
          if (releasedNs > endNs) endNs = releasedNs;
        }
        endNs += this.lags.tailNs[wait] ?? 0;
        times.waitEndNs[wait] = endNs;
        if (endNs > this.spanNs) this.#ended(lane, call, endNs);
        isInCall = 0;
        wait += 1;
        call += 1;
        continue;
      }
      const recordedNs = startNs[call] ?? 0;
      let atNs =
        call === first
          ? recordedNs - lanes.startNs
          : endNs + (recordedNs - ((startNs[call - 1] ?? 0) + (durationNs[call - 1] ?? 0)));
      while (handOvers.target[edge] === call) {
        const handedNs = this.handOverNs(edge);
        if (handedNs > atNs) atNs = handedNs;
        edge += 1;
      }
      times.callStartNs[call] = atNs;
      if (waits.call[wait] === call) {
        isInCall = 1;
        endNs = atNs;
      } else {
        endNs = atNs + (durationNs[call] ?? 0);
        if (endNs > this.spanNs) this.#ended(lane, call, endNs);
        call += 1;
      }
    }
    this.#next[lane] = call;
    this.#edge[lane] = edge;
    this.#wait[lane] = wait;
    this.#isInCall[lane] = isInCall;
    this.#endNs[lane] = endNs;
  }

  #runStream(lane: number, threads: number, steps: number): void {
    const { graph, times, lags } = this;
    const { timeline, work: edges, lanes } = graph;
    const { durationNs, kind } = timeline.work;
    const first = lanes.workFrom[lane - threads] ?? 0;
    let row = this.#next[lane] ?? 0;
    let edge = this.#edge[lane] ?? 0;
    let endNs = this.#endNs[lane] ?? 0;
    for (let step = 0; step < steps; step += 1) {
      let atNs = row === first ? 0 : this.afterPrevious(row, endNs);
      const launchedNs = this.launchedNs(row);
      if (launchedNs > atNs) atNs = launchedNs;
      while (edges.target[edge] === row) {
        const sourceNs = this.workEdgeNs(edge);
        if (sourceNs > atNs) atNs = sourceNs;
        edge += 1;
      }
      atNs += lags.workNs[row] ?? 0;
      times.workStartNs[row] = atNs;
      endNs = atNs + (kind[row] === WORK_KIND.kernel ? (durationNs[row] ?? 0) : this.workNs(row));
      if (endNs > this.spanNs) this.#ended(lane, row, endNs);
      row += 1;
    }
    this.#next[lane] = row;
    this.#edge[lane] = edge;
    this.#endNs[lane] = endNs;
  }

  /** When the row before on the stream lets this one start; `endNs` is the end of that row. */
  afterPrevious(row: number, endNs: number): number {
    const { startNs, durationNs } = this.graph.timeline.work;
    const beforeNs = startNs[row - 1] ?? 0;
    const recordedNs = startNs[row] ?? 0;
    if (beforeNs + (durationNs[row - 1] ?? 0) <= recordedNs) return endNs;
    return (this.times.workStartNs[row - 1] ?? 0) + (recordedNs - beforeNs);
  }

  /** When its launch lets the row start; -1 without a launch. */
  launchedNs(row: number): number {
    const offsetNs = launchNs(this.graph, row);
    if (offsetNs < 0) return -1;
    const call = this.graph.timeline.work.call[row] ?? 0;
    return (this.times.callStartNs[call] ?? 0) + offsetNs + this.submissionNs(call);
  }

  /** Doorbell and fetches. */
  submissionNs(call: number): number {
    const { terms } = this;
    if (terms === null || this.change.freeLaunches?.[call] === 1) return 0;
    return (DOORBELL_RTTS + terms.fetches) * terms.addedRttNs;
  }

  /** When the edge between two rows lets its target start; -1 where it is left out. */
  workEdgeNs(edge: number): number {
    const { work } = this.graph;
    const flags = work.flags[edge] ?? 0;
    if ((flags & this.lags.skip) !== 0) return -1;
    const source = work.source[edge] ?? 0;
    if ((flags & EDGE.fromStart) === 0) return this.workEndNs(source);
    const { startNs } = this.graph.timeline.work;
    const offsetNs = (startNs[work.target[edge] ?? 0] ?? 0) - (startNs[source] ?? 0);
    return (this.times.workStartNs[source] ?? 0) + offsetNs;
  }

  /** When the edge from another thread lets its call start; -1 where it is left out. */
  handOverNs(edge: number): number {
    const { handOvers, timeline } = this.graph;
    if (((handOvers.flags[edge] ?? 0) & this.lags.skip) !== 0) return -1;
    const { startNs, durationNs } = timeline.calls;
    const source = handOvers.source[edge] ?? 0;
    const recordedNs = (startNs[source] ?? 0) + (durationNs[source] ?? 0);
    const gapNs = (startNs[handOvers.target[edge] ?? 0] ?? 0) - recordedNs;
    return this.callEndNs(source) + gapNs;
  }

  callEndNs(call: number): number {
    const { waits, timeline } = this.graph;
    const wait = firstWait(waits, call);
    if (waits.call[wait] === call) return this.times.waitEndNs[wait] ?? 0;
    return (this.times.callStartNs[call] ?? 0) + (timeline.calls.durationNs[call] ?? 0);
  }

  workEndNs(row: number): number {
    return (this.times.workStartNs[row] ?? 0) + this.workNs(row);
  }

  /** How long the row lasts on the terms, its round trips included. */
  workNs(row: number): number {
    const { work } = this.graph.timeline;
    const recordedNs = work.durationNs[row] ?? 0;
    const copy = this.copyTerms(row);
    if (copy === null || this.terms === null) return recordedNs;
    const { addedRttNs, nativeRttNs } = this.terms;
    const leastNs = leastCopyNs(copy, work.bytes[row] ?? 0, nativeRttNs + addedRttNs);
    return Math.max(recordedNs, leastNs) + copy.rtts * addedRttNs;
  }

  /** The terms of a copy that crosses the path; null for any other work. */
  copyTerms(row: number): CopyTerms | null {
    const { terms } = this;
    if (terms === null) return null;
    const kind = this.graph.timeline.work.kind[row];
    if (kind === WORK_KIND.htod) return this.change.isHtodHidden === true ? null : terms.htod;
    if (kind === WORK_KIND.dtoh) return terms.dtoh;
    return kind === WORK_KIND.ptop ? terms.peer : null;
  }

  #releasedNs(wait: number): number {
    const { waits } = this.graph;
    const to = waits.from[wait + 1] ?? 0;
    let latestNs = -Infinity;
    for (let edge = waits.from[wait] ?? 0; edge < to; edge += 1) {
      const releasedNs = this.waitEdgeNs(edge);
      if (releasedNs > latestNs) latestNs = releasedNs;
    }
    return latestNs;
  }

  /** When the end of its source reaches the waiting host; -Infinity where the edge is left out. */
  waitEdgeNs(edge: number): number {
    const { edges } = this.graph.waits;
    if (((edges.flags[edge] ?? 0) & this.lags.skip) !== 0) return -Infinity;
    const source = edges.source[edge] ?? 0;
    const earlyNs = overhangNs(this.graph.timeline, edges.target[edge] ?? 0, source);
    return this.workEndNs(source) - earlyNs + this.completionNs();
  }

  /** What a completion takes to reach a waiting host. */
  completionNs(): number {
    return this.terms === null ? 0 : WAIT_RTTS * this.terms.addedRttNs;
  }
}

export function newTimes({ timeline, waits }: DependencyGraph): ReplayTimes {
  return {
    callStartNs: new Float64Array(timeline.calls.count),
    workStartNs: new Float64Array(timeline.work.count),
    waitEndNs: new Float64Array(waits.count),
  };
}
