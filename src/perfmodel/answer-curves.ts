/** The lines of the picture: what predictions know of overhead by round trip. */
import { appendTo } from '#base/append-to';
import type { LineSeries } from '#report/plot';
import type { Prediction } from './prediction.ts';

type Point = LineSeries['points'][number];
type Estimate = 'replay' | 'additive';

/**
 * Predictions that lie on one curve, in their order: those of one trace over links that differ by
 * what the fabric adds alone.
 */
export function curveGroups(predictions: readonly Prediction[]): Prediction[][] {
  const groups = new Map<string, Prediction[]>();
  for (const one of predictions) {
    const { link, trace } = one;
    const key = JSON.stringify([
      trace.file,
      link.nativeRttNs,
      link.tags,
      link.mrrsBytes,
      link.mpsBytes,
      link.generation,
      link.lanes,
      link.networkGbps,
      link.sharing,
      link.fetches,
      link.nativeReadGbytesPerS,
      link.pooledWriteGbytesPerS,
    ]);
    appendTo(groups, key, one);
  }
  return [...groups.values()];
}

/** Up to what round trip the picture goes: to the end of the curves, or past every link. */
export function shownRttNs(predictions: readonly Prediction[]): number {
  const ends = predictions.map(({ link, curve }) => curve?.at(-1)?.rttNs ?? 1.6 * link.rttNs);
  return Math.max(...ends);
}

/** The curves of a group, µs and %, up to `nsShown`; without a replay the additive one alone. */
export function curvesOf(
  group: readonly Prediction[],
  nsShown: number,
): { readonly estimate: Estimate; readonly points: Point[] }[] {
  const estimates: Estimate[] = group.some(({ replay }) => replay !== null)
    ? ['replay', 'additive']
    : ['additive'];
  return estimates.map((estimate) => ({
    estimate,
    points: clipped(pointsOf(group, estimate), nsShown / 1e3),
  }));
}

/** All that is known: what was asked for, the links themselves, and their budgets. */
function pointsOf(group: readonly Prediction[], estimate: Estimate): Point[] {
  const known = new Map<number, number>();
  for (const prediction of group) {
    const { link, budgets, curve } = prediction;
    for (const budget of budgets) {
      const ns = budget[`${estimate}MaxRttNs`];
      if (ns !== null) known.set(ns, budget.overheadPct);
    }
    for (const point of curve ?? []) {
      const pct = point[`${estimate}OverheadPct`];
      if (pct !== null) known.set(point.rttNs, pct);
    }
    const own = prediction[estimate]?.overheadPct;
    if (own !== null && own !== undefined) known.set(link.rttNs, own);
  }
  return [...known].map(([ns, pct]) => ({ x: ns / 1e3, y: pct })).toSorted((a, b) => a.x - b.x);
}

/** The part of a line up to `x`, ending there where it goes on. */
function clipped(points: readonly Point[], x: number): Point[] {
  const kept = points.filter((point) => point.x <= x);
  const last = kept.at(-1);
  const next = points[kept.length];
  if (last === undefined || next === undefined) return kept;
  const y = last.y + ((next.y - last.y) * (x - last.x)) / (next.x - last.x);
  return [...kept, { x, y }];
}
