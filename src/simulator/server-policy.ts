/**
 * How a policy chooses a server, and a GPU in it for a request of a part. A policy of one's own is
 * an object of this kind and a maker for it.
 */
import type { Prng } from '#base/prng';
import { type Demand, isShared, WHOLE_GPU } from './demand.ts';
import type { Servers } from './servers.ts';
import type { Workload } from './workload.ts';

export interface ServerPolicy {
  /**
   * How well server `s`, which has room, suits the demand. The highest wins; among equals the one
   * that comes first in the order of servers, which is random and the same for a whole run.
   */
  score(s: number, demand: Demand): number;
  /** The GPU of server `s` (from 0) that a part of a GPU comes from: one with enough left. */
  gpuFor(s: number, demand: Demand): number;
}

/** What a policy is made with: it may look at all of this, and change nothing. */
export interface ServerPolicyInput {
  readonly servers: Servers;
  readonly workload: Workload;
  readonly prng: Prng;
}

export type MakeServerPolicy = (input: ServerPolicyInput) => ServerPolicy;

/** The GPU with the least left that is enough; the first of equals. */
export function tightestGpu(servers: Servers, s: number, demand: Demand): number {
  const base = s * servers.stride;
  let best = -1;
  let bestLeft = Infinity;
  for (let gpu = 0; gpu < servers.stride; gpu++) {
    const left = servers.gpuLeft[base + gpu] as number;
    if (left >= demand.gpuMilli && left < bestLeft) {
      best = gpu;
      bestLeft = left;
    }
  }
  return best;
}

/** Any server that has room, and any GPU of it that has enough left. */
export const random: MakeServerPolicy = ({ servers, prng }) => ({
  // The largest of independent draws is each one's with the same probability.
  score: () => prng.float(),
  gpuFor: (s, demand) => {
    const enough: number[] = [];
    for (let gpu = 0; gpu < servers.stride; gpu++) {
      const left = servers.gpuLeft[s * servers.stride + gpu] as number;
      if (left >= demand.gpuMilli) enough.push(gpu);
    }
    return prng.pick(enough);
  },
});

/** The first server that has room. */
export const firstFit: MakeServerPolicy = ({ servers }) => ({
  score: () => 0,
  gpuFor: (s, demand) => tightestGpu(servers, s, demand),
});

/** The least CPU and GPU left afterwards, each as a share of the largest machine, weighed equally. */
export const bestFit: MakeServerPolicy = ({ servers }) => ({
  score: (s, demand) => {
    const cpu = ((servers.cpuLeft[s] as number) - demand.cpuMilli) / servers.maxCpuMilli;
    const gpu =
      ((servers.leftSum[s] as number) - demand.gpus * demand.gpuMilli) /
      (servers.stride * WHOLE_GPU);
    return Math.trunc((1 - (cpu * 0.5 + gpu * 0.5)) * 100);
  },
  gpuFor: (s, demand) => tightestGpu(servers, s, demand),
});

/** The smallest product of what is free and what is asked for, CPU and GPU, by the largest machine. */
export const dotProduct: MakeServerPolicy = ({ servers }) => ({
  score: (s, demand) => {
    const maxGpu = servers.stride * WHOLE_GPU;
    const cpu =
      ((servers.cpuLeft[s] as number) / servers.maxCpuMilli) *
      (demand.cpuMilli / servers.maxCpuMilli);
    const gpu =
      ((servers.leftSum[s] as number) / maxGpu) * ((demand.gpus * demand.gpuMilli) / maxGpu);
    return Math.trunc(100 * (1 - (cpu + gpu) / 2));
  },
  gpuFor: (s, demand) => tightestGpu(servers, s, demand),
});

/**
 * Servers with requests of the same size first: those with that size alone, then those that have it
 * too, then empty ones, then others; within each, the fullest.
 */
export const gpuClustering: MakeServerPolicy = ({ servers }) => ({
  score: (s, demand) => {
    if (demand.gpus === 0) return 0;
    const full = servers.stride * WHOLE_GPU;
    const used = Math.trunc((25 * (full - (servers.leftSum[s] as number))) / full);
    const size = s * (servers.stride + 1) + (isShared(demand) ? 0 : demand.gpus);
    const sizes = servers.sizes[s] as number;
    if ((servers.sizeCounts[size] as number) > 0) return used + (sizes === 1 ? 75 : 50);
    return used + (sizes === 0 ? 25 : 0);
  },
  gpuFor: (s, demand) => tightestGpu(servers, s, demand),
});

/** GPUs that are shared already first, then free GPUs of servers in use, then free servers. */
export const gpuPacking: MakeServerPolicy = ({ servers }) => ({
  score: (s, demand) => {
    if (demand.gpus === 0) return 0;
    const free = servers.wholeFree[s] as number;
    if (free === (servers.gpuCount[s] as number)) return Math.max(33 - free, free);
    const gpu = isShared(demand) ? tightestGpu(servers, s, demand) : -1;
    const left = gpu < 0 ? WHOLE_GPU : (servers.gpuLeft[s * servers.stride + gpu] as number);
    if (left === WHOLE_GPU) return Math.max(50 - demand.gpus, 33);
    return 100 - Math.trunc(Math.trunc((left * 100) / WHOLE_GPU) / 10);
  },
  gpuFor: (s, demand) => tightestGpu(servers, s, demand),
});
