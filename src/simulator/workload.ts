/** The requests of a list, and the order in which a run meets them. */
import { DxpuError } from '#base/errors';
import type { Prng } from '#base/prng';
import { askedMilli, type Demand, demandKey } from './demand.ts';

/** Requests as numbers: request `i` asks for `kinds[kindOf[i]]`. Equal demands are one kind. */
export interface Workload {
  readonly kinds: readonly Demand[];
  readonly kindOf: Uint32Array;
}

export function workloadOf(demands: readonly Demand[]): Workload {
  const kinds: Demand[] = [];
  const indexes = new Map<string, number>();
  const kindOf = new Uint32Array(demands.length);
  for (const [i, demand] of demands.entries()) {
    const key = demandKey(demand);
    let kind = indexes.get(key);
    if (kind === undefined) {
      kind = kinds.length;
      indexes.set(key, kind);
      kinds.push(demand);
    }
    kindOf[i] = kind;
  }
  return { kinds, kindOf };
}

/**
 * The published arrival method: the whole list, shuffled; then requests drawn from it at random,
 * each any number of times, until the next one would take what has been asked for beyond `untilPct`
 * percent of `capacityMilli`. A list that asks for more than that loses random requests instead.
 * Returns the kind of each arrival. Throws `invalid_argument` if the list asks for no GPU at all.
 */
export function drawArrivals(
  { kinds, kindOf }: Workload,
  prng: Prng,
  capacityMilli: number,
  untilPct: number,
): Uint32Array {
  const limit = (capacityMilli * untilPct) / 100;
  const asked = kinds.map(askedMilli);
  const askedBy = (kind: number): number => asked[kind] ?? 0;
  const arrivals = shuffled(kindOf, prng);
  let total = arrivals.reduce((sum, kind) => sum + askedBy(kind), 0);
  if (total === 0) {
    throw new DxpuError(
      'invalid_argument',
      'no request of the list asks for a GPU: arrivals up to a share of GPU capacity never end',
    );
  }
  while (total > limit && arrivals.length > 0) {
    const [gone] = arrivals.splice(prng.below(arrivals.length), 1);
    total -= askedBy(gone ?? 0);
  }
  while (true) {
    const kind = kindOf[prng.below(kindOf.length)] as number;
    total += askedBy(kind);
    if (total > limit) break;
    arrivals.push(kind);
  }
  return Uint32Array.from(arrivals);
}

/** A copy of `items` in random order (Fisher and Yates). */
export function shuffled(items: Iterable<number>, prng: Prng): number[] {
  const order = [...items];
  for (let i = order.length - 1; i > 0; i--) {
    const j = prng.below(i + 1);
    [order[i], order[j]] = [order[j] as number, order[i] as number];
  }
  return order;
}
