/**
 * One workload, ready to be asked: what pays, its dependency graph, and both estimates at any terms.
 * The graph is built once; each question is a pass over it.
 */
import type { DependencyGraph } from '#trace/dependency-graph';
import { dependencyGraph } from '#trace/dependency-graph';
import { EDGE } from '#trace/edge-list';
import type { Lags } from '#trace/lags';
import { lagsWithout } from '#trace/lags';
import type { Lanes } from '#trace/lanes';
import { forEachCall, forEachWork, wholeLanes } from '#trace/lanes';
import type { Timeline } from '#trace/timeline';
import { hostWaits } from '#trace/timeline';
import type { AdditiveEstimate, Payers } from './additive.ts';
import { additiveEstimate } from './additive.ts';
import type { CriticalPath } from './critical-path.ts';
import { criticalPath } from './critical-path.ts';
import { payersOf } from './payers.ts';
import type { Change } from './replay.ts';
import { NATIVE_TERMS, Replay } from './replay.ts';
import type { Terms } from './terms.ts';

export interface ReplayModel {
  readonly graph: DependencyGraph;
  /** With all edges. */
  readonly lags: Lags;
  readonly replay: Replay;
  /** Span of the native replay, ns. */
  readonly nativeSpanNs: number;
}

export class WorkloadModel {
  readonly timeline: Timeline;
  readonly lanes: Lanes;
  readonly payers: Payers;
  /** Calls in which the host waits, a flag a call of the timeline. */
  readonly isWait: Uint8Array;
  /** Recorded, first event to last, ns. */
  readonly spanNs: number;
  /** Null where the trace lacks what replay needs; `replayReason` then says what. */
  readonly replay: ReplayModel | null;
  readonly replayReason: string | undefined;

  constructor(timeline: Timeline, lanes: Lanes = wholeLanes(timeline)) {
    this.timeline = timeline;
    this.lanes = lanes;
    this.isWait = hostWaits(timeline);
    this.payers = payersOf(timeline, lanes, this.isWait);
    this.spanNs = lanes.endNs - lanes.startNs;
    this.replayReason = whyNoReplay(timeline, lanes);
    this.replay = this.replayReason === undefined ? replayModel(timeline, lanes) : null;
  }

  additive(terms: Terms, payers: Payers = this.payers): AdditiveEstimate {
    return additiveEstimate(this.timeline, payers, terms);
  }

  /** Share of the native span, percent; null when the trace has no span. */
  additiveOverheadPct(terms: Terms, payers: Payers = this.payers): number | null {
    if (!(this.spanNs > 0)) return null;
    return (100 * this.additive(terms, payers).addedNs) / this.spanNs;
  }

  /** Null without a replay, or with a span of 0. */
  replayOverheadPct(terms: Terms, change: Change = {}): number | null {
    const { replay } = this;
    if (replay === null || !(replay.nativeSpanNs > 0)) return null;
    const native = changesNative(change)
      ? replay.replay.run(NATIVE_TERMS, change)
      : replay.nativeSpanNs;
    if (!(native > 0)) return null;
    return (100 * (replay.replay.run(terms, change) - native)) / native;
  }

  /** Span, and what it is made of, of the replay on the terms. Only where there is a replay. */
  replayPath(replay: ReplayModel, terms: Terms): { spanNs: number; path: CriticalPath } {
    const spanNs = replay.replay.run(terms);
    return { spanNs, path: criticalPath(replay.replay) };
  }

  /** Overhead with inferred edges left out, percent. */
  overheadWithoutInferredPct(replay: ReplayModel, terms: Terms): number {
    const { replay: runner, lags, graph } = replay;
    runner.lags = lagsWithout(graph, EDGE.inferred);
    const native = runner.run(NATIVE_TERMS);
    const overheadPct = (100 * (runner.run(terms) - native)) / native;
    runner.lags = lags;
    return overheadPct;
  }
}

function changesNative(change: Change): boolean {
  return change.skippedWaits !== undefined;
}

function replayModel(timeline: Timeline, lanes: Lanes): ReplayModel {
  const graph = dependencyGraph(timeline, lanes);
  const lags = lagsWithout(graph, 0);
  const replay = new Replay(graph, lags);
  return { graph, lags, replay, nativeSpanNs: replay.run(NATIVE_TERMS) };
}

function whyNoReplay(timeline: Timeline, lanes: Lanes): string | undefined {
  let calls = 0;
  forEachCall(lanes, () => (calls += 1));
  let work = 0;
  let launched = 0;
  forEachWork(lanes, (row) => {
    work += 1;
    if ((timeline.work.call[row] ?? -1) >= 0) launched += 1;
  });
  if (calls === 0)
    return 'the trace has no host calls (CUDA or HIP API), only the additive estimate applies';
  if (work === 0) return 'the trace has no GPU work, only the additive estimate applies';
  if (launched === 0) {
    return 'no GPU work of the trace is joined to the call that launched it (no correlation ids in common), only the additive estimate applies';
  }
  return undefined;
}
