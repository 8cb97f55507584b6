/**
 * How a policy chooses host and boxes, together: the score of a placement is that of the host plus
 * that of the boxes, and the highest wins. A policy of one's own is an object of this kind and a
 * maker for it.
 */
import type { Prng } from '#base/prng';
import { type Demand, isShared, WHOLE_GPU } from './demand.ts';
import type { Placement } from './design.ts';
import type { Pool } from './pool.ts';
import type { Workload } from './workload.ts';

export interface PoolPolicy {
  /**
   * `scoreHost` depends on the state of that host alone, so that it need not be asked again before
   * the host changes.
   */
  readonly keepsHosts: boolean;
  /** `scoreBox` is the same for boxes of one model with as many free GPUs: one of them is asked. */
  readonly boxesAlike: boolean;
  /**
   * How well host `h`, which has room, suits the demand. `shares`: a part of a GPU it shares out
   * already (`pool.tightestPart`), so that no box is chosen. Among equals the first host wins.
   */
  scoreHost(h: number, demand: Demand, shares: boolean): number;
  /** How well it suits to take so many GPUs of box `b`, which has them free. */
  scoreBox(b: number, take: number, demand: Demand): number;
  /** How well it suits to give group `group` the demand, whichever host and boxes; added to both. */
  scoreGroup?(group: number, demand: Demand, shares: boolean): number;
  /** Chooses the GPUs itself, once the host is known; without it those of the best boxes are taken. */
  gpusFor?(h: number, demand: Demand): readonly number[];
  /** Is told of every placement (1) and release (−1). */
  moved?(placement: Placement, sign: 1 | -1): void;
}

/** What a policy is made with: it may look at all of this, and change nothing. */
export interface PoolPolicyInput {
  readonly pool: Pool;
  readonly workload: Workload;
  readonly prng: Prng;
}

export type MakePoolPolicy = (input: PoolPolicyInput) => PoolPolicy;

/** Any host that has room, and any box. */
export const randomInPool: MakePoolPolicy = ({ prng }) => ({
  keepsHosts: false,
  boxesAlike: false,
  scoreHost: () => prng.float(),
  scoreBox: () => prng.float(),
});

/** The first host that has room, and the first box. */
export const firstFitInPool: MakePoolPolicy = ({ pool }) => ({
  keepsHosts: true,
  boxesAlike: false,
  scoreHost: (h) => -h,
  // Under 1, so that it never outweighs a host.
  scoreBox: (b) => -b / (pool.boxCount + 1),
});

/** CPU left on the host afterwards, as a share of the largest host. */
const cpuAfter = (pool: Pool, h: number, demand: Demand): number =>
  ((pool.cpuLeft[h] as number) - demand.cpuMilli) / pool.maxCpuMilli;

/** Left afterwards of the GPU that a part goes to, as a share of it: nobody but this host can use it. */
const partAfter = (pool: Pool, h: number, demand: Demand, shares: boolean): number => {
  const left = shares ? (pool.gpuLeft[pool.tightestPart(h, demand)] as number) : WHOLE_GPU;
  return (left - demand.gpuMilli) / WHOLE_GPU;
};

/** GPUs free in a box afterwards, as a share of a full one. */
const boxAfter = (pool: Pool, b: number, take: number): number =>
  ((pool.boxFree[b] as number) - take) / pool.stride;

/**
 * The least CPU left on the host and the least left of a GPU that parts are taken of, each as a
 * share of a whole one, weighed equally; then the fewest GPUs left in the box.
 */
export const bestFitInPool: MakePoolPolicy = ({ pool }) => ({
  keepsHosts: true,
  boxesAlike: true,
  scoreHost: (h, demand, shares) =>
    -cpuAfter(pool, h, demand) - (isShared(demand) ? partAfter(pool, h, demand, shares) : 0),
  scoreBox: (b, take) => -boxAfter(pool, b, take) / 1000,
});

/** The smallest product of what is free and what is asked for: CPU of the host, GPU of the box. */
export const dotProductInPool: MakePoolPolicy = ({ pool }) => {
  const full = pool.stride * WHOLE_GPU;
  return {
    keepsHosts: true,
    boxesAlike: true,
    scoreHost: (h, demand, shares) => {
      const cpu = ((pool.cpuLeft[h] as number) * demand.cpuMilli) / pool.maxCpuMilli ** 2;
      const left = shares ? (pool.gpuLeft[pool.tightestPart(h, demand)] as number) : 0;
      return -cpu - (left * demand.gpuMilli) / full ** 2;
    },
    scoreBox: (b, take, demand) =>
      -((pool.boxFree[b] as number) * WHOLE_GPU * take * demand.gpuMilli) / full ** 2,
  };
};

/** Shared GPUs first; then hosts that have GPUs, with boxes in use; then others. */
export const gpuPackingInPool: MakePoolPolicy = ({ pool }) => ({
  keepsHosts: true,
  boxesAlike: true,
  scoreHost: (h, demand, shares) => {
    if (demand.gpus === 0) return 0;
    if (shares) return 100 - (pool.gpuLeft[pool.tightestPart(h, demand)] as number) / 100;
    const slots = pool.hardware.hosts[h]?.slots ?? 0;
    return (pool.slotsLeft[h] as number) < slots ? 50 : 25;
  },
  scoreBox: (b, take) => {
    const used = (pool.boxSize[b] as number) - (pool.boxFree[b] as number);
    return (used > 0 ? 12 : 0) - ((pool.boxFree[b] as number) - take) / pool.stride;
  },
});

/**
 * Hosts with requests of the same size first: those with that size alone, then those that have it
 * too, then those without GPUs, then others; within each, those with the most slots in use.
 */
export const gpuClusteringInPool: MakePoolPolicy = ({ pool }) => {
  const width = pool.hardware.hosts.reduce((most, { slots }) => Math.max(most, slots), 0) + 1;
  const counts = new Uint32Array(pool.hostCount * width);
  const sizes = new Uint16Array(pool.hostCount);
  const sizeOf = (demand: Demand): number => (isShared(demand) ? 0 : demand.gpus);
  return {
    keepsHosts: true,
    boxesAlike: true,
    scoreHost: (h, demand) => {
      if (demand.gpus === 0) return 0;
      const used = (25 * (width - 1 - (pool.slotsLeft[h] as number))) / (width - 1);
      const alone = sizes[h] as number;
      if ((counts[h * width + sizeOf(demand)] as number) > 0) return used + (alone === 1 ? 75 : 50);
      return used + (alone === 0 ? 25 : 0);
    },
    scoreBox: (b, take) => -boxAfter(pool, b, take),
    moved: ({ host, demand }, sign) => {
      if (demand.gpus === 0) return;
      const at = host * width + sizeOf(demand);
      const before = counts[at] as number;
      counts[at] = before + sign;
      if (before === 0) sizes[host] = (sizes[host] as number) + 1;
      if (before + sign === 0) sizes[host] = (sizes[host] as number) - 1;
    },
  };
};
