/** At which round trips a curve of overheads is worked out. */
import type { LinkProfile } from '#pcie/link-profile';
import { roundTripNs } from '#pcie/link-profile';
import type { Budget } from './prediction.ts';

const POINTS = 24;

/**
 * Whole round trips from the native one to past the link's own and, where that is known and not much
 * farther, to where the budget is used up. The curve is convex and piecewise linear between them.
 */
export function curveRttsNs(
  link: LinkProfile,
  budgets: readonly Budget[] = [],
  budgetPct = 0,
): number[] {
  const own = roundTripNs(link);
  const budget = budgets.find(({ overheadPct }) => overheadPct === budgetPct);
  const used = budget?.replayMaxRttNs ?? budget?.additiveMaxRttNs ?? 0;
  const end = Math.max(1.6 * own, Math.min(4 * own, 1.2 * used));
  const step = (end - link.nativeRttNs) / (POINTS - 1);
  return Array.from({ length: POINTS }, (_, index) => link.nativeRttNs + index * step);
}
