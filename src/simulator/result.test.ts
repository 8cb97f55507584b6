import { expect, test } from 'vitest';
import { RESULT_SCHEMA, type SimulateRun, simulateResult, summarise, timedRun } from './result.ts';
import type { TimedResult } from './timed-book.ts';

const run = (seed: number, points: readonly [number, number][], reach = 'rack'): SimulateRun => ({
  design: 'pool',
  policy: 'fgd',
  seed,
  setting: { reach, slots: 16 },
  gpus: 8,
  servers: 1,
  requests: 2,
  placed: 2,
  unplaced: {
    model: 0,
    'no-cpu-beside-gpu': 0,
    'no-slot': 0,
    fragmentation: 0,
    'no-gpu-beside-cpu': 0,
  },
  curve: points.map(([arrivedPct, allocatedPct]) => ({ arrivedPct, allocatedPct })),
});

test('seeds of one setting are averaged, where all of them have a point', () => {
  const runs = [
    run(1, [
      [80, 79],
      [90, 88],
    ]),
    run(2, [[80, 80]]),
    run(1, [[80, 60]], 'pod'),
  ];
  const summary = summarise(runs);
  expect(
    summary.map(({ setting, arrivedPct, seeds }) => [setting['reach'], arrivedPct, seeds]),
  ).toEqual([
    ['rack', 80, 2],
    ['pod', 80, 1],
  ]);
  // Mean of 79 and 80; their standard deviation is 1 ÷ √2.
  expect(summary[0]).toMatchObject({ allocatedPctMean: 79.5, allocatedPctStdev: 0.7071 });
  const result = { schema: RESULT_SCHEMA, runs, summary };
  expect(simulateResult.parse(JSON.parse(JSON.stringify(result)))).toEqual(result);
});

test('a field too many is refused', () => {
  const result = { schema: RESULT_SCHEMA, runs: [], summary: [], more: 1 };
  expect(simulateResult.safeParse(result).success).toBe(false);
});

test('a run of jobs in time has a place in the schema; times in seconds', () => {
  const result: TimedResult = {
    jobs: 3,
    impossible: 1,
    waitMeanMs: 1500,
    waitMedianMs: 0,
    wait95Ms: 2000,
    waitMaxMs: 3000,
    turnaroundMeanMs: 9000,
    makespanMs: 60_000,
    utilisationPct: 100 / 3,
    overTime: [{ atMs: 0, allocatedPct: 50, queued: 0.5 }],
    failures: 2,
    restarts: 1,
    rebinds: 1,
    lostGpuHours: 0.25,
  };
  const name = { design: 'server', policy: 'fgd', setting: { overheadPct: 5 } } as const;
  const made = timedRun(name, 42, { gpus: 8, servers: 1 }, result);
  expect(made).toMatchObject({ requests: 4, placed: 3 });
  expect(made.timed).toMatchObject({ waitMeanS: 1.5, makespanS: 60, utilisationPct: 33.3333 });
  const whole = { schema: RESULT_SCHEMA, runs: [made], summary: [] };
  expect(simulateResult.parse(JSON.parse(JSON.stringify(whole)))).toEqual(whole);
});
