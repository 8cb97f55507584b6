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
  const onHosts = new Fragmentation(typical, pool.models);
  const inGroups = new GroupFragmentation(pool, typical);
  const fit = bestFitInPool(input);
  return {
    keepsHosts: true,
    boxesAlike: true,
    // Scores are thousandths of GPU that are no longer fragmented. Best fit, between −2 and 0, is
    // about as much as rounding.
    scoreHost: (h, demand, shares) =>
      gainOnHost(pool, onHosts, h, demand, shares) + fit.scoreHost(h, demand, shares),
    scoreBox: (b, take, demand) => fit.scoreBox(b, take, demand),
    scoreGroup: (group, demand, shares) => inGroups.gain(group, demand, shares),
  };
};

/** What the host's shared GPUs become less fragmented by. */
function gainOnHost(
  pool: Pool,
  fragmentation: Fragmentation,
  h: number,
  demand: Demand,
  shares: boolean,
): number {
  const parts = pool.parts[h] as readonly number[];
  const newPart = isShared(demand) && !shares;
  if (parts.length === 0 && !newPart) return 0;
  const before = amountOf(pool, fragmentation, parts, pool.cpuLeft[h] as number, -1, 0);
  const cpu = (pool.cpuLeft[h] as number) - demand.cpuMilli;
  const part = shares ? pool.tightestPart(h, demand) : -1;
  let after = amountOf(pool, fragmentation, parts, cpu, part, demand.gpuMilli);
  if (newPart) {
    // Of which model it will be is not known yet: of the first that will do.
    const model = pool.accepted(demand)[0] ?? 0;
    after += fragmentation.amount(cpu, model, [WHOLE_GPU - demand.gpuMilli]);
  }
  return before - after;
}

/** Over the models of a host's shared GPUs; `part` loses `milli` first. */
function amountOf(
  pool: Pool,
  fragmentation: Fragmentation,
  parts: readonly number[],
  cpuLeft: number,
  part: number,
  milli: number,
): number {
  let total = 0;
  for (const [at, gpu] of parts.entries()) {
    const model = pool.modelOf(gpu);
    // Once a model, at its first GPU.
    if (parts.findIndex((other) => pool.modelOf(other) === model) < at) continue;
    const left = parts
      .filter((other) => pool.modelOf(other) === model)
      .map((other) => (pool.gpuLeft[other] as number) - (other === part ? milli : 0));
    total += fragmentation.amount(cpuLeft, model, left);
  }
  return total;
}

class GroupFragmentation {
  readonly #pool: Pool;
  readonly #typical: readonly TypicalDemand[];
  readonly #accepted: readonly (readonly number[])[];

  constructor(pool: Pool, typical: readonly TypicalDemand[]) {
    this.#pool = pool;
    this.#typical = typical.filter(({ gpus, cpuMilli }) => gpus > 0 && cpuMilli > 0);
    this.#accepted = this.#typical.map(({ models }) =>
      [...pool.models.keys()].filter(
        (model) => models.length === 0 || models.includes(pool.models[model] ?? ''),
      ),
    );
  }

  /** What the group's boxes become less fragmented by, in thousandths of a GPU. */
  gain(group: number, demand: Demand, shares: boolean): number {
    const cpu = this.#pool.groupCpuLeft[group] as number;
    const taken = shares ? 0 : demand.gpus;
    let gain = 0;
    for (let t = 0; t < this.#typical.length; t++) {
      const { share, cpuMilli, gpus, gpuMilli } = this.#typical[t] as TypicalDemand;
      let free = 0;
      for (const model of this.#accepted[t] as readonly number[]) {
        free += this.#pool.shelves.free(group, model);
      }
      const perCpu = (gpus * gpuMilli) / WHOLE_GPU / cpuMilli;
      const before = Math.max(0, free - cpu * perCpu);
      const after = Math.max(0, free - taken - (cpu - demand.cpuMilli) * perCpu);
      gain += share * (before - after);
    }
    return gain * WHOLE_GPU;
  }
}
