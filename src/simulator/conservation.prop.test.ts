/**
 * Nothing is allocated twice, freed twice or lost; sums never exceed capacity. Checked against what
 * the placements themselves say, kept apart from the books of the designs.
 */
import { caseArb, demandArb, machineArb, MODELS, shapeArb } from '#testkit/cluster-arbitrary';
import { assert } from '#base/assert';
import { Prng } from '#base/prng';
import { expect, test } from 'vitest';
import { fc } from '#testkit/properties';
import { acceptsModel, type Machine } from './demand.ts';
import type { Design, Placement, Unit } from './design.ts';
import { fill } from './fill.ts';
import { POOL_POLICIES, PoolDesign } from './pool-design.ts';
import { DEFAULT_SHAPE, placed, takeApart } from './pool-hardware.ts';
import { SERVER_POLICIES, ServerDesign } from './server-design.ts';
import { drawArrivals, type Workload, workloadOf } from './workload.ts';

/** What there is of each kind, and where a host may take GPUs from. */
interface Hardware {
  readonly hosts: readonly { readonly cpuMilli: number; readonly memoryMib: number }[];
  readonly slots: (h: number) => number;
  readonly model: (gpu: number) => string | undefined;
  readonly box: (gpu: number) => number;
  readonly reaches: (h: number, gpu: number) => boolean;
  readonly oneBox: boolean;
}

/** Every sum, from the placements alone. `assert`, not `expect`: this runs a million times. */
function checkSums(hardware: Hardware, placements: readonly Placement[]): void {
  const cpu = new Map<number, number>();
  const memory = new Map<number, number>();
  const milli = new Map<number, number>();
  const hostOf = new Map<number, number>();
  const bound = new Map<number, Set<number>>();
  const add = (sums: Map<number, number>, key: number, by: number): void => {
    sums.set(key, (sums.get(key) ?? 0) + by);
  };
  for (const { demand, host, gpus } of placements) {
    add(cpu, host, demand.cpuMilli);
    add(memory, host, demand.memoryMib);
    assert(new Set(gpus).size === demand.gpus, 'as many GPUs as asked, none twice');
    assert(new Set(gpus.map(hardware.model)).size <= 1, 'GPUs of one model');
    assert(!hardware.oneBox || new Set(gpus.map(hardware.box)).size <= 1, 'GPUs of one box');
    for (const gpu of gpus) {
      add(milli, gpu, demand.gpuMilli);
      assert(acceptsModel(demand, hardware.model(gpu)!), 'a model that will do');
      assert(hardware.reaches(host, gpu), 'a GPU that the host reaches');
      assert((hostOf.get(gpu) ?? host) === host, 'a GPU has one host');
      hostOf.set(gpu, host);
      bound.set(host, (bound.get(host) ?? new Set()).add(gpu));
    }
  }
  for (const [h, { cpuMilli, memoryMib }] of hardware.hosts.entries()) {
    assert((cpu.get(h) ?? 0) <= cpuMilli, 'no more CPU than there is');
    assert((memory.get(h) ?? 0) <= memoryMib, 'no more memory than there is');
    assert((bound.get(h)?.size ?? 0) <= hardware.slots(h), 'no more GPUs than slots');
  }
  for (const sum of milli.values()) assert(sum <= 1000, 'no more of a GPU than there is');
}

/** Places and releases at random; then gives everything back. */
function run(
  design: Design,
  hardware: Hardware,
  { kinds }: Workload,
  steps: number,
  prng: Prng,
  disturb: () => void,
): void {
  const placements: Placement[] = [];
  for (let step = 0; step < steps; step++) {
    if (placements.length > 0 && prng.chance(0.3)) {
      const [gone] = placements.splice(prng.below(placements.length), 1);
      design.release(gone!);
    } else {
      const demand = prng.pick(kinds);
      const placement = design.place(demand);
      if (placement === undefined) design.whyNot(demand);
      else placements.push(placement);
    }
    disturb();
    if (step % 4 === 0 || step === steps - 1) checkSums(hardware, placements);
  }
  for (const placement of placements) design.release(placement);
}

/** Parts that fail now and then, some of them twice at a time, and come back. */
class Failures {
  readonly #failed: Unit[] = [];
  readonly #design: Design;
  readonly #fails: boolean;
  readonly #prng: Prng;

  constructor(design: Design, fails: boolean, prng: Prng) {
    this.#design = design;
    this.#fails = fails;
    this.#prng = prng;
  }

  step(): void {
    if (!this.#fails || !this.#prng.chance(0.1)) return;
    const { gpus, servers, boxes } = this.#design.units;
    const units: Unit[] = [{ kind: 'server', index: this.#prng.below(servers) }];
    if (gpus.length > 0) units.push({ kind: 'gpu', index: this.#prng.pick(gpus) });
    if (boxes > 0) units.push({ kind: 'box', index: this.#prng.below(boxes) });
    const unit = this.#prng.pick(units);
    this.#design.setFailed(unit, true);
    this.#failed.push(unit);
    if (this.#prng.chance(0.5)) this.#design.setFailed(this.#failed.shift()!, false);
  }

  end(): void {
    for (const unit of this.#failed) this.#design.setFailed(unit, false);
  }
}

test.for(Object.keys(SERVER_POLICIES))('servers, %s', (policy) => {
  fc.assert(
    fc.property(caseArb, ({ machines, demands, seed, steps, fails }) => {
      const workload = workloadOf(demands);
      const prng = new Prng(seed);
      const design = new ServerDesign(machines, workload, SERVER_POLICIES[policy]!, prng.fork());
      const { servers } = design;
      const columns = [servers.cpuLeft, servers.memoryLeft, servers.gpuLeft, servers.leftSum];
      const fresh = columns.map((column) => [...column]);
      const serverOf = (gpu: number): number => Math.floor(gpu / servers.stride);
      const hardware: Hardware = {
        hosts: servers.machines,
        slots: (s) => servers.machines[s]!.gpus,
        model: (gpu) => servers.machines[serverOf(gpu)]?.model,
        box: serverOf,
        reaches: (s, gpu) =>
          serverOf(gpu) === s && gpu % servers.stride < servers.machines[s]!.gpus,
        oneBox: true,
      };
      const failures = new Failures(design, fails, prng);
      run(design, hardware, workload, steps, prng, () => failures.step());
      failures.end();
      expect(columns.map((column) => [...column])).toEqual(fresh);
      expect([...servers.sizes, ...servers.sizeCounts].every((count) => count === 0)).toBe(true);
    }),
    { numRuns: 40 },
  );
});

test.for(Object.keys(POOL_POLICIES))('pool, %s', (policy) => {
  fc.assert(
    fc.property(caseArb, ({ machines, demands, shape, seed, steps, fails }) => {
      const workload = workloadOf(demands);
      const prng = new Prng(seed);
      const apart = takeApart(placed(machines), placed(machines), shape);
      const design = new PoolDesign(apart, workload, POOL_POLICIES[policy]!, prng.fork());
      const { pool } = design;
      const columns = [
        pool.cpuLeft,
        pool.memoryLeft,
        pool.slotsLeft,
        pool.gpuLeft,
        pool.gpuHost,
        pool.boxFree,
      ];
      const fresh = columns.map((column) => [...column]);
      const boxOf = (gpu: number): number => Math.floor(gpu / pool.stride);
      const hardware: Hardware = {
        hosts: pool.hardware.hosts,
        slots: () => shape.slotsPerHost,
        model: (gpu) => apart.boxes[boxOf(gpu)]?.model,
        box: boxOf,
        reaches: (h, gpu) =>
          apart.boxes[boxOf(gpu)]!.group === pool.hardware.hosts[h]!.group &&
          gpu % pool.stride < apart.boxes[boxOf(gpu)]!.gpus,
        oneBox: shape.together !== 'any',
      };
      const failures = new Failures(design, fails, prng);
      run(design, hardware, workload, steps, prng, () => failures.step());
      failures.end();
      expect(columns.map((column) => [...column])).toEqual(fresh);
      expect(pool.parts.every((parts) => parts.length === 0)).toBe(true);
      for (let model = 0; model < pool.models.length; model++) {
        const free =
          pool.groups === 0
            ? 0
            : Array.from({ length: pool.groups }, (_, group) =>
                pool.shelves.free(group, model),
              ).reduce((a, b) => a + b, 0);
        const have = apart.boxes.filter((box) => box.model === pool.models[model]);
        expect(free).toBe(have.reduce((sum, { gpus }) => sum + gpus, 0));
      }
    }),
    { numRuns: 40 },
  );
});

test('taking apart loses and adds no GPU, CPU or memory', () => {
  fc.assert(
    fc.property(
      fc.array(machineArb, { minLength: 1, maxLength: 30 }),
      shapeArb,
      (machines, shape) => {
        const apart = takeApart(placed(machines), placed(machines), shape);
        for (const model of MODELS) {
          const of = <T extends { readonly model: string; readonly gpus: number }>(
            all: readonly T[],
          ) => all.filter((each) => each.model === model).reduce((sum, { gpus }) => sum + gpus, 0);
          expect(of(apart.boxes)).toBe(of(machines));
        }
        expect(apart.boxes.every(({ gpus }) => gpus >= 1 && gpus <= shape.gpusPerBox)).toBe(true);
        expect(apart.hosts.map(({ cpuMilli }) => cpuMilli)).toEqual(
          machines.map(({ cpuMilli }) => cpuMilli),
        );
        expect(apart.hosts.map(({ memoryMib }) => memoryMib)).toEqual(
          machines.map(({ memoryMib }) => memoryMib),
        );
      },
    ),
  );
});

test('rankings choose what looking at every host would', () => {
  const kept = ['dot-product', 'gpu-clustering', 'gpu-packing', 'best-fit', 'fgd', 'first-fit'];
  fc.assert(
    fc.property(
      caseArb,
      fc.constantFrom(...kept),
      ({ machines, demands, shape, seed, steps }, policy) => {
        const workload = workloadOf(demands);
        const answers = [true, false].map((ranks) => {
          const prng = new Prng(seed);
          const apart = takeApart(placed(machines), placed(machines), shape);
          const make = POOL_POLICIES[policy]!;
          const design = new PoolDesign(
            apart,
            workload,
            (input) => ({ ...make(input), keepsHosts: ranks }),
            prng.fork(),
          );
          const placements: Placement[] = [];
          return Array.from({ length: steps }, () => {
            if (placements.length > 0 && prng.chance(0.3)) {
              design.release(placements.splice(prng.below(placements.length), 1)[0]!);
              return undefined;
            }
            const placement = design.place(prng.pick(workload.kinds));
            if (placement !== undefined) placements.push(placement);
            return placement;
          });
        });
        expect(answers[0]).toEqual(answers[1]);
      },
    ),
    { numRuns: 150 },
  );
});

test('the same seed gives the same answer', () => {
  const machines: Machine[] = Array.from({ length: 12 }, (_, i) => ({
    name: `m${i}`,
    cpuMilli: 32_000,
    memoryMib: 1000,
    gpus: 4,
    model: MODELS[i % 3]!,
  }));
  const workload = workloadOf(fc.sample(demandArb, { seed: 7, numRuns: 30 }));
  for (const policy of Object.keys(POOL_POLICIES)) {
    const once = (): string => {
      const prng = new Prng(42);
      const arrivals = drawArrivals(workload, prng.fork(), 48_000, 130);
      const apart = takeApart(placed(machines), placed(machines), DEFAULT_SHAPE);
      const design = new PoolDesign(apart, workload, POOL_POLICIES[policy]!, prng.fork());
      return JSON.stringify(fill(design, workload.kinds, arrivals));
    };
    expect(once()).toBe(once());
  }
});
