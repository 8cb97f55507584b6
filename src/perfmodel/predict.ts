/**
 * What a workload will lose when its GPU moves away: the answer in full, for one trace and any number
 * of links. `docs/predict-model.md` says how it is worked out.
 */
import { DxpuError } from '#base/errors';
import type { LinkProfile } from '#pcie/link-profile';
import { linkFigures } from '#report/link-figures';
import type { Lanes } from '#trace/lanes';
import type { Timeline } from '#trace/timeline';
import { sumOfCauses } from './additive.ts';
import { advise, workloadChanges } from './advice.ts';
import { droppedPct, gradeOf } from './confidence.ts';
import { curveRttsNs } from './curve.ts';
import { modelWarnings } from './model-warnings.ts';
import type { Causes, Prediction, WindowFigures } from './prediction.ts';
import { PREDICTION_SCHEMA } from './prediction.ts';
import { solveBudgets } from './solve.ts';
import type { TermOptions, Terms } from './terms.ts';
import { copyRates, termsOf, withAddedRtt } from './terms.ts';
import { traceFigures } from './trace-figures.ts';
import { verdictOf } from './verdict.ts';
import { allIterations, windowFigures } from './windows.ts';
import { WorkloadModel } from './workload-model.ts';

/** Overheads for which the largest round trip is always told, percent. */
const BUDGETS = [1, 5, 10, 20];

export interface PredictOptions extends TermOptions {
  /** The file as the user named it. */
  readonly file: string;
  /** Overhead the verdict is against, percent; 10 if left out. */
  readonly budgetPct?: number;
  /** Whether each marked iteration is predicted on its own too. */
  readonly perIteration?: boolean;
  /** Whether the overheads at other round trips are worked out too, for plots. */
  readonly curve?: boolean;
}

/**
 * One prediction for each link, in their order. The same timeline and links give the same answer to
 * the bit. Throws `DxpuError` `invalid_argument` for options out of range.
 */
export function predict(
  timeline: Timeline,
  links: readonly LinkProfile[],
  options: PredictOptions,
): Prediction[] {
  const budgetPct = options.budgetPct ?? 10;
  if (!(budgetPct > 0 && budgetPct <= 1e6)) {
    throw new DxpuError('invalid_argument', `budgetPct is ${budgetPct}: must be above 0`, {
      details: { field: 'budgetPct', value: budgetPct },
    });
  }
  const all = links.map((link) => termsOf(link, options));
  const whole = wholeFile(timeline, links, all, { ...options, budgetPct });
  // The model of the whole file is let go before those of its parts are made.
  const windows = ofWindows(timeline, whole.lanes, all, options);
  return whole.predictions.map((prediction, index) => ({
    ...prediction,
    iterations: windows.together[index] ?? null,
    ...(options.perIteration === true ? { perIteration: windows.each(index) } : {}),
  }));
}

type WholeFile = Omit<Prediction, 'iterations' | 'perIteration'>;

function wholeFile(
  timeline: Timeline,
  links: readonly LinkProfile[],
  all: readonly Terms[],
  options: PredictOptions & { readonly budgetPct: number },
): { readonly lanes: Lanes; readonly predictions: WholeFile[] } {
  const figures = traceFigures(timeline, options.file);
  const model = new WorkloadModel(timeline);
  const changes = workloadChanges(model);
  const warnings = modelWarnings(timeline, {
    graph: model.replay?.graph,
    isSpread: options.peers === 'spread',
  });
  const predictions = links.map((link, index): WholeFile => {
    const terms = all[index] ?? termsOf(link, options);
    const { addedNs, causes } = model.additive(terms);
    const overheadPct = model.additiveOverheadPct(terms);
    const replay = replayAnswer(model, terms);
    const percents = [...new Set([...BUDGETS, options.budgetPct])].toSorted((a, b) => a - b);
    const budgets = solveBudgets(model, terms, percents);
    const rttsNs = options.curve === true ? curveRttsNs(link, budgets, options.budgetPct) : [];
    return {
      schema: PREDICTION_SCHEMA,
      trace: figures,
      link: {
        ...linkFigures(link, options.sharing ?? 1),
        fetches: options.fetches ?? 1,
        ...copyRates(terms),
      },
      additive: { addedNs, overheadPct, causes },
      replay,
      ...(model.replayReason === undefined ? {} : { replayReason: model.replayReason }),
      verdict: verdictOf(options.budgetPct, overheadPct, replay),
      budgets,
      causes: replay?.causes ?? causes,
      advice: advise(model, link, options, changes),
      warnings,
      ...(options.curve === true ? { curve: overheadCurve(model, link, rttsNs, options) } : {}),
    };
  });
  return { lanes: model.lanes, predictions };
}

function replayAnswer(model: WorkloadModel, terms: Terms): Prediction['replay'] {
  const { replay, timeline } = model;
  if (replay === null || !(replay.nativeSpanNs > 0)) return null;
  const { nativeSpanNs, graph, lags } = replay;
  const { spanNs, path } = model.replayPath(replay, terms);
  const overheadPct = (100 * (spanNs - nativeSpanNs)) / nativeSpanNs;
  const without =
    graph.counts.inferred > 0 ? model.overheadWithoutInferredPct(replay, terms) : overheadPct;
  const ofSpan = (ns: number): number => (model.spanNs > 0 ? (100 * ns) / model.spanNs : 0);
  const { violations, edges, unlaunched } = graph.counts;
  const evidence = {
    selfErrorPct: ofSpan(nativeSpanNs - model.spanNs),
    residualPct: ofSpan(lags.startsNs + lags.waitEndsNs),
    unexplainedPct: (100 * path.unexplainedNs) / spanNs,
    rangePct: [Math.min(without, overheadPct), Math.max(without, overheadPct)] as [number, number],
  };
  const grade = gradeOf({
    ...evidence,
    violationsPct: (100 * violations) / Math.max(1, edges + violations),
    unlaunchedPct: (100 * unlaunched) / Math.max(1, timeline.work.count),
    droppedPct: droppedPct(timeline),
    hasStacks: timeline.recordedStacks || timeline.recordedShapes,
  });
  return {
    nativeSpanNs,
    spanNs,
    addedNs: spanNs - nativeSpanNs,
    overheadPct,
    ...evidence,
    violations,
    ...grade,
    causes: scaledTo(path.causes, spanNs - nativeSpanNs),
  };
}

/**
 * The causes along the pooled critical path add up to more than the span grew where another path was
 * longer natively; scaled, they sum to what was added.
 */
function scaledTo(causes: Causes, addedNs: number): Causes {
  const sum = sumOfCauses(causes);
  const factor = sum > 0 ? Math.max(0, addedNs) / sum : 0;
  return {
    doorbellNs: causes.doorbellNs * factor,
    fetchNs: causes.fetchNs * factor,
    htodNs: causes.htodNs * factor,
    dtohNs: causes.dtohNs * factor,
    peerNs: causes.peerNs * factor,
    waitNs: causes.waitNs * factor,
  };
}

function ofWindows(
  timeline: Timeline,
  lanes: Lanes,
  all: readonly Terms[],
  { perIteration }: PredictOptions,
): {
  readonly together: readonly WindowFigures[];
  readonly each: (link: number) => WindowFigures[];
} {
  const marked = allIterations(timeline);
  const together = marked === null ? [] : windowFigures(timeline, lanes, marked, all);
  const separate =
    perIteration === true
      ? timeline.iterations.map((iteration) => windowFigures(timeline, lanes, iteration, all))
      : [];
  return {
    together,
    each: (link) => separate.flatMap((figures) => figures[link] ?? []),
  };
}

/**
 * Both overheads at whole round trips, for plots; null where an estimate cannot be given. A round trip
 * below the link's native one counts as native. Given a model, nothing is built again.
 */
export function overheadCurve(
  workload: Timeline | WorkloadModel,
  link: LinkProfile,
  rttsNs: readonly number[],
  options: TermOptions = {},
): NonNullable<Prediction['curve']> {
  const terms = termsOf(link, options);
  const model = workload instanceof WorkloadModel ? workload : new WorkloadModel(workload);
  return rttsNs.map((rttNs) => {
    const at = withAddedRtt(terms, Math.max(0, rttNs - terms.nativeRttNs));
    return {
      rttNs,
      additiveOverheadPct: model.additiveOverheadPct(at),
      replayOverheadPct: model.replayOverheadPct(at),
    };
  });
}
