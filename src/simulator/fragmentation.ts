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

/** What a typical demand can do with the GPUs of a model at all. */
const ASKS_NO_GPU = 0;
const NO_ACCESS = 1;
const MAY_USE = 2;

/**
 * Thousandths of free GPU that typical demands could not use, on a server of this model with this
 * much left. Order of `gpuLeft` makes no difference.
 */
export class Fragmentation {
  readonly #count: number;
  /** Columns by typical demand: this is the innermost loop of a run. */
  readonly #share: Float64Array;
  readonly #cpuMilli: Float64Array;
  readonly #gpus: Float64Array;
  readonly #gpuMilli: Float64Array;
  /** By model, then by typical demand. */
  readonly #access: Uint8Array;

  /** `models` numbers the models, as in `Servers`. */
  constructor(typical: readonly TypicalDemand[], models: readonly string[]) {
    this.#count = typical.length;
    this.#share = Float64Array.from(typical, ({ share }) => share);
    this.#cpuMilli = Float64Array.from(typical, ({ cpuMilli }) => cpuMilli);
    this.#gpus = Float64Array.from(typical, ({ gpus }) => gpus);
    this.#gpuMilli = Float64Array.from(typical, ({ gpuMilli }) => gpuMilli);
    this.#access = Uint8Array.from(
      models.flatMap((model) => typical.map((demand) => accessOf(demand, model))),
    );
  }

  amount(cpuLeft: number, model: number, gpuLeft: ArrayLike<number>): number {
    const count = this.#count;
    const shares = this.#share;
    const cpuMillis = this.#cpuMilli;
    const gpus = this.#gpus;
    const gpuMillis = this.#gpuMilli;
    const access = this.#access;
    const has = gpuLeft.length;
    let free = 0;
    for (let g = 0; g < has; g++) free += gpuLeft[g] as number;
    // What a demand makes of the free GPU: each is summed by itself, then together.
    let lacksBoth = 0;
    let lacksGpu = 0;
    let lacksCpu = 0;
    let asksNoGpu = 0;
    let noAccess = 0;
    for (let t = 0, at = model * count; t < count; t++, at++) {
      const share = shares[t] as number;
      const may = access[at] as number;
      if (may !== MAY_USE) {
        if (may === ASKS_NO_GPU) asksNoGpu += share * free;
        else noAccess += share * free;
        continue;
      }
      const gpuMilli = gpuMillis[t] as number;
      let enough = 0;
      let small = 0;
      for (let g = 0; g < has; g++) {
        const left = gpuLeft[g] as number;
        if (left >= gpuMilli) enough += 1;
        else small += left;
      }
      const hasCpu = cpuLeft >= (cpuMillis[t] as number);
      if (enough >= (gpus[t] as number)) {
        if (hasCpu) lacksGpu += share * small;
        else lacksCpu += share * free;
      } else if (hasCpu) lacksGpu += share * free;
      else lacksBoth += share * free;
    }
    return lacksBoth + lacksGpu + lacksCpu + asksNoGpu + noAccess;
  }
}

function accessOf({ gpuMilli, models }: TypicalDemand, model: string): number {
  if (gpuMilli === 0) return ASKS_NO_GPU;
  return models.length === 0 || models.includes(model) ? MAY_USE : NO_ACCESS;
}
