/** Small clusters and requests that are short of everything, for properties of the simulator. */
import type { Demand, Machine } from '#simulator/demand';
import { type PoolShape, REACHES, TOGETHER } from '#simulator/pool-hardware';
import { fc } from './properties.ts';

export const MODELS = ['G2', 'T4', 'V100'];

export const machineArb: fc.Arbitrary<Machine> = fc
  .record({
    cpus: fc.integer({ min: 1, max: 24 }),
    memoryMib: fc.integer({ min: 1, max: 400 }),
    gpus: fc.integer({ min: 0, max: 5 }),
    model: fc.constantFrom(...MODELS),
  })
  .map(({ cpus, memoryMib, gpus, model }) => ({
    name: '',
    cpuMilli: cpus * 1000,
    memoryMib,
    gpus,
    model: gpus === 0 ? '' : model,
  }));

export const demandArb: fc.Arbitrary<Demand> = fc
  .record({
    cpuMilli: fc.integer({ min: 0, max: 12_000 }),
    memoryMib: fc.integer({ min: 0, max: 100 }),
    gpu: fc.oneof(
      fc.integer({ min: 50, max: 999 }).map((gpuMilli) => ({ gpus: 1, gpuMilli })),
      fc.integer({ min: 1, max: 6 }).map((gpus) => ({ gpus, gpuMilli: 1000 })),
      fc.constant({ gpus: 0, gpuMilli: 0 }),
    ),
    models: fc.subarray(MODELS, { maxLength: 2 }),
  })
  .map(({ gpu, models, ...rest }) => ({ ...rest, ...gpu, models: gpu.gpus === 0 ? [] : models }));

export const shapeArb: fc.Arbitrary<PoolShape> = fc.record({
  reach: fc.constantFrom(...REACHES),
  slotsPerHost: fc.integer({ min: 1, max: 6 }),
  gpusPerBox: fc.integer({ min: 1, max: 4 }),
  machinesPerRack: fc.integer({ min: 1, max: 3 }),
  racksPerPod: fc.integer({ min: 1, max: 2 }),
  together: fc.constantFrom(...TOGETHER),
  nvlinkModels: fc.subarray(MODELS),
});

export const caseArb = fc.record({
  machines: fc.array(machineArb, { minLength: 1, maxLength: 10 }),
  demands: fc.array(demandArb, { minLength: 1, maxLength: 8 }),
  shape: shapeArb,
  seed: fc.integer({ min: 0, max: 1 << 20 }),
  steps: fc.integer({ min: 1, max: 80 }),
  fails: fc.boolean(),
});
