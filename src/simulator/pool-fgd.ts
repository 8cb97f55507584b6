/**
 * Fragmentation gradient descent in a pool: host and boxes where a request adds the least
 * fragmentation; among equals best fit. Two things can be fragmented:
 *
 * - what is left of GPUs that a host shares out, which nobody else can use: measured as published,
 *   with the host as the server and its shared GPUs as those of the server;
 * - free GPUs in the boxes of a group whose hosts lack CPU for them: for each typical demand, the GPUs
 *   beyond those that the group's CPU would do for, weighed by how typical it is.
 *
 * A free GPU in a box that some host could use is in nobody's way.
 */
import { type Demand, isShared, WHOLE_GPU } from './demand.ts';
import { Fragmentation, type TypicalDemand, typicalDemands } from './fragmentation.ts';
import type { Pool } from './pool.ts';
import { bestFitInPool, type MakePoolPolicy } from './pool-policy.ts';

export const fgdInPool: MakePoolPolicy = (input) => {
  const { pool, workload } = input;
  const typical = typicalDemands(workload);
  const onHosts = new HostFragmentation(pool, typical);
  const inGroups = new GroupFragmentation(pool, typical);
  const fit = bestFitInPool(input);
  return {
    keepsHosts: true,
    boxesAlike: true,
    // Scores are thousandths of GPU that are no longer fragmented. Best fit, between −2 and 0, is
    // about as much as rounding.
    scoreHost: (h, demand, shares) =>
      onHosts.gain(h, demand, shares) + fit.scoreHost(h, demand, shares),
    scoreBox: (b, take, demand) => fit.scoreBox(b, take, demand),
    scoreGroup: (group, demand, shares) => inGroups.gain(group, demand, shares),
  };
};

class HostFragmentation {
  readonly #pool: Pool;
  readonly #fragmentation: Fragmentation;
  /** Of each host as it is; NaN where that is not known since its last change. */
  readonly #amounts: Float64Array;
  readonly #left: number[] = [];

  constructor(pool: Pool, typical: readonly TypicalDemand[]) {
    this.#pool = pool;
    this.#fragmentation = new Fragmentation(typical, pool.models);
    this.#amounts = new Float64Array(pool.hostCount).fill(NaN);
    pool.watch({
      hostChanged: (h) => {
        this.#amounts[h] = NaN;
      },
    });
  }

  /** What the host's shared GPUs become less fragmented by, in thousandths of a GPU. */
  gain(h: number, demand: Demand, shares: boolean): number {
    const { parts, cpuLeft } = this.#pool;
    const newPart = isShared(demand) && !shares;
    if (parts[h]?.length === 0 && !newPart) return 0;
    let before = this.#amounts[h] as number;
    if (Number.isNaN(before)) {
      before = this.#amount(h, cpuLeft[h] as number, -1, 0);
      this.#amounts[h] = before;
    }
    const cpu = (cpuLeft[h] as number) - demand.cpuMilli;
    const part = shares ? this.#pool.tightestPart(h, demand) : -1;
    let after = this.#amount(h, cpu, part, demand.gpuMilli);
    if (newPart) {
      // Of which model it will be is not known yet: of the first that will do.
      const model = this.#pool.accepted(demand)[0] ?? 0;
      this.#left.length = 0;
      this.#left.push(WHOLE_GPU - demand.gpuMilli);
      after += this.#fragmentation.amount(cpu, model, this.#left);
    }
    return before - after;
  }

  /** Over the models of a host's shared GPUs, with so much CPU left; `part` loses `milli` first. */
  #amount(h: number, cpuLeft: number, part: number, milli: number): number {
    const parts = this.#pool.parts[h] as readonly number[];
    const { gpuLeft } = this.#pool;
    let total = 0;
    for (let at = 0; at < parts.length; at++) {
      const model = this.#pool.modelOf(parts[at] as number);
      let first = 0;
      while (this.#pool.modelOf(parts[first] as number) !== model) first += 1;
      // Once a model, at its first GPU.
      if (first < at) continue;
      this.#left.length = 0;
      for (let other = at; other < parts.length; other++) {
        const gpu = parts[other] as number;
        if (this.#pool.modelOf(gpu) !== model) continue;
        this.#left.push((gpuLeft[gpu] as number) - (gpu === part ? milli : 0));
      }
      total += this.#fragmentation.amount(cpuLeft, model, this.#left);
    }
    return total;
  }
}

class GroupFragmentation {
  readonly #pool: Pool;
  readonly #count: number;
  /** Columns by typical demand: its share, and the GPUs it would use beside each thousandth of a CPU. */
  readonly #share: Float64Array;
  readonly #perCpu: Float64Array;
  /** Models by number; `undefined` for any. */
  readonly #accepted: readonly (readonly number[] | undefined)[];
  /** By group, then by typical demand: free GPUs that it may use, and how many of them are too many. */
  readonly #free: Float64Array;
  readonly #before: Float64Array;
  /** Whether these two hold since the last change of the group. */
  readonly #known: Uint8Array;

  constructor(pool: Pool, all: readonly TypicalDemand[]) {
    const typical = all.filter(({ gpus, cpuMilli }) => gpus > 0 && cpuMilli > 0);
    this.#pool = pool;
    this.#count = typical.length;
    this.#share = Float64Array.from(typical, ({ share }) => share);
    this.#perCpu = Float64Array.from(
      typical,
      ({ gpus, gpuMilli, cpuMilli }) => (gpus * gpuMilli) / WHOLE_GPU / cpuMilli,
    );
    this.#accepted = typical.map(({ models }) =>
      models.length === 0
        ? undefined
        : [...pool.models.keys()].filter((model) => models.includes(pool.models[model] ?? '')),
    );
    this.#free = new Float64Array(pool.groups * typical.length);
    this.#before = new Float64Array(pool.groups * typical.length);
    this.#known = new Uint8Array(pool.groups);
    pool.watch({
      hostChanged: (h) => {
        this.#known[pool.hostGroup[h] as number] = 0;
      },
      groupChanged: (group) => {
        this.#known[group] = 0;
      },
    });
  }

  /** What the group's boxes become less fragmented by, in thousandths of a GPU. */
  gain(group: number, demand: Demand, shares: boolean): number {
    if (this.#known[group] === 0) this.#look(group);
    const count = this.#count;
    const shareOf = this.#share;
    const perCpu = this.#perCpu;
    const free = this.#free;
    const before = this.#before;
    const cpuAfter = (this.#pool.groupCpuLeft[group] as number) - demand.cpuMilli;
    const taken = shares ? 0 : demand.gpus;
    let gain = 0;
    for (let t = 0, at = group * count; t < count; t++, at++) {
      const over = (free[at] as number) - taken - cpuAfter * (perCpu[t] as number);
      const after = over > 0 ? over : 0;
      gain += (shareOf[t] as number) * ((before[at] as number) - after);
    }
    return gain * WHOLE_GPU;
  }

  #look(group: number): void {
    const { groupCpuLeft, shelves, models } = this.#pool;
    const cpu = groupCpuLeft[group] as number;
    let ofAny = 0;
    for (let model = 0; model < models.length; model++) ofAny += shelves.free(group, model);
    for (let t = 0, at = group * this.#count; t < this.#count; t++, at++) {
      const accepted = this.#accepted[t];
      let free = accepted === undefined ? ofAny : 0;
      if (accepted !== undefined) {
        for (const model of accepted) free += shelves.free(group, model);
      }
      this.#free[at] = free;
      this.#before[at] = Math.max(0, free - cpu * (this.#perCpu[t] as number));
    }
    this.#known[group] = 1;
  }
}
