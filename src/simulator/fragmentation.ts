/**
 * Fragmentation as published with FGD (Weng et al., Beware of Fragmentation, USENIX ATC 2023): how
 * much of a server's free GPU a typical request could not use, weighed by how typical it is.
 */
import type { Demand } from './demand.ts';
import type { Workload } from './workload.ts';

/** Kinds of request that make up this share of the list are the typical ones. */
const TYPICAL_SHARE = 0.95;

export interface TypicalDemand {
  readonly cpuMilli: number;
  readonly gpus: number;
  readonly gpuMilli: number;
  readonly models: readonly string[];
  /** Its share among the typical ones: they sum to 1. */
  readonly share: number;
}

/** The commonest kinds of the list, memory aside, until they make up 95 % of it. */
export function typicalDemands({ kinds, kindOf }: Workload): TypicalDemand[] {
  const counts = new Map<string, { readonly kind: Demand; count: number }>();
  for (const index of kindOf) {
    const kind = kinds[index] as Demand;
    const key = shapeKey(kind);
    const entry = counts.get(key) ?? { kind, count: 0 };
    entry.count += 1;
    counts.set(key, entry);
  }
  const sorted = [...counts.values()].sort(
    (a, b) => b.count - a.count || compareShapes(b.kind, a.kind),
  );
  const chosen: { kind: Demand; count: number }[] = [];
  let total = 0;
  for (const entry of sorted) {
    if (total >= TYPICAL_SHARE * kindOf.length) break;
    chosen.push(entry);
    total += entry.count;
  }
  return chosen.map(({ kind: { cpuMilli, gpus, gpuMilli, models }, count }) => ({
    cpuMilli,
    gpus,
    gpuMilli,
    models,
    share: count / total,
  }));
}

/** Equal for demands that differ in memory alone. */
export function shapeKey({ cpuMilli, gpus, gpuMilli, models }: Demand): string {
  return `${cpuMilli},${gpus},${gpuMilli},${models.join('|')}`;
}

function compareShapes(a: Demand, b: Demand): number {
  if (a.cpuMilli !== b.cpuMilli) return a.cpuMilli - b.cpuMilli;
  if (a.gpuMilli !== b.gpuMilli) return a.gpuMilli - b.gpuMilli;
  if (a.gpus !== b.gpus) return a.gpus - b.gpus;
  const [left, right] = [a.models.join('|'), b.models.join('|')];
  return left < right ? -1 : Number(left > right);
}

/** What a demand makes of a server's free GPU. Each is summed by itself, then together. */
const LACKS_BOTH = 0;
const LACKS_GPU = 1;
const LACKS_CPU = 2;
const ASKS_NO_GPU = 3;
const NO_ACCESS = 4;

/**
 * Thousandths of free GPU that typical demands could not use, on a server of this model with this
 * much left. Order of `gpuLeft` makes no difference.
 */
export class Fragmentation {
  readonly #typical: readonly TypicalDemand[];
  readonly #accepts: readonly (readonly boolean[])[];
  readonly #sums = new Float64Array(5);

  /** `models` numbers the models, as in `Servers`. */
  constructor(typical: readonly TypicalDemand[], models: readonly string[]) {
    this.#typical = typical;
    this.#accepts = typical.map((demand) =>
      models.map((model) => demand.models.length === 0 || demand.models.includes(model)),
    );
  }

  amount(cpuLeft: number, model: number, gpuLeft: ArrayLike<number>): number {
    const sums = this.#sums.fill(0);
    let free = 0;
    for (let g = 0; g < gpuLeft.length; g++) free += gpuLeft[g] as number;
    for (let t = 0; t < this.#typical.length; t++) {
      const demand = this.#typical[t] as TypicalDemand;
      if (demand.gpuMilli === 0) {
        sums[ASKS_NO_GPU] = (sums[ASKS_NO_GPU] as number) + demand.share * free;
        continue;
      }
      if (this.#accepts[t]?.[model] !== true) {
        sums[NO_ACCESS] = (sums[NO_ACCESS] as number) + demand.share * free;
        continue;
      }
      let enough = 0;
      let small = 0;
      for (let g = 0; g < gpuLeft.length; g++) {
        const left = gpuLeft[g] as number;
        if (left >= demand.gpuMilli) enough += 1;
        else small += left;
      }
      const hasCpu = cpuLeft >= demand.cpuMilli;
      if (enough >= demand.gpus && hasCpu) {
        sums[LACKS_GPU] = (sums[LACKS_GPU] as number) + demand.share * small;
      } else {
        const lack = enough >= demand.gpus ? LACKS_CPU : hasCpu ? LACKS_GPU : LACKS_BOTH;
        sums[lack] = (sums[lack] as number) + demand.share * free;
      }
    }
    let total = 0;
    for (let i = 0; i < sums.length; i++) total += sums[i] as number;
    return total;
  }
}
