import { Prng } from '#base/prng';
import { describe, expect, test } from 'vitest';
import type { Demand, Machine } from './demand.ts';
import type { UnplacedReason } from './design.ts';
import { servesShare, smallest } from './fewest.ts';
import { POOL_POLICIES, PoolDesign } from './pool-design.ts';
import {
  DEFAULT_SHAPE,
  placed,
  type PoolShape,
  spreadMachines,
  takeApart,
} from './pool-hardware.ts';
import { SERVER_POLICIES, ServerDesign } from './server-design.ts';
import { Tournament } from './tournament.ts';
import { workloadOf } from './workload.ts';

const machine = (gpus: number, cpus = 16, model = 'G2'): Machine => ({
  name: '',
  cpuMilli: cpus * 1000,
  memoryMib: 1000,
  gpus,
  model: gpus === 0 ? '' : model,
});
const demand = (gpus: number, cpus = 1, gpuMilli = 1000, models: string[] = []): Demand => ({
  cpuMilli: cpus * 1000,
  memoryMib: 1,
  gpus,
  gpuMilli: gpus === 0 ? 0 : gpuMilli,
  models,
});
const pool = (machines: Machine[], shape: Partial<PoolShape> = {}, policy = 'best-fit') => {
  const apart = takeApart(placed(machines), placed(machines), { ...DEFAULT_SHAPE, ...shape });
  return new PoolDesign(apart, workloadOf([demand(1)]), POOL_POLICIES[policy]!, new Prng(1));
};

describe('taking machines apart', () => {
  const machines = [machine(3), machine(2, 8, 'T4'), machine(4), machine(0, 64)];

  test('boxes of one model, the last one of each partly filled', () => {
    const { hosts, boxes } = takeApart(placed(machines), placed(machines), {
      ...DEFAULT_SHAPE,
      gpusPerBox: 4,
      nvlinkModels: ['G2'],
    });
    expect(hosts.map(({ slots, group }) => [slots, group])).toEqual(Array(4).fill([16, 0]));
    expect(boxes.map(({ model, gpus, nvlink }) => [model, gpus, nvlink])).toEqual([
      ['G2', 4, true],
      ['G2', 3, true],
      ['T4', 2, false],
    ]);
  });

  test('racks are machines that stand beside each other in the list', () => {
    const shape = { ...DEFAULT_SHAPE, reach: 'rack', machinesPerRack: 2 } as const;
    const { hosts, boxes, groups } = takeApart(placed(machines), placed(machines), shape);
    expect(groups).toBe(2);
    expect(hosts.map(({ group }) => group)).toEqual([0, 0, 1, 1]);
    expect(boxes.map(({ model, gpus, group }) => [model, gpus, group])).toEqual([
      ['G2', 3, 0],
      ['T4', 2, 0],
      ['G2', 4, 1],
    ]);
  });

  test('fewer GPUs than the machines had', () => {
    const { boxes } = takeApart(placed(machines), placed(machines), DEFAULT_SHAPE, 4);
    expect(boxes.map(({ model, gpus }) => [model, gpus])).toEqual([
      ['G2', 3],
      ['T4', 1],
    ]);
  });

  test('every beginning of the spread has the mix; after the end it starts again elsewhere', () => {
    const list = [
      ...Array.from({ length: 6 }, () => machine(8)),
      ...[1, 2, 3].map(() => machine(2)),
    ];
    const spread = spreadMachines(list, 20);
    for (const count of [3, 6, 9]) {
      const large = spread.slice(0, count).filter(({ machine: { gpus } }) => gpus === 8);
      expect(large).toHaveLength((count * 2) / 3);
    }
    expect(new Set(spread.map(({ position }) => position)).size).toBe(20);
    expect(spread[9]?.machine).toBe(spread[0]?.machine);
  });
});

describe('what a request gets', () => {
  test('a part shares a GPU of its host, in one slot; the last one to leave frees the GPU', () => {
    const design = pool([machine(2)], { slotsPerHost: 1 });
    const first = design.place(demand(1, 1, 400))!;
    const second = design.place(demand(1, 1, 500))!;
    expect(second.gpus).toEqual(first.gpus);
    expect(design.place(demand(1, 1, 400))).toBeUndefined();
    expect(design.whyNot(demand(1, 1, 400))).toBe('no-slot');
    design.release(first);
    expect(design.place(demand(1, 1, 500))?.gpus).toEqual(first.gpus);
    expect(design.pool.boxFree[0]).toBe(1);
  });

  test('GPUs of one box where one has enough, of several where that is allowed', () => {
    const machines = [machine(4, 64), machine(2, 64)];
    const boxes = (shape: Partial<PoolShape>, gpus: number): number[] | undefined => {
      const design = pool(machines, { gpusPerBox: 3, ...shape });
      const placement = design.place(demand(gpus));
      return placement?.gpus.map((gpu) => Math.floor(gpu / 3));
    };
    expect(boxes({}, 3)).toEqual([0, 0, 0]);
    expect(boxes({}, 4)).toEqual([0, 0, 0, 1]);
    expect(boxes({ together: 'same-box' }, 4)).toBeUndefined();
    expect(boxes({ together: 'nvlink' }, 2)).toBeUndefined();
    expect(boxes({ together: 'nvlink', nvlinkModels: ['G2'] }, 2)).toEqual([0, 0]);
    expect(boxes({ together: 'nvlink' }, 1)).toHaveLength(1);
  });

  test('a host beyond whose rack GPUs are free gets none of them', () => {
    const machines = [machine(0, 64), machine(1, 1)];
    const asked = demand(1, 4);
    expect(pool(machines).place(asked)).toBeDefined();
    const design = pool(machines, { reach: 'rack', machinesPerRack: 1 });
    expect(design.place(asked)).toBeUndefined();
    expect(design.whyNot(asked)).toBe('no-cpu-beside-gpu');
  });

  test('several GPUs are of one model', () => {
    const design = pool([machine(1, 64), machine(1, 64, 'T4')]);
    expect(design.place(demand(2))).toBeUndefined();
    expect(design.whyNot(demand(2))).toBe('fragmentation');
  });

  test('a box that is down gives nothing, and again once it is up', () => {
    for (const policy of Object.keys(POOL_POLICIES)) {
      const design = pool([machine(1)], {}, policy);
      design.pool.setBoxDown(0, true);
      expect(design.place(demand(1))).toBeUndefined();
      design.pool.setBoxDown(0, false);
      expect(design.place(demand(1))).toBeDefined();
    }
  });
});

describe('why not', () => {
  const cases: readonly [UnplacedReason, Machine[], Demand[], Demand][] = [
    ['model', [machine(1)], [], demand(1, 1, 1000, ['T4'])],
    ['no-cpu-beside-gpu', [machine(2, 4)], [demand(1, 4)], demand(1, 1)],
    ['no-cpu-beside-gpu', [machine(1, 4)], [demand(1, 3, 400)], demand(1, 2, 400)],
    ['no-cpu-beside-gpu', [machine(1, 4)], [], demand(0, 8)],
    ['no-gpu-beside-cpu', [machine(1)], [demand(1)], demand(1)],
    ['fragmentation', [machine(2)], [demand(1, 1, 600), demand(1, 1, 600)], demand(1, 1, 500)],
  ];
  const designs = {
    server: (machines: Machine[]) =>
      new ServerDesign(
        machines,
        workloadOf([demand(1)]),
        SERVER_POLICIES['best-fit']!,
        new Prng(1),
      ),
    pool,
  };
  test.for(cases)('%s', ([reason, machines, before, asked]) => {
    for (const build of Object.values(designs)) {
      const design = build(machines);
      for (const each of before) expect(design.place(each)).toBeDefined();
      expect(design.place(asked)).toBeUndefined();
      expect(design.whyNot(asked)).toBe(reason);
    }
  });

  test('GPUs of two servers are in pieces; in a pool they are not', () => {
    const machines = [machine(1), machine(1)];
    const server = designs.server(machines);
    expect(server.place(demand(2))).toBeUndefined();
    expect(server.whyNot(demand(2))).toBe('fragmentation');
    expect(pool(machines).place(demand(2))).toBeDefined();
  });

  test('CPU beside the GPU is taken; in a pool another host has some', () => {
    const machines = [machine(2, 4), machine(0, 4)];
    for (const [build, places] of [
      [designs.server, false],
      [pool, true],
    ] as const) {
      const design = build(machines);
      expect(design.place(demand(1, 4))).toBeDefined();
      expect(design.place(demand(1, 4)) !== undefined).toBe(places);
    }
  });
});

describe('the smallest count', () => {
  test.for([1, 2, 7, 50, 99, 100, 101, 399])('of a threshold at %d', (least) => {
    expect(smallest({ scan: 3 }, 100, (count) => count >= least)).toBe(least);
  });

  test('none, even at four times the start', () => {
    expect(smallest({ scan: 3 }, 100, (count) => count > 400)).toBeUndefined();
  });

  test('a smaller one that bisection jumps over is found beside it', () => {
    const serves = (count: number): boolean => count >= 50 || count === 47;
    expect(smallest({ scan: 0 }, 100, serves)).toBe(50);
    expect(smallest({ scan: 3 }, 100, serves)).toBe(47);
  });

  test('a share of the GPUs asked for, not of the requests', () => {
    const kinds = [demand(3), demand(1)];
    const arrivals = Uint32Array.of(0, 1);
    const build = () => pool([machine(3)]);
    // 3 of 4 GPUs.
    expect(servesShare(build(), kinds, arrivals, 75)).toBe(true);
    expect(servesShare(build(), kinds, arrivals, 76)).toBe(false);
  });
});

test('a tournament answers as looking at all scores would', () => {
  const prng = new Prng(3);
  for (const count of [1, 2, 5, 8, 9]) {
    const tournament = new Tournament(count);
    const scores = Array.from({ length: count }, () => -Infinity);
    expect(tournament.best()).toBe(-1);
    for (let i = 0; i < 200; i++) {
      const at = prng.below(count);
      scores[at] = prng.chance(0.3) ? -Infinity : prng.below(5);
      tournament.set(at, scores[at]!);
      const most = Math.max(...scores);
      expect(tournament.best()).toBe(most === -Infinity ? -1 : scores.indexOf(most));
    }
  }
});
