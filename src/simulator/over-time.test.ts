import { expect, it } from 'vitest';
import { overTime } from './over-time.ts';
import type { SimulateRun } from './result.ts';

type Timed = NonNullable<SimulateRun['timed']>;

const run = (makespanS: number, spanS: number, values: readonly number[]): Timed =>
  ({
    makespanS,
    overTime: values.map((allocatedPct, i) => ({ atS: i * spanS, allocatedPct, queued: 0 })),
  }) as Timed;

it('one run is as it is', () => {
  expect(overTime([run(25, 10, [10, 20, 40])], 'allocatedPct')).toEqual([
    { atS: 0, mean: 10, stdev: 0 },
    { atS: 10, mean: 20, stdev: 0 },
    { atS: 20, mean: 40, stdev: 0 },
  ]);
});

it('of runs with spans of different length the longest are taken', () => {
  // In spans of 20 s the first is 15, then 40 for 5 s and nothing for 15 s: 10.
  const points = overTime([run(25, 10, [10, 20, 40]), run(40, 20, [25, 30])], 'allocatedPct');
  expect(points).toEqual([
    { atS: 0, mean: 20, stdev: expect.closeTo(10 / Math.SQRT2, 12) },
    { atS: 20, mean: 20, stdev: expect.closeTo(20 / Math.SQRT2, 12) },
  ]);
});

it('goes on until the last run has ended', () => {
  const points = overTime([run(20, 10, [50, 50]), run(30, 10, [50, 50, 80])], 'allocatedPct');
  expect(points.map(({ mean }) => mean)).toEqual([50, 50, 40]);
});

it('nothing comes of nothing', () => {
  expect(overTime([], 'queued')).toEqual([]);
});
