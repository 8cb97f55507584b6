/**
 * One pooled run of the simulator, in a process of its own so that its peak memory is its own:
 *
 *     node simulate-side.js POLICY GPUS NODES PODS
 *
 * The machines of NODES are repeated until they have GPUS GPUs, and ten requests a GPU are drawn from PODS:
 * far more than fit, so that most of a run is spent in a pool that is full. Prints one line of JSON, a
 * `SideResult`.
 */
import { readFileSync } from 'node:fs';
import { Prng } from '#base/prng';
import { gpusOf, type Machine } from '#simulator/demand';
import { fill } from '#simulator/fill';
import { readNodes } from '#simulator/node-list';
import { readPods } from '#simulator/pod-list';
import { POOL_POLICIES, PoolDesign } from '#simulator/pool-design';
import { DEFAULT_SHAPE, placed, takeApart } from '#simulator/pool-hardware';
import { workloadOf } from '#simulator/workload';
import { now, Spent } from './spent.ts';

export interface SideResult {
  readonly gpus: number;
  readonly hosts: number;
  readonly requests: number;
  readonly placed: number;
  /** Of the run, reading and drawing left out. */
  readonly ms: number;
  readonly cpuNs: number;
  /** Of one scan of all hosts in bare columns, for each of a sample of the requests. */
  readonly scanNs: number;
  readonly peakRssBytes: number;
}

const SEED = 42;
const REQUESTS_PER_GPU = 10;
const SCANS = 2000;

const [policy = '', gpus = '', nodesFile = '', podsFile = ''] = process.argv.slice(2);
const makePolicy = POOL_POLICIES[policy];
if (makePolicy === undefined) throw new Error(`no policy ${policy}`);
const list = readNodes(nodesFile, readFileSync(nodesFile, 'utf8'));
const machines: Machine[] = [];
for (let has = 0, i = 0; has < Number(gpus); i++) {
  const machine = list[i % list.length] as Machine;
  machines.push(machine);
  has += machine.gpus;
}
const pods = readPods(podsFile, readFileSync(podsFile, 'utf8'));
const workload = workloadOf(pods.map(({ demand }) => demand));
const prng = new Prng(SEED);
const { kinds, kindOf } = workload;
const requests = REQUESTS_PER_GPU * Number(gpus);
const arrivals = Uint32Array.from(
  { length: requests },
  () => kindOf[prng.below(kindOf.length)] as number,
);

const run = new Spent();
const begin = now();
const here = placed(machines);
const design = new PoolDesign(takeApart(here, here, DEFAULT_SHAPE), workload, makePolicy, prng);
const result = fill(design, kinds, arrivals);
run.since(begin);
const peakRssBytes = process.resourceUsage().maxRSS * 1024;

const cpu = Float64Array.from(machines, ({ cpuMilli }) => cpuMilli);
const memory = Float64Array.from(machines, ({ memoryMib }) => memoryMib);
const slots = new Uint8Array(machines.length).fill(DEFAULT_SHAPE.slotsPerHost);
let found = 0;
const scans = new Spent();
const scanBegin = now();
for (let i = 0; i < SCANS; i++) {
  const demand = kinds[arrivals[i % arrivals.length] as number];
  if (demand === undefined) continue;
  let best = -1;
  let least = Infinity;
  for (let h = 0; h < cpu.length; h++) {
    const left = (cpu[h] as number) - demand.cpuMilli;
    if (left < 0 || left >= least || (memory[h] as number) < demand.memoryMib) continue;
    if ((slots[h] as number) < demand.gpus) continue;
    [best, least] = [h, left];
  }
  found += best >= 0 ? 1 : 0;
}
scans.since(scanBegin);
if (found === 0) throw new Error('no request fits any machine');

const side: SideResult = {
  gpus: gpusOf(machines),
  hosts: machines.length,
  requests,
  placed: result.placed,
  ms: run.ms[0] ?? Number.NaN,
  cpuNs: run.cpuNs[0] ?? Number.NaN,
  scanNs: ((scans.ms[0] ?? Number.NaN) * 1e6) / SCANS,
  peakRssBytes,
};
console.log(JSON.stringify(side));
