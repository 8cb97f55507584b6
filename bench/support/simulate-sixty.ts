/**
 * The published study in a process of its own: six policies, seeds 42 to 51, on the default list, over the
 * workers of `dxpu simulate`, two of them. Prints one line of JSON, a `SixtyResult`.
 */
import { Worker } from 'node:worker_threads';
import { Prng } from '#base/prng';
import type { SimulateWorkerData } from '#cli/simulate-worker';
import { runJobs } from '#cli/worker-pool';
import { gpusOf, WHOLE_GPU } from '#simulator/demand';
import type { StudyUnit, UnitResult } from '#simulator/study';
import { drawArrivals } from '#simulator/workload';
import { mixOfLists } from './simulate-lists.ts';
import { now, Spent, tookOf, type Took } from './spent.ts';

/** Baseline: reading the lists once and drawing the arrivals of every run, on one core. */
export interface SixtyResult extends Took {
  readonly runs: number;
  readonly requests: number;
}

const WORKERS = 2;
const POLICIES = ['random', 'dot-product', 'gpu-clustering', 'gpu-packing', 'best-fit', 'fgd'];
const SEEDS = Array.from({ length: 10 }, (_, i) => 42 + i);
const UNTIL_PCT = 130;

const raw = new Spent();
const beginRaw = now();
const { machines, workload } = mixOfLists();
const capacityMilli = gpusOf(machines) * WHOLE_GPU;
let drawn = 0;
for (const _policy of POLICIES) {
  for (const seed of SEEDS) {
    drawn += drawArrivals(workload, new Prng(seed).fork(), capacityMilli, UNTIL_PCT).length;
  }
}
raw.since(beginRaw);

const units = POLICIES.flatMap((policy) =>
  SEEDS.map(
    (seed): StudyUnit => ({
      kind: 'fill',
      design: 'server',
      policy,
      setting: { untilPct: UNTIL_PCT },
      seeds: [seed],
    }),
  ),
);
const spent = new Spent();
const begin = now();
let requests = 0;
let runs = 0;
const data: SimulateWorkerData = {
  lists: mixOfLists(),
  constants: { nvlinkModels: [], overheadOf: {}, servedPct: 99, scan: 8 },
};
const script = new URL(import.meta.resolve('#cli/simulate-worker'));
await runJobs<UnitResult>(units, {
  workers: WORKERS,
  start: () => new Worker(script, { workerData: data }),
  onOutcome: (_job, outcome) => {
    if ('error' in outcome) throw outcome.error;
    if (!('run' in outcome.result)) throw new Error('a run was asked for');
    runs += 1;
    requests += outcome.result.run.requests;
  },
});
spent.since(begin);
if (requests !== drawn) throw new Error(`${requests} requests were run, and ${drawn} drawn`);

const result: SixtyResult = { runs, requests, ...tookOf(spent, raw) };
console.log(JSON.stringify(result));
