import { Prng } from '#base/prng';
import { expect, test } from 'vitest';
import type { Demand, Machine } from './demand.ts';
import { fewestPooled, fewestServers } from './fewest.ts';
import { fill } from './fill.ts';
import { bestFitInPool } from './pool-policy.ts';
import { DEFAULT_SHAPE } from './pool-hardware.ts';
import {
  type FewestRow,
  fillRun,
  RESULT_SCHEMA,
  type SimulateResult,
  simulateResult,
} from './result.ts';
import { bestFit } from './server-policy.ts';
import { ServerDesign } from './server-design.ts';
import { drawArrivals, workloadOf } from './workload.ts';

// Machines with 4 GPUs and CPU for one request, beside machines with CPU for three and no GPU.
const machine = (name: string, gpus: number, cpus: number): Machine => ({
  name,
  cpuMilli: cpus * 1000,
  memoryMib: 1000,
  gpus,
  model: gpus === 0 ? '' : 'G',
});
const machines = [1, 2, 3, 4].flatMap((n) => [machine(`a${n}`, 4, 4), machine(`b${n}`, 0, 12)]);
const asked: Demand = { cpuMilli: 4000, memoryMib: 1, gpus: 1, gpuMilli: 1000, models: [] };
// 8 GPUs are half of the 16 there are: the list itself, and not one request more.
const workload = workloadOf(Array.from({ length: 8 }, () => asked));
const input = { machines, workload, seeds: [1, 2], demandPct: 50, sharePct: 99, scan: 2 };

test('servers: one request each of the machines with GPUs, every other one', () => {
  expect(fewestServers(input, bestFit)).toEqual({ servers: 15, gpus: 32 });
});

test('pool: as many GPUs as are asked for; two pairs of hosts have CPU for 4 requests each', () => {
  expect(fewestPooled(input, bestFitInPool, DEFAULT_SHAPE)).toEqual({ gpus: 8, servers: 4 });
});

test('three quarters of the demand take three quarters of that', () => {
  expect(fewestPooled({ ...input, sharePct: 75 }, bestFitInPool, DEFAULT_SHAPE)).toEqual({
    gpus: 6,
    // The first three hosts have CPU for 1 + 3 + 1 requests.
    servers: 4,
  });
});

test('a demand that no number of machines holds', () => {
  const hopeless = workloadOf([{ ...asked, gpus: 5 }]);
  expect(fewestServers({ ...input, workload: hopeless }, bestFit)).toBeUndefined();
});

test('both answers have a place in the schema', () => {
  const prng = new Prng(1);
  const arrivals = drawArrivals(workload, prng.fork(), 16_000, 50);
  const design = new ServerDesign(machines, workload, bestFit, prng.fork());
  const name = { design: 'server', policy: 'best-fit', setting: {} } as const;
  const run = fillRun(name, 1, { gpus: 16, servers: 8 }, fill(design, workload.kinds, arrivals));
  expect(run).toMatchObject({ requests: 8, placed: 4 });
  expect(run.unplaced['no-cpu-beside-gpu']).toBe(4);
  // 4 of 16 GPUs.
  expect(run.curve.at(-1)).toEqual({ arrivedPct: 50, allocatedPct: 25 });
  const row: FewestRow = { ...name, seeds: 2, demandGpus: 8, sharePct: 99, gpus: 32, servers: 15 };
  const result: SimulateResult = { schema: RESULT_SCHEMA, runs: [run], summary: [], fewest: [row] };
  expect(simulateResult.parse(JSON.parse(JSON.stringify(result)))).toEqual(result);
});
