import { expect, it } from 'vitest';
import { costOf, poolHardware, priceWords, serverHardware } from './bill.ts';
import type { Machine } from './demand.ts';
import { DEFAULT_SHAPE } from './pool-hardware.ts';

const machine = (name: string, gpus: number, model: string): Machine => ({
  name,
  cpuMilli: 1000,
  memoryMib: 1,
  gpus,
  model,
});
// Of two kinds, taken in turn: each beginning has nearly the mix of the whole.
const MACHINES = [
  machine('a', 4, 'T4'),
  machine('b', 4, 'T4'),
  machine('c', 8, 'G2'),
  machine('d', 8, 'G2'),
];
const PRICES = { gpu: 10, models: { T4: 3 }, server: 100, box: 20, port: 1 };

it('servers cost what they are and their GPUs', () => {
  const hardware = serverHardware(MACHINES, { gpus: 12, servers: 2 });
  expect(hardware).toEqual({ gpusByModel: { T4: 4, G2: 8 } });
  // 4 × 3 + 8 × 10 = 92, and 2 × 100.
  expect(costOf(PRICES, 2, hardware)).toEqual({
    gpus: 92,
    servers: 200,
    boxes: 0,
    ports: 0,
    total: 292,
  });
});

it('a pool has boxes, and a port for each host and each box', () => {
  const shape = { ...DEFAULT_SHAPE, gpusPerBox: 4 };
  const hardware = poolHardware(MACHINES, { gpus: 18, servers: 3 }, shape);
  // In the mix: 4 T4, 8 G2, 4 T4, and 2 of the next G2. Boxes of 4: 2 of T4, 3 of G2.
  expect(hardware).toEqual({ gpusByModel: { T4: 8, G2: 10 }, boxes: 5 });
  // 24 + 100, 3 × 100, 5 × 20, 3 + 5.
  expect(costOf(PRICES, 3, hardware)).toEqual({
    gpus: 124,
    servers: 300,
    boxes: 100,
    ports: 8,
    total: 532,
  });
});

it('has more GPUs than the list, from the list again', () => {
  const { gpusByModel } = poolHardware(MACHINES, { gpus: 28, servers: 3 }, DEFAULT_SHAPE);
  expect(gpusByModel).toEqual({ T4: 12, G2: 16 });
});

it('says its prices', () => {
  expect(priceWords(PRICES)).toBe('prices: GPU 10, T4 3, server or host 100, box 20, port 1');
});
