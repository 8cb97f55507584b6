/**
 * The critical path of a replay's last run: from what ended last back to the beginning, always along
 * the edge that was binding. Its extras, added up, are the slope of the span in the added round trip
 * and the causes of the loss.
 */
import type { DependencyGraph } from '#trace/dependency-graph';
import { EDGE, firstEdge } from '#trace/edge-list';
import { WORK_KIND } from '#trace/timeline';
import { firstWait } from '#trace/waits';
import type { Causes } from './prediction.ts';
import type { Replay } from './replay.ts';
import { DOORBELL_RTTS, WAIT_RTTS, leastCopyNs, leastCopySlope } from './terms.ts';

export interface CriticalPath {
  /** By how much the span grows with each ns of added round trip. */
  readonly slope: number;
  /** What the terms add along the path, ns. */
  readonly causes: Causes;
  /** Time on the path that no known edge explains: lags, waits without a source, hand-overs. */
  readonly unexplainedNs: number;
}

const NODE = { callStart: 0, callEnd: 1, workStart: 2, workEnd: 3, beginning: 4 } as const;
type NodeKind = (typeof NODE)[keyof typeof NODE];

/** Follows the last run of `replay`. */
export function criticalPath(replay: Replay): CriticalPath {
  return new PathWalk(replay).walk();
}

class PathWalk {
  readonly #replay: Replay;
  readonly #graph: DependencyGraph;
  readonly #threads: number;
  /** Where a lane's edges and waits are looked for: the path only ever goes back on a lane. */
  readonly #edge: Uint32Array;
  readonly #wait: Uint32Array;
  #node: NodeKind = NODE.beginning;
  #row = -1;
  #slope = 0;
  #unexplainedNs = 0;
  readonly #causes = { doorbellNs: 0, fetchNs: 0, htodNs: 0, dtohNs: 0, peerNs: 0, waitNs: 0 };

  constructor(replay: Replay) {
    this.#replay = replay;
    this.#graph = replay.graph;
    const { lanes, work, handOvers, waits } = replay.graph;
    this.#threads = lanes.callFrom.length;
    this.#edge = new Uint32Array(this.#threads + lanes.workFrom.length);
    this.#edge.set(lanes.callTo.map((row) => firstEdge(handOvers, row)));
    this.#edge.set(
      lanes.workTo.map((row) => firstEdge(work, row)),
      this.#threads,
    );
    this.#wait = lanes.callTo.map((row) => firstWait(waits, row));
  }

  walk(): CriticalPath {
    const { lastLane, lastRow } = this.#replay;
    if (lastLane >= 0) this.#go(lastLane < this.#threads ? NODE.callEnd : NODE.workEnd, lastRow);
    while (this.#node !== NODE.beginning) {
      if (this.#node === NODE.callStart) this.#fromCallStart(this.#row);
      else if (this.#node === NODE.callEnd) this.#fromCallEnd(this.#row);
      else if (this.#node === NODE.workStart) this.#fromWorkStart(this.#row);
      else this.#fromWorkEnd(this.#row);
    }
    return {
      slope: this.#slope,
      causes: this.#causes,
      unexplainedNs: this.#unexplainedNs,
    };
  }

  #go(node: NodeKind, row: number): void {
    this.#node = node;
    this.#row = row;
  }

  #fromWorkEnd(row: number): void {
    const { terms } = this.#replay;
    const copy = this.#replay.copyTerms(row);
    if (copy !== null && terms !== null) {
      const { durationNs, bytes, kind } = this.#graph.timeline.work;
      const size = bytes[row] ?? 0;
      const recordedNs = durationNs[row] ?? 0;
      const rttNs = terms.nativeRttNs + terms.addedRttNs;
      this.#slope += copy.rtts;
      if (leastCopyNs(copy, size, rttNs) >= recordedNs) {
        this.#slope += leastCopySlope(copy, size, rttNs);
      }
      const extraNs = this.#replay.workNs(row) - recordedNs;
      if (kind[row] === WORK_KIND.htod) this.#causes.htodNs += extraNs;
      else if (kind[row] === WORK_KIND.dtoh) this.#causes.dtohNs += extraNs;
      else this.#causes.peerNs += extraNs;
    }
    this.#go(NODE.workStart, row);
  }

  #fromWorkStart(row: number): void {
    const replay = this.#replay;
    const { timeline, lanes, work: edges } = this.#graph;
    const stream = timeline.work.stream[row] ?? 0;
    this.#unexplainedNs += replay.lags.workNs[row] ?? 0;
    let latestNs = 0;
    this.#go(NODE.beginning, -1);
    if (row > (lanes.workFrom[stream] ?? 0)) {
      latestNs = replay.afterPrevious(row, replay.workEndNs(row - 1));
      const { startNs, durationNs } = timeline.work;
      const isOverlapping =
        (startNs[row - 1] ?? 0) + (durationNs[row - 1] ?? 0) > (startNs[row] ?? 0);
      this.#go(isOverlapping ? NODE.workStart : NODE.workEnd, row - 1);
    }
    let edge = this.#firstEdge(this.#threads + stream, edges.target, row);
    for (; edges.target[edge] === row; edge += 1) {
      const atNs = replay.workEdgeNs(edge);
      if (atNs <= latestNs) continue;
      latestNs = atNs;
      const flags = edges.flags[edge] ?? 0;
      this.#go(
        (flags & EDGE.fromStart) === 0 ? NODE.workEnd : NODE.workStart,
        edges.source[edge] ?? 0,
      );
    }
    const launchedNs = replay.launchedNs(row);
    if (launchedNs <= latestNs && !(launchedNs >= 0 && this.#node === NODE.beginning)) return;
    const call = timeline.work.call[row] ?? 0;
    this.#submitted(call);
    this.#go(NODE.callStart, call);
  }

  #submitted(call: number): void {
    const { terms } = this.#replay;
    if (terms === null || this.#replay.change.freeLaunches?.[call] === 1) return;
    this.#slope += DOORBELL_RTTS + terms.fetches;
    this.#causes.doorbellNs += DOORBELL_RTTS * terms.addedRttNs;
    this.#causes.fetchNs += terms.fetches * terms.addedRttNs;
  }

  #fromCallEnd(call: number): void {
    const replay = this.#replay;
    const { waits, timeline, isWait } = this.#graph;
    const wait = this.#waitOf(call);
    const ownNs = replay.lags.ownCostNs[timeline.calls.kind[call] ?? 0] ?? 0;
    if (wait < 0) {
      if (isWait[call] === 1) {
        this.#unexplainedNs += Math.max(0, (timeline.calls.durationNs[call] ?? 0) - ownNs);
      }
      this.#go(NODE.callStart, call);
      return;
    }
    this.#unexplainedNs += Math.max(0, (replay.lags.tailNs[wait] ?? 0) - ownNs);
    this.#go(NODE.callStart, call);
    if (replay.change.skippedWaits?.[wait] === 1) return;
    const completionNs = replay.completionNs();
    let latestNs = replay.times.callStartNs[call] ?? 0;
    const to = waits.from[wait + 1] ?? 0;
    let binding = -1;
    for (let edge = waits.from[wait] ?? 0; edge < to; edge += 1) {
      const atNs = replay.waitEdgeNs(edge);
      if (atNs <= latestNs) continue;
      latestNs = atNs;
      binding = edge;
    }
    if (binding < 0) return;
    if (replay.terms !== null) this.#slope += WAIT_RTTS;
    this.#causes.waitNs += completionNs;
    this.#go(NODE.workEnd, waits.edges.source[binding] ?? 0);
  }

  #fromCallStart(call: number): void {
    const replay = this.#replay;
    const { timeline, lanes, handOvers } = this.#graph;
    const { startNs, durationNs, thread } = timeline.calls;
    const lane = thread[call] ?? 0;
    const recordedNs = startNs[call] ?? 0;
    let latestNs: number;
    if (call === lanes.callFrom[lane]) {
      latestNs = recordedNs - lanes.startNs;
      this.#go(NODE.beginning, -1);
    } else {
      const gapNs = recordedNs - ((startNs[call - 1] ?? 0) + (durationNs[call - 1] ?? 0));
      latestNs = this.#callEndNs(call - 1) + gapNs;
      this.#go(NODE.callEnd, call - 1);
    }
    let binding = -1;
    let edge = this.#firstEdge(lane, handOvers.target, call);
    for (; handOvers.target[edge] === call; edge += 1) {
      const atNs = replay.handOverNs(edge);
      // The thread's own gap is known, its hand-over is not; but for its first call nothing else is.
      if (atNs < latestNs || (atNs === latestNs && this.#node !== NODE.beginning)) continue;
      latestNs = atNs;
      binding = edge;
    }
    if (binding >= 0) {
      const source = handOvers.source[binding] ?? 0;
      this.#unexplainedNs += recordedNs - (startNs[source] ?? 0) - (durationNs[source] ?? 0);
      this.#go(NODE.callEnd, source);
    } else if (this.#node === NODE.beginning) {
      this.#unexplainedNs += latestNs;
    }
  }

  #firstEdge(lane: number, targets: Uint32Array, row: number): number {
    let edge = this.#edge[lane] ?? 0;
    while (edge > 0 && (targets[edge - 1] ?? 0) >= row) edge -= 1;
    this.#edge[lane] = edge;
    return edge;
  }

  #waitOf(call: number): number {
    const { waits, timeline } = this.#graph;
    const lane = timeline.calls.thread[call] ?? 0;
    let wait = this.#wait[lane] ?? 0;
    while (wait > 0 && (waits.call[wait - 1] ?? 0) >= call) wait -= 1;
    this.#wait[lane] = wait;
    return waits.call[wait] === call ? wait : -1;
  }

  #callEndNs(call: number): number {
    const wait = this.#waitOf(call);
    if (wait >= 0) return this.#replay.times.waitEndNs[wait] ?? 0;
    const { durationNs } = this.#graph.timeline.calls;
    return (this.#replay.times.callStartNs[call] ?? 0) + (durationNs[call] ?? 0);
  }
}
