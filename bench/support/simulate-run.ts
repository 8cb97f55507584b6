/**
 * One pooled run of the simulate benchmark, in a process of its own so that its peak memory is its own:
 *
 *     node simulate-run.js POLICY GPUS REQUESTS
 *
 * Prints one line of JSON, a `RunResult`.
 */
import { Prng } from '#base/prng';
import { askedMilli, gpusOf, WHOLE_GPU } from '#simulator/demand';
import { fill } from '#simulator/fill';
import { POOL_POLICIES, PoolDesign } from '#simulator/pool-design';
import { DEFAULT_SHAPE, spreadMachines, takeApart } from '#simulator/pool-hardware';
import { drawArrivals } from '#simulator/workload';
import { mixOfLists } from './simulate-lists.ts';
import { now, Spent, tookOf, type Took } from './spent.ts';

/**
 * Taking the hardware apart, the policy made, and all requests put to it. Baseline: reading the lists,
 * drawing the same requests, and adding up what they ask for.
 */
export interface RunResult extends Took {
  readonly gpus: number;
  readonly hosts: number;
  readonly requests: number;
  readonly placed: number;
  /** GPUs asked for, as percent of those there are. */
  readonly askedPct: number;
}

const SEED = 42;

const [policy = '', gpusText = '', requestsText = ''] = process.argv.slice(2);
const makePolicy = POOL_POLICIES[policy];
if (makePolicy === undefined) throw new Error(`no policy ${policy}`);
const gpus = Number(gpusText);
const requests = Number(requestsText);

const raw = new Spent();
const beginRaw = now();
const { machines, workload } = mixOfLists();
const prng = new Prng(SEED);
const { kinds, kindOf } = workload;
const meanMilli = kindOf.reduce((sum, kind) => sum + milliOf(kind), 0) / kindOf.length;
const capacityMilli = gpus * WHOLE_GPU;
// A little more than so many should ask for, so that the draw does not end before them.
const untilPct = ((requests * meanMilli) / capacityMilli) * 105;
const arrivals = drawArrivals(workload, prng.fork(), capacityMilli, untilPct).subarray(0, requests);
if (arrivals.length < requests) throw new Error(`drew ${arrivals.length} of ${requests} requests`);
const asked = arrivals.reduce((sum, kind) => sum + milliOf(kind), 0);
raw.since(beginRaw);

const spent = new Spent();
const begin = now();
const count = Math.ceil((gpus * machines.length) / gpusOf(machines));
const hosts = spreadMachines(machines, count);
const sources = spreadMachines(machines, count + machines.length);
const hardware = takeApart(hosts, sources, DEFAULT_SHAPE, gpus);
const design = new PoolDesign(hardware, workload, makePolicy, prng.fork());
const { placed } = fill(design, kinds, arrivals);
spent.since(begin);

const result: RunResult = {
  gpus,
  hosts: hosts.length,
  requests,
  placed,
  askedPct: (100 * asked) / capacityMilli,
  ...tookOf(spent, raw),
};
console.log(JSON.stringify(result));

function milliOf(kind: number): number {
  const demand = kinds[kind];
  return demand === undefined ? 0 : askedMilli(demand);
}
