import { Prng } from '#base/prng';
import { describe, expect, test } from 'vitest';
import { fc } from '#testkit/properties';
import type { Demand, Machine } from './demand.ts';
import type { Design, Placement } from './design.ts';
import { NO_FAILURES } from './failures.ts';
import type { Job } from './job-list.ts';
import { POOL_POLICIES, PoolDesign } from './pool-design.ts';
import { DEFAULT_SHAPE, placed, type PoolShape, takeApart } from './pool-hardware.ts';
import { SERVER_POLICIES, ServerDesign } from './server-design.ts';
import { DEFAULT_TIMED, runTimed, type TimedOptions } from './timed.ts';
import type { TimedResult } from './timed-book.ts';
import { workloadOf } from './workload.ts';

const demands = new Map<number, Demand>();
const gpusOf = (gpus: number): Demand => {
  const known = demands.get(gpus);
  const demand = known ?? { cpuMilli: 1000 * gpus, memoryMib: 0, gpus, gpuMilli: 1000, models: [] };
  demands.set(gpus, demand);
  return demand;
};
const job = (gpus: number, submitMs: number, durationMs: number, tasks = 1): Job => ({
  name: `${gpus}@${submitMs}`,
  workClass: gpus === 1 ? 'small' : 'large',
  submitMs,
  durationMs,
  tasks,
  demand: gpusOf(gpus),
});
const servers = (count: number, gpus: number): Machine[] =>
  Array.from({ length: count }, (_, i) => ({
    name: `s${i}`,
    cpuMilli: 64_000,
    memoryMib: 0,
    gpus,
    model: 'G',
  }));
const server = (machines: Machine[], policy = 'best-fit') =>
  new ServerDesign(
    machines,
    workloadOf([...demands.values()]),
    SERVER_POLICIES[policy]!,
    new Prng(1),
  );
const pool = (machines: Machine[], policy = 'best-fit', shape: Partial<PoolShape> = {}) =>
  new PoolDesign(
    takeApart(placed(machines), placed(machines), { ...DEFAULT_SHAPE, ...shape }),
    workloadOf([...demands.values()]),
    POOL_POLICIES[policy]!,
    new Prng(1),
  );
const run = (
  design: Design,
  jobs: Job[],
  options: Partial<TimedOptions> = {},
  seed = 1,
): TimedResult => runTimed(design, jobs, { ...DEFAULT_TIMED, ...options }, new Prng(seed));

describe('waiting', () => {
  // 4 GPUs. B must wait for A, until 10.
  const a = job(2, 0, 10);
  const b = job(4, 1, 5);

  test('first come first served', () => {
    // A 0–10, B 10–15, C 15–18: waits of 0, 9 and 13.
    const result = run(server(servers(1, 4)), [a, b, job(2, 2, 3)], { backfillDepth: 0 });
    expect(result.waitMeanMs).toBeCloseTo(22 / 3, 9);
    expect(result.waitMaxMs).toBe(13);
    expect(result.waitMedianMs).toBe(9);
    expect(result.turnaroundMeanMs).toBeCloseTo((10 + 14 + 16) / 3, 9);
    expect(result.makespanMs).toBe(18);
    // Up to the last submission, at 2, A has 2 of 4 GPUs.
    expect(result.utilisationPct).toBe(50);
  });

  test('a later job that ends before the first can start is started before it', () => {
    // C 2–10, beside A; B 10–15.
    const result = run(server(servers(1, 4)), [a, b, job(2, 2, 8)]);
    expect(result.waitMaxMs).toBe(9);
    expect(result.makespanMs).toBe(15);
  });

  test('one that would delay the first is not', () => {
    // D would end at 11: B 10–15, D 15–24.
    const result = run(server(servers(1, 4)), [a, b, job(2, 2, 9)]);
    expect(result.waitMaxMs).toBe(13);
    expect(result.makespanMs).toBe(24);
  });

  test('unless it stays clear of the place of the first', () => {
    // Servers of 4 and 1 GPUs. B is promised the first; E takes the other, 2–102.
    const machines = [...servers(1, 4), ...servers(1, 1)];
    const result = run(server(machines), [a, b, job(1, 2, 100)]);
    expect(result.waitMaxMs).toBe(9);
    expect(result.makespanMs).toBe(102);
  });

  test('2 GPUs of two servers hold no job of 2; those of a pool do', () => {
    const jobs = [job(1, 0, 10), job(1, 0, 10), job(2, 1, 5)];
    const machines = servers(2, 2);
    // Best fit puts the two small ones on one server.
    expect(run(server(machines), jobs).waitMaxMs).toBe(0);
    // With one GPU a server the large one never fits.
    expect(run(server(servers(4, 1)), jobs)).toMatchObject({ jobs: 2, impossible: 1 });
    expect(run(pool(servers(4, 1)), jobs)).toMatchObject({ jobs: 3, impossible: 0, waitMaxMs: 0 });
  });

  test('tasks of a job start together', () => {
    // Two tasks of 2 need both servers: at 10.
    const result = run(server(servers(2, 2)), [job(2, 0, 10), job(2, 1, 3, 2)]);
    expect(result.waitMaxMs).toBe(9);
    expect(result.makespanMs).toBe(13);
  });
});

test('overhead stretches a job by its class', () => {
  const overheadPct = (workClass: string): number => (workClass === 'small' ? 20 : 5);
  const result = run(pool(servers(1, 4)), [job(1, 0, 100), job(2, 0, 100)], { overheadPct });
  expect(result.makespanMs).toBeCloseTo(120, 9);
  expect(result.turnaroundMeanMs).toBeCloseTo((120 + 105) / 2, 9);
});

test('allocated GPUs and waiting jobs over time', () => {
  // 2 of 2 GPUs for 10, then 1 for 10; one waits from 0 to 10. A span is 1 ms at least.
  const jobs = [job(2, 0, 10), job(1, 0, 10), job(1, 20, 5)];
  const { overTime } = run(server(servers(1, 2)), jobs, { backfillDepth: 0 });
  expect(overTime[0]).toEqual({ atMs: 0, allocatedPct: 100, queued: expect.closeTo(1, 9) });
  const later = overTime.find(({ atMs }) => Math.abs(atMs - 15) < 1e-6)!;
  expect(later.allocatedPct).toBeCloseTo(50, 6);
  expect(later.queued).toBeCloseTo(0, 9);
  expect(overTime).toHaveLength(25);
});

describe('failures', () => {
  const HOUR = 3_600_000;
  const gpuFails = { ...NO_FAILURES, gpuMtbfH: 10, repairH: 1 };

  test('a pool goes on with a spare, and loses what came after the checkpoint', () => {
    const result = run(pool(servers(1, 8)), [job(1, 0, 200 * HOUR)], {
      failures: gpuFails,
      rebindMs: 0,
    });
    expect(result.rebinds).toBeGreaterThan(5);
    expect(result.restarts).toBe(0);
    expect(result.makespanMs).toBeCloseTo(200 * HOUR + result.lostGpuHours * HOUR, 0);
    // Checkpoints are half an hour apart.
    expect(result.lostGpuHours).toBeLessThan(result.rebinds * 0.5);
  });

  test('a server is out until its GPU is repaired, and the job waits', () => {
    const result = run(server(servers(1, 8)), [job(1, 0, 200 * HOUR)], { failures: gpuFails });
    expect(result.rebinds).toBe(0);
    expect(result.restarts).toBeGreaterThan(5);
    expect(result.makespanMs).toBeGreaterThan(200 * HOUR + result.lostGpuHours * HOUR);
    // It waited once, before its first start: not at all.
    expect(result.waitMaxMs).toBe(0);
  });

  // Such a run went on for ever.
  test.for([
    ['stopped before each checkpoint', pool, { gpuMtbfH: 0.01, repairH: 0 }],
    ['down, and as good as never repaired', server, { gpuMtbfH: 1, repairH: 1e9 }],
  ] as const)('a run whose jobs can never end is an error: %s', ([, design, rates]) => {
    const failures = { ...NO_FAILURES, ...rates };
    expect(() => run(design(servers(1, 4)), [job(4, 0, 10 * HOUR)], { failures })).toThrow(
      '100000 times in a row a failure left jobs where they were',
    );
  });

  test('a spare is of the same model, free, up, and in reach', () => {
    const machines: Machine[] = [...servers(2, 1), { ...servers(1, 1)[0]!, model: 'T4' }];
    const design = pool(machines);
    const held = design.place({ ...gpusOf(1), models: ['G'] })!;
    const [gpu] = held.gpus;
    design.setFailed({ kind: 'gpu', index: gpu! }, true);
    expect(design.hits({ kind: 'gpu', index: gpu! }, held)).toBe(true);
    const moved = design.rebind(held)!;
    expect(moved.gpus).not.toEqual(held.gpus);
    design.setFailed({ kind: 'gpu', index: moved.gpus[0]! }, true);
    expect(design.rebind(moved)).toBeUndefined();
    design.setFailed({ kind: 'gpu', index: gpu! }, false);
    expect(design.rebind(moved)?.gpus).toEqual(held.gpus);
  });

  test('a host that fails takes its jobs along', () => {
    const design = pool(servers(2, 1));
    const held = design.place(gpusOf(1))!;
    const unit = { kind: 'server', index: held.host } as const;
    design.setFailed(unit, true);
    expect(design.hits(unit, held)).toBe(true);
    expect(design.rebind(held)).toBeUndefined();
    expect(design.place(gpusOf(1))?.host).not.toBe(held.host);
  });

  test.for(['same-box', 'nvlink'] as const)(
    '%s: all GPUs move where one box has no spare',
    (together) => {
      const shape = { together, gpusPerBox: 2, nvlinkModels: ['G'] };
      const design = pool(servers(1, 4), 'best-fit', shape);
      const held = design.place(gpusOf(2))!;
      design.setFailed({ kind: 'gpu', index: held.gpus[0]! }, true);
      const moved = design.rebind(held)!;
      expect(new Set(moved.gpus.map((gpu) => Math.floor(gpu / 2))).size).toBe(1);
      expect(moved.gpus.some((gpu) => held.gpus.includes(gpu))).toBe(false);
    },
  );
});

/** Keeps its own list of what is held: nothing is given back twice, or never. */
function watched(design: Design): { design: Design; held: Set<Placement> } {
  const held = new Set<Placement>();
  const take = (placement: Placement): void => {
    expect(held.has(placement)).toBe(false);
    held.add(placement);
  };
  const give = (placement: Placement): void => {
    expect(held.delete(placement)).toBe(true);
  };
  const watching: Design = {
    name: design.name,
    capacityMilli: design.capacityMilli,
    units: design.units,
    place: (demand) => {
      const placement = design.place(demand);
      if (placement !== undefined) take(placement);
      return placement;
    },
    release: (placement) => {
      give(placement);
      design.release(placement);
    },
    retake: (placement) => {
      take(placement);
      design.retake(placement);
    },
    rebind: (placement) => {
      const moved = design.rebind(placement);
      if (moved === undefined) return undefined;
      give(placement);
      take(moved);
      return moved;
    },
    setFailed: (unit, failed) => design.setFailed(unit, failed),
    hits: (unit, placement) => design.hits(unit, placement),
    whyNot: (demand) => design.whyNot(demand),
  };
  return { design: watching, held };
}

test('every job ends and gives back what it had, failures or not; the same seed, the same answer', () => {
  const jobArb = fc
    .record({
      gpus: fc.integer({ min: 1, max: 4 }),
      at: fc.integer({ min: 0, max: 400 }),
      long: fc.integer({ min: 0, max: 120 }),
      tasks: fc.integer({ min: 1, max: 2 }),
    })
    .map(({ gpus, at, long, tasks }) => job(gpus, at * 60_000, long * 60_000, tasks));
  fc.assert(
    fc.property(
      fc.array(jobArb, { minLength: 1, maxLength: 25 }),
      fc.integer({ min: 1, max: 4 }),
      fc.constantFrom(0, 3, 100),
      fc.boolean(),
      fc.constantFrom('best-fit', 'fgd', 'placement'),
      fc.integer({ min: 0, max: 99 }),
      (jobs, count, backfillDepth, fails, policy, seed) => {
        const failures = fails
          ? { gpuMtbfH: 40, serverMtbfH: 30, boxMtbfH: 20, repairH: 1 }
          : NO_FAILURES;
        const options = { backfillDepth, failures, checkpointMs: 60_000 };
        const builds = [
          () => pool(servers(count, 3), policy, { gpusPerBox: 4, slotsPerHost: 5 }),
          ...(policy === 'placement' ? [] : [() => server(servers(count, 3), policy)]),
        ];
        for (const build of builds) {
          const { design, held } = watched(build());
          const result = run(design, jobs, options, seed);
          expect(held.size).toBe(0);
          expect(result.jobs + result.impossible).toBe(jobs.length);
          expect(run(build(), jobs, options, seed)).toEqual(result);
          if (!fails) expect([result.failures, result.restarts, result.rebinds]).toEqual([0, 0, 0]);
        }
      },
    ),
    { numRuns: 60 },
  );
});
