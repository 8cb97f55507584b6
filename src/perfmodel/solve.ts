/** The largest round trips that keep a model's overhead within budgets. */
import { criticalPath } from './critical-path.ts';
import type { ConvexFunction, Solution } from './budgets.ts';
import { MAX_ADDED_RTT_NS, largestWithin } from './budgets.ts';
import type { Budget } from './prediction.ts';
import type { Terms } from './terms.ts';
import { withAddedRtt } from './terms.ts';
import type { WorkloadModel } from './workload-model.ts';

/** In the order of `percents`. */
export function solveBudgets(
  model: WorkloadModel,
  terms: Terms,
  percents: readonly number[],
): Budget[] {
  const additive = solveAll(percents, model.spanNs, (added) => {
    const estimate = model.additive(withAddedRtt(terms, added));
    return { value: model.spanNs + estimate.addedNs, slope: estimate.slope };
  });
  const replay = solveReplay(model, terms, percents);
  return percents.map((overheadPct, index) => {
    const one = inWhole(additive[index], terms, 'no-span' as const);
    const other = inWhole(replay[index], terms, 'no-replay' as const);
    return {
      overheadPct,
      additiveMaxRttNs: one.rttNs,
      replayMaxRttNs: other.rttNs,
      ...(one.reason === undefined ? {} : { additiveReason: one.reason }),
      ...(other.reason === undefined ? {} : { replayReason: other.reason }),
    };
  });
}

function solveReplay(
  model: WorkloadModel,
  terms: Terms,
  percents: readonly number[],
): (Solution | undefined)[] {
  const { replay } = model;
  if (replay === null) return percents.map(() => undefined);
  return solveAll(percents, replay.nativeSpanNs, (added) => {
    const value = replay.replay.run(withAddedRtt(terms, added));
    return { value, slope: criticalPath(replay.replay).slope };
  });
}

/** The larger budgets first: the answer to one is right of the answer to the next. */
function solveAll(
  percents: readonly number[],
  nativeNs: number,
  f: ConvexFunction,
): (Solution | undefined)[] {
  const solutions: (Solution | undefined)[] = percents.map(() => undefined);
  if (!(nativeNs > 0)) return solutions;
  const known = new Map<number, ReturnType<ConvexFunction>>();
  const remembered: ConvexFunction = (added) => {
    const value = known.get(added) ?? f(added);
    known.set(added, value);
    return value;
  };
  let from = MAX_ADDED_RTT_NS;
  const order = [...percents.keys()].toSorted((a, b) => (percents[b] ?? 0) - (percents[a] ?? 0));
  for (const index of order) {
    const limit = nativeNs * (1 + (percents[index] ?? 0) / 100);
    const solution = largestWithin(remembered, limit, from);
    solutions[index] = solution;
    if ('addedRttNs' in solution) from = solution.addedRttNs;
  }
  return solutions;
}

function inWhole<R extends string>(
  solution: Solution | undefined,
  terms: Terms,
  none: R,
): { readonly rttNs: number | null; readonly reason?: R | 'unreachable' | 'unlimited' } {
  if (solution === undefined) return { rttNs: null, reason: none };
  if ('reason' in solution) return { rttNs: null, reason: solution.reason };
  return { rttNs: terms.nativeRttNs + solution.addedRttNs };
}
