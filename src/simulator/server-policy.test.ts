import { Prng } from '#base/prng';
import { expect, test } from 'vitest';
import type { Demand, Machine } from './demand.ts';
import { fgd } from './fgd.ts';
import { Fragmentation, typicalDemands } from './fragmentation.ts';
import {
  bestFit,
  dotProduct,
  gpuClustering,
  gpuPacking,
  type MakeServerPolicy,
  random,
  tightestGpu,
} from './server-policy.ts';
import { Servers } from './servers.ts';
import { workloadOf } from './workload.ts';

const machine = (name: string, gpus: number, cpus: number, model = 'G2'): Machine => ({
  name,
  cpuMilli: cpus * 1000,
  memoryMib: 1 << 20,
  gpus,
  model,
});
const demand = (gpus: number, gpuMilli: number, cpus = 0, models: string[] = []): Demand => ({
  cpuMilli: cpus * 1000,
  memoryMib: 1,
  gpus,
  gpuMilli,
  models,
});
const make = (policy: MakeServerPolicy, servers: Servers, demands: Demand[], seed = 1) =>
  policy({ servers, workload: workloadOf(demands), prng: new Prng(seed) });

/** The largest machine has 128 CPUs and 8 GPUs, as published. */
const pair = (): Servers => new Servers([machine('a', 8, 128), machine('b', 4, 64, 'T4')]);

test('best fit: half the share of CPU left and half that of GPU left, from 100 down', () => {
  const asked = demand(2, 1000, 32);
  const policy = make(bestFit, pair(), [asked]);
  // a: 96 of 128 CPUs and 6 of 8 GPUs left: 100 × (1 − 0.75) = 25.
  expect(policy.score(0, asked)).toBe(25);
  // b: 32 of 128 and 2 of 8 left: 75.
  expect(policy.score(1, asked)).toBe(75);
});

test('dot product: half the sum of free times asked, by the largest machine, from 100 down', () => {
  const asked = demand(4, 1000, 32);
  const policy = make(dotProduct, pair(), [asked]);
  // a: (1 × 0.25 + 1 × 0.5) ÷ 2 = 0.375, 62.5 cut to 62; b: (0.5 × 0.25 + 0.5 × 0.5) ÷ 2, 81.25.
  expect(policy.score(0, asked)).toBe(62);
  expect(policy.score(1, asked)).toBe(81);
});

test('GPU clustering: alone with its size, beside others, empty, others alone', () => {
  const half = demand(1, 500);
  const two = demand(2, 1000);
  const servers = new Servers([1, 2, 3, 4].map((n) => machine(`s${n}`, 8, 128)));
  const policy = make(gpuClustering, servers, [half, two]);
  servers.take(0, two, -1);
  servers.take(1, two, -1);
  servers.take(1, half, 7);
  servers.take(3, half, 0);
  // Used GPU in quarters of 100: 2 of 8 is 6.25, 2.5 of 8 is 7.8125, 0.5 of 8 is 1.5625, all cut.
  expect([0, 1, 2, 3].map((s) => policy.score(s, two))).toEqual([81, 57, 25, 1]);
  expect([0, 1, 2, 3].map((s) => policy.score(s, half))).toEqual([6, 57, 25, 76]);
  expect(policy.score(0, demand(0, 0, 4))).toBe(0);
});

test('GPU packing: shared GPUs, then free GPUs of a server in use, then a free server', () => {
  const half = demand(1, 500);
  const servers = new Servers([machine('a', 8, 128), machine('b', 8, 128), machine('c', 2, 16)]);
  const policy = make(gpuPacking, servers, [half]);
  servers.take(0, demand(1, 380), 3);
  // 620 thousandths are left of it: 62 %, a tenth of it cut to 6.
  expect(policy.score(0, half)).toBe(94);
  expect(policy.score(0, demand(2, 1000))).toBe(48);
  expect(policy.score(1, half)).toBe(33 - 8);
  expect(policy.score(2, half)).toBe(33 - 2);
});

test('the tightest GPU that is enough; the first of equals', () => {
  const servers = new Servers([machine('a', 4, 64)]);
  servers.take(0, demand(1, 300), 1);
  servers.take(0, demand(1, 300), 2);
  servers.take(0, demand(1, 600), 3);
  expect(tightestGpu(servers, 0, demand(1, 400))).toBe(3);
  expect(tightestGpu(servers, 0, demand(1, 500))).toBe(1);
  expect(tightestGpu(servers, 0, demand(1, 800))).toBe(0);
});

test('random: every server, and every GPU with enough left, about equally often', () => {
  const servers = new Servers([machine('a', 4, 64), machine('b', 4, 64), machine('c', 4, 64)]);
  const half = demand(1, 500);
  servers.take(0, demand(1, 600), 2);
  const policy = make(random, servers, [half]);
  const won = [0, 0, 0];
  const gpus = [0, 0, 0, 0];
  for (let i = 0; i < 3000; i++) {
    const scores = [0, 1, 2].map((s) => policy.score(s, half));
    won[scores.indexOf(Math.max(...scores))]! += 1;
    gpus[policy.gpuFor(0, half)]! += 1;
  }
  // 1000 each; the standard deviation of each count is 26.
  for (const count of [...won, gpus[0]!, gpus[1]!, gpus[3]!]) {
    expect(Math.abs(count - 1000)).toBeLessThan(130);
  }
  expect(gpus[2]).toBe(0);
});

test('typical demands: the commonest until 95 %, shares among them, memory aside', () => {
  const often = demand(1, 1000, 4);
  const list = [
    ...Array.from({ length: 60 }, () => often),
    ...Array.from({ length: 20 }, () => ({ ...often, memoryMib: 99 })),
    ...Array.from({ length: 16 }, () => demand(1, 500, 2)),
    ...Array.from({ length: 4 }, () => demand(8, 1000, 64)),
  ];
  const typical = typicalDemands(workloadOf(list));
  expect(typical.map(({ cpuMilli, share }) => [cpuMilli, share])).toEqual([
    [4000, 80 / 96],
    [2000, 16 / 96],
  ]);
});

test('fragmentation: what typical demands cannot use of the free GPU, weighed', () => {
  const typical = [
    { cpuMilli: 8000, gpus: 1, gpuMilli: 1000, models: [], share: 0.5 },
    { cpuMilli: 2000, gpus: 1, gpuMilli: 400, models: ['T4'], share: 0.3 },
    { cpuMilli: 4000, gpus: 0, gpuMilli: 0, models: [], share: 0.2 },
  ];
  const fragmentation = new Fragmentation(typical, ['G2', 'T4']);
  // G2, 16 CPUs, one GPU free and 300 of another: the whole one serves the first, who cannot use
  // the 300; the second may not use G2; the third uses no GPU.
  expect(fragmentation.amount(16_000, 0, [1000, 300])).toBeCloseTo(
    0.5 * 300 + 0.3 * 1300 + 0.2 * 1300,
    9,
  );
  // T4, 2 CPUs: the first has no CPU; the second cannot use the 300.
  expect(fragmentation.amount(2000, 1, [1000, 300])).toBeCloseTo(
    0.5 * 1300 + 0.3 * 300 + 0.2 * 1300,
    9,
  );
});

test('FGD puts a part where it hurts least: on the GPU already broken into', () => {
  const whole = demand(1, 1000, 4);
  const half = demand(1, 500, 4);
  const list = [...Array.from({ length: 8 }, () => whole), half, half];
  const servers = new Servers([machine('a', 2, 64), machine('b', 2, 64)]);
  const kinds = workloadOf(list);
  const policy = fgd({ servers, workload: kinds, prng: new Prng(1) });
  const [wholeKind, halfKind] = kinds.kinds as [Demand, Demand];
  servers.take(1, halfKind, 1);
  // b before: wholes (0.8) cannot use 500: 400 in all. After: 0, gain 400.
  expect(policy.score(1, halfKind)).toBe(Math.trunc(100 / (1 + Math.exp(-0.4))));
  expect(policy.gpuFor(1, halfKind)).toBe(1);
  // a before: 0. After: 0.8 × 500, gain −400.
  expect(policy.score(0, halfKind)).toBe(Math.trunc(100 / (1 + Math.exp(0.4))));
  // A whole GPU of a adds no fragmentation: sigmoid of 0.
  expect(policy.score(0, wholeKind)).toBe(50);
});
