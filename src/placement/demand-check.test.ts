import { expect, it } from 'vitest';
import type { Demand } from './demand.ts';
import { checkDemand } from './demand-check.ts';
import { explain } from './explain.ts';
import { plan } from './plan.ts';
import { PoolIndex } from './pool-index.ts';

const GOOD: Demand = {
  gpus: 1,
  host: 'h1',
  model: undefined,
  memoryBytes: undefined,
  sameBox: false,
  nvlink: false,
  boxKind: undefined,
  maxRttNs: undefined,
};

it.each<[keyof Demand, unknown, string]>([
  ['gpus', 0, 'gpus of the demand is 0: ask for a whole number from 1 to 4096'],
  ['gpus', 1.5, 'is 1.5'],
  ['gpus', -1, 'is -1'],
  ['gpus', 1e6, 'is 1000000: ask for a whole number from 1 to 4096'],
  ['gpus', Number.NaN, 'is NaN'],
  ['gpus', Infinity, 'is Infinity'],
  ['host', '', 'host of the demand is ""'],
  ['host', 'h1/../h2', 'a host id is 1 to 64 letters, digits, dots, dashes, underscores'],
  ['host', 'h\u0000', 'is "h\\u0000"'],
  ['host', 'ħ1', 'is "ħ1"'],
  ['host', 'x'.repeat(65), 'a host id is'],
  ['host', 'x'.repeat(1e6), '…'],
  ['model', '', 'leave it out for any model'],
  ['model', 'A100\n', 'is "A100\\n"'],
  ['model', 'x'.repeat(129), 'a model is 1 to 128 characters'],
  ['memoryBytes', -1, 'memoryBytes of the demand is -1'],
  ['memoryBytes', 2 ** 60, 'give a whole number of bytes'],
  ['memoryBytes', Number.NaN, 'is NaN'],
  ['boxKind', 'pci', 'is "pci": a box is of kind pcie or nvswitch'],
  ['maxRttNs', 0, 'give a time in nanoseconds above 0'],
  ['maxRttNs', Number.NaN, 'is NaN'],
  ['maxRttNs', Infinity, 'is Infinity'],
])('%s %j is named with the way out', (field, value, text) => {
  const demand = { ...GOOD, [field]: value } as Demand;
  const error = checkDemand(demand);
  expect(error?.code).toBe('invalid_argument');
  expect(error?.message).toContain(text);
  expect(error?.message.length).toBeLessThan(300);
  expect(error?.details).toEqual({ field });
  expect(() => plan(new PoolIndex(), demand)).toThrow(error?.message);
  expect(() => explain(new PoolIndex(), demand)).toThrow(error?.message);
});

it.each<Partial<Demand>>([
  {},
  { gpus: 4096 },
  { host: 'a.B-c_9' },
  { model: 'NVIDIA A100-SXM4-80GB "Ω"' },
  { memoryBytes: 0 },
  { boxKind: 'nvswitch', maxRttNs: 0.5, sameBox: true, nvlink: true },
])('%j can be planned', (part) => {
  expect(checkDemand({ ...GOOD, ...part })).toBeUndefined();
});
