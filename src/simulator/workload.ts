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
  let arrivals = shuffled(kindOf, prng);
  let total = arrivals.reduce((sum, kind) => sum + askedBy(kind), 0);
  if (total === 0) {
    throw new DxpuError(
      'invalid_argument',
      'no request of the list asks for a GPU: arrivals up to a share of GPU capacity never end',
    );
  }
  if (total > limit) {
    const left = new Remaining(arrivals.length);
    while (total > limit && left.count > 0) {
      const at = left.remove(prng.below(left.count));
      total -= askedBy(arrivals[at] as number);
    }
    arrivals = arrivals.filter((_, at) => left.has(at));
  }
  while (true) {
    const kind = kindOf[prng.below(kindOf.length)] as number;
    total += askedBy(kind);
    if (total > limit) break;
    arrivals.push(kind);
  }
  return Uint32Array.from(arrivals);
}

/** Which of many items are left, in their order: a tree of counts, so that removing one costs its height. */
class Remaining {
  count: number;
  readonly #leaves: number;
  /** Node `i` counts what is left below it; its halves are `2i` and `2i + 1`. */
  readonly #counts: Uint32Array;

  constructor(count: number) {
    this.count = count;
    let leaves = 1;
    while (leaves < count) leaves *= 2;
    this.#leaves = leaves;
    this.#counts = new Uint32Array(2 * leaves).fill(1, leaves, leaves + count);
    for (let i = leaves - 1; i >= 1; i--) {
      this.#counts[i] = (this.#counts[2 * i] as number) + (this.#counts[2 * i + 1] as number);
    }
  }

  has(at: number): boolean {
    return this.#counts[this.#leaves + at] === 1;
  }

  /** Removes what stands at `place` among those left, and answers where it stood at first. */
  remove(place: number): number {
    let before = place;
    let node = 1;
    this.#take(node);
    while (node < this.#leaves) {
      node *= 2;
      const first = this.#counts[node] as number;
      if (before >= first) {
        before -= first;
        node += 1;
      }
      this.#take(node);
    }
    this.count -= 1;
    return node - this.#leaves;
  }

  #take(node: number): void {
    this.#counts[node] = (this.#counts[node] as number) - 1;
  }
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
