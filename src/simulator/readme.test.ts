import { readFileSync } from 'node:fs';
import { Prng } from '#base/prng';
import { expect, it } from 'vitest';
import type { Machine } from './demand.ts';
import { fill } from './fill.ts';
import { ServerDesign } from './server-design.ts';
import { type MakeServerPolicy, tightestGpu } from './server-policy.ts';
import { drawArrivals, workloadOf } from './workload.ts';

const machines: Machine[] = ['a', 'b'].map((name) => ({
  name,
  cpuMilli: 64_000,
  memoryMib: 65_536,
  gpus: 1,
  model: 'T4',
}));

it('the example of README.md runs', () => {
  // README example
  const mostMemoryLeft: MakeServerPolicy = ({ servers }) => ({
    score: (s) => servers.memoryLeft[s] ?? 0,
    gpuFor: (s, demand) => tightestGpu(servers, s, demand),
  });

  // biome-ignore format: one line, as README.md shows it
  const workload = workloadOf([{ cpuMilli: 4000, memoryMib: 1024, gpus: 1, gpuMilli: 500, models: [] }]);
  const prng = new Prng(42);
  const arrivals = drawArrivals(workload, prng.fork(), 2000, 130);
  const design = new ServerDesign(machines, workload, mostMemoryLeft, prng.fork());
  const { placed, unplaced } = fill(design, workload.kinds, arrivals);
  // 5 parts of 500 are asked for and 4 placed; unplaced['no-gpu-beside-cpu'] is 1
  // end
  expect(arrivals).toHaveLength(5);
  expect(placed).toBe(4);
  expect(unplaced['no-gpu-beside-cpu']).toBe(1);
  const readme = readFileSync(new URL('./README.md', import.meta.url), 'utf8');
  const source = readFileSync(new URL('./readme.test.ts', import.meta.url), 'utf8');
  const run = /\/\/ README example\n([\s\S]*?)\n *\/\/ end/.exec(source)?.[1] ?? '';
  for (const line of run.split('\n')) {
    if (!line.includes('biome-ignore')) expect(readme).toContain(line.trim());
  }
});
