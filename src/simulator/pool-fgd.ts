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
  readonly #typical: readonly TypicalDemand[];
  /** Models by number; `undefined` for any. */
  readonly #accepted: readonly (readonly number[] | undefined)[];

  constructor(pool: Pool, typical: readonly TypicalDemand[]) {
    this.#pool = pool;
    this.#typical = typical.filter(({ gpus, cpuMilli }) => gpus > 0 && cpuMilli > 0);
    this.#accepted = this.#typical.map(({ models }) =>
      models.length === 0
        ? undefined
        : [...pool.models.keys()].filter((model) => models.includes(pool.models[model] ?? '')),
    );
  }

  /** What the group's boxes become less fragmented by, in thousandths of a GPU. */
  gain(group: number, demand: Demand, shares: boolean): number {
    const { groupCpuLeft, shelves, models } = this.#pool;
    const cpu = groupCpuLeft[group] as number;
    const taken = shares ? 0 : demand.gpus;
    let ofAny = 0;
    for (let model = 0; model < models.length; model++) ofAny += shelves.free(group, model);
    let gain = 0;
    for (let t = 0; t < this.#typical.length; t++) {
      const { share, cpuMilli, gpus, gpuMilli } = this.#typical[t] as TypicalDemand;
      const accepted = this.#accepted[t];
      let free = accepted === undefined ? ofAny : 0;
      if (accepted !== undefined) {
        for (const model of accepted) free += shelves.free(group, model);
      }
      const perCpu = (gpus * gpuMilli) / WHOLE_GPU / cpuMilli;
      const before = Math.max(0, free - cpu * perCpu);
      const after = Math.max(0, free - taken - (cpu - demand.cpuMilli) * perCpu);
      gain += share * (before - after);
    }
    return gain * WHOLE_GPU;
  }
}
