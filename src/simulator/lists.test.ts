import { describe, expect, test } from 'vitest';
import { readNodes } from './node-list.ts';
import { checkPods, readPods } from './pod-list.ts';

const NODE = 'sn,cpu_milli,memory_mib,gpu,model\n';
const POD = 'name,cpu_milli,memory_mib,num_gpu,gpu_milli\n';
const SPEC = 'name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,creation_time,deletion_time\n';

test('nodes', () => {
  expect(readNodes('n.csv', `${NODE}n1,96000,393216,8,G2\nn2,32000,262144,0,\n`)).toEqual([
    { name: 'n1', cpuMilli: 96_000, memoryMib: 393_216, gpus: 8, model: 'G2' },
    { name: 'n2', cpuMilli: 32_000, memoryMib: 262_144, gpus: 0, model: '' },
  ]);
});

test('pods with models and times; a model named twice counts once', () => {
  const [pod, other] = readPods(
    'p.csv',
    `${SPEC}p1,6000,12288,1,460,T4|G2|T4,7,9.0\np2,0,0,0,0,,,\n`,
  );
  expect(pod).toMatchObject({
    name: 'p1',
    demand: { cpuMilli: 6000, memoryMib: 12_288, gpus: 1, gpuMilli: 460, models: ['T4', 'G2'] },
    createdS: 7,
    deletedS: 9,
  });
  expect(other).not.toHaveProperty('createdS');
});

describe('nodes that are refused', () => {
  test.for([
    ['n1,96,1,8,G2', 'n.csv:2:4: cpu_milli 96 is less than one CPU; it is in milli CPUs'],
    ['n1,96000,1,8000,G2', 'n.csv:2:12: gpu 8000 is in whole GPUs, not in thousandths'],
    ['n1,96000,1,8,', 'n.csv:2:14: GPUs without a model'],
    ['n1,96000,1,0,G2', 'n.csv:2:12: no GPUs, and yet the model G2'],
    ['n1,-1,1,8,G2', 'n.csv:2:4: cpu_milli is negative: -1'],
    ['n1,96.5,1,8,G2', 'n.csv:2:4: cpu_milli "96.5" is no whole number; it is in milli CPUs'],
    ['n1,,1,8,G2', 'n.csv:2:4: cpu_milli is empty; it is in milli CPUs'],
    ['n1,1e400,1,8,G2', 'n.csv:2:4: cpu_milli "1e400" is no whole number'],
    [',96000,1,8,G2', 'n.csv:2:1: sn is empty'],
    ['n1,96000,1,8,G2\nn1,96000,1,8,G2', 'n.csv:3:1: sn n1 was used before, in line 2'],
  ])('%s', ([row, message]) => {
    expect(() => readNodes('n.csv', `${NODE}${row}\n`)).toThrow(message);
  });
});

describe('pods that are refused', () => {
  test.for([
    ['p,6,1,1,1000', 'p.csv:2:3: cpu_milli 6 is in milli CPUs: 6 CPUs are 6000'],
    ['p,6000,1,1,1', 'p.csv:2:12: gpu_milli 1 is in thousandths of a GPU: a whole one is 1000'],
    ['p,6000,1,1,0.5', 'p.csv:2:12: gpu_milli "0.5" is no whole number; it is in thousandths'],
    ['p,6000,1,2,2000', 'p.csv:2:12: gpu_milli 2000 is more than a GPU'],
    ['p,6000,1,2,500', 'p.csv:2:12: a part of each of 2 GPUs: several GPUs are whole ones'],
    ['p,6000,1,2000,1000', 'p.csv:2:10: num_gpu 2000 is in whole GPUs, not in thousandths'],
    ['p,6000,1,1,0', 'p.csv:2:12: num_gpu is 1, and yet gpu_milli 0'],
    ['p,6000,1,0,500', 'p.csv:2:12: gpu_milli 500 of no GPU: num_gpu is 0'],
    ['p,6000,1,0,0\np,6000,1,0,0', 'p.csv:3:1: name p was used before, in line 2'],
  ])('%s', ([row, message]) => {
    expect(() => readPods('p.csv', `${POD}${row}\n`)).toThrow(message);
  });

  test.for([
    ['p,6000,1,1,500,,9,7', 'p.csv:2:19: deletion_time 7 is before creation_time 9'],
    ['p,6000,1,1,500,,-9,7', 'p.csv:2:17: creation_time is negative: -9'],
  ])('%s', ([row, message]) => {
    expect(() => readPods('p.csv', `${SPEC}${row}\n`)).toThrow(message);
  });
});

describe('pods against machines', () => {
  const nodes = readNodes('n.csv', `${NODE}n1,96000,1000,8,G2\nn2,64000,1000,2,T4\n`);
  const check = (row: string): string[] =>
    checkPods('p.csv', readPods('p.csv', `${SPEC}${row}\n`), nodes);

  test('an unknown model is refused, with the ones there are', () => {
    expect(() => check('p,1000,1,1,500,T4|X9,,')).toThrow(
      'p.csv:2:16: no machine has the model X9; there are G2, T4',
    );
  });

  test.for([
    ['more CPU than any', 'p,97000,1,1,500,,,'],
    ['more GPUs than the model has in one machine', 'p,1000,1,4,1000,T4,,'],
    ['CPU and model apart', 'p,96000,1,1,500,T4,,'],
    ['more memory than any', 'p,1000,1001,0,0,,,'],
  ])('%s: told with its place', ([, row]) => {
    expect(check(row!)).toEqual(['p.csv:2:1: p fits no machine, even an empty one']);
  });

  test('what fits is not told', () => {
    expect(check('p,96000,1000,8,1000,G2,,')).toEqual([]);
  });
});
