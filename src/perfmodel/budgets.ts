/**
 * The largest round trip that keeps a budget, solved on a convex, increasing, piecewise linear
 * function by tangents from the right: each step lands on or right of the answer, and there are at
 * most as many as pieces.
 */

/** Value and slope at an added round trip; where the slope jumps, either side's will do. */
export type ConvexFunction = (addedRttNs: number) => {
  readonly value: number;
  readonly slope: number;
};

/** Round trips longer than a second are not looked for: a link profile takes none. */
export const MAX_ADDED_RTT_NS = 1e9;

/** Far below what a figure is printed to. */
const RELATIVE_TOLERANCE = 1e-9;
/** More than any trace needs; a stop for functions that are not what they should be. */
const MAX_STEPS = 200;

export type Solution =
  | { readonly addedRttNs: number }
  | { readonly reason: 'unreachable' | 'unlimited' };

/**
 * The largest added round trip at which `f` is at most `limit`. `from` may be any point at which it
 * is known to be at least the limit.
 */
export function largestWithin(
  f: ConvexFunction,
  limit: number,
  from: number = MAX_ADDED_RTT_NS,
): Solution {
  if (f(0).value > limit * (1 + RELATIVE_TOLERANCE)) return { reason: 'unreachable' };
  let addedRttNs = from;
  for (let step = 0; step < MAX_STEPS; step += 1) {
    const { value, slope } = f(addedRttNs);
    const excess = value - limit;
    if (excess <= RELATIVE_TOLERANCE * limit) {
      return addedRttNs >= MAX_ADDED_RTT_NS ? { reason: 'unlimited' } : { addedRttNs };
    }
    if (slope <= 0) break;
    addedRttNs = Math.max(0, addedRttNs - excess / slope);
  }
  return { addedRttNs };
}
