/** Time by the clock and time of the processor, call by call: they differ while others use the machine. */
import { performance } from 'node:perf_hooks';

interface Moment {
  readonly ms: number;
  readonly cpu: NodeJS.CpuUsage;
}

/** Costs about 1 µs. */
export function now(): Moment {
  return { cpu: process.cpuUsage(), ms: performance.now() };
}

export class Spent {
  readonly ms: number[] = [];
  /** In steps of 1 µs, collecting garbage and compiling included. */
  readonly cpuNs: number[] = [];

  since(begin: Moment): void {
    this.ms.push(performance.now() - begin.ms);
    const { user, system } = process.cpuUsage(begin.cpu);
    this.cpuNs.push((user + system) * 1000);
  }

  with(other: Spent): Spent {
    const both = new Spent();
    both.ms.push(...this.ms, ...other.ms);
    both.cpuNs.push(...this.cpuNs, ...other.cpuNs);
    return both;
  }
}

/** What one piece of work took in a process of its own, and before it the baseline (`raw`). */
export interface Took {
  readonly ms: number;
  /** Of all threads. */
  readonly cpuNs: number;
  readonly rawMs: number;
  readonly rawCpuNs: number;
  readonly peakRssBytes: number;
}

export function tookOf(work: Spent, raw: Spent): Took {
  return {
    ms: work.ms[0] ?? Number.NaN,
    cpuNs: work.cpuNs[0] ?? Number.NaN,
    rawMs: raw.ms[0] ?? Number.NaN,
    rawCpuNs: raw.cpuNs[0] ?? Number.NaN,
    peakRssBytes: process.resourceUsage().maxRSS * 1024,
  };
}

/** `quantile` 1 is the largest. */
export function quantileOf(values: readonly number[], quantile: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  const at = Math.ceil(quantile * sorted.length) - 1;
  return sorted[Math.max(0, at)] ?? Number.NaN;
}
