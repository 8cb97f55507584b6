import { Prng } from '#base/prng';
import { expect, test } from 'vitest';
import { Curve } from './curve.ts';
import type { Demand } from './demand.ts';
import { spreadOf, threeStandardErrors } from './statistics.ts';
import { drawArrivals, workloadOf } from './workload.ts';

const demand = (gpuMilli: number): Demand => ({
  cpuMilli: 1000,
  memoryMib: 0,
  gpus: gpuMilli === 0 ? 0 : 1,
  gpuMilli,
  models: [],
});
const count = (arrivals: Uint32Array, kind: number): number =>
  arrivals.filter((each) => each === kind).length;

test('equal demands are one kind', () => {
  const { kinds, kindOf } = workloadOf([demand(1000), demand(500), demand(1000)]);
  expect(kinds).toHaveLength(2);
  expect([...kindOf]).toEqual([0, 1, 0]);
});

test('the list once, then draws until the next would pass the share', () => {
  const workload = workloadOf([demand(1000), demand(1000), demand(300)]);
  const arrivals = drawArrivals(workload, new Prng(1), 10_000, 130);
  const total = count(arrivals, 0) * 1000 + count(arrivals, 1) * 300;
  expect(total).toBeLessThanOrEqual(13_000);
  expect(total).toBeGreaterThan(12_000);
  // The first three are the list itself, in some order.
  expect(arrivals.slice(0, 3).toSorted()).toEqual(Uint32Array.of(0, 0, 1));
  expect(drawArrivals(workload, new Prng(1), 10_000, 130)).toEqual(arrivals);
  expect(drawArrivals(workload, new Prng(2), 10_000, 130)).not.toEqual(arrivals);
});

test('a list that asks for more loses requests', () => {
  const workload = workloadOf(Array.from({ length: 40 }, () => demand(1000)));
  expect(drawArrivals(workload, new Prng(1), 10_000, 130)).toHaveLength(13);
});

test('a list without GPUs is refused: its arrivals would never end', () => {
  const workload = workloadOf([demand(0)]);
  expect(() => drawArrivals(workload, new Prng(1), 10_000, 130)).toThrow('never end');
});

test('the curve is the mean over arrivals that round to a percentage', () => {
  const curve = new Curve(1000);
  curve.add(8, 8);
  curve.add(12, 10);
  curve.add(12, 12);
  curve.add(30, 20);
  expect(curve.points()).toEqual([
    { arrivedPct: 1, allocatedPct: expect.closeTo(1, 12) },
    { arrivedPct: 3, allocatedPct: 2 },
  ]);
});

test('mean, standard deviation of a sample, and three standard errors', () => {
  expect(spreadOf([2, 4, 4, 4, 5, 5, 7, 9])).toEqual({
    mean: 5,
    stdev: Math.sqrt(32 / 7),
    count: 8,
  });
  expect(spreadOf([3])).toEqual({ mean: 3, stdev: 0, count: 1 });
  // √(9 ÷ 9 + 16 ÷ 4) = √5.
  const [a, b] = [
    { mean: 0, stdev: 3, count: 9 },
    { mean: 0, stdev: 4, count: 4 },
  ];
  expect(threeStandardErrors(a, b)).toBeCloseTo(3 * Math.sqrt(5), 12);
});
