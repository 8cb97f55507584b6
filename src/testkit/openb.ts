/** The published pod lists, node list and results, where the data folder is at hand. */
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Prng } from '#base/prng';
import type { Machine } from '#simulator/demand';
import { fill, type FillResult } from '#simulator/fill';
import { readNodes } from '#simulator/node-list';
import { readPods } from '#simulator/pod-list';
import { SERVER_POLICIES, ServerDesign } from '#simulator/server-design';
import { spreadOf, threeStandardErrors } from '#simulator/statistics';
import { drawArrivals, type Workload, workloadOf } from '#simulator/workload';

const here = dirname(fileURLToPath(import.meta.url));
const folder = join(
  process.env['DXPU_DATA'] ?? join(here, '../../../shared/data'),
  'cluster/openb',
);

export const hasOpenb = existsSync(join(folder, 'expected-allocation.csv'));
export const NO_OPENB = 'skipped where DXPU_DATA or ../shared/data has no cluster/openb';

export const PUBLISHED_LISTS = ['default', 'cpu100', 'gpushare40', 'gpuspec10'] as const;

/** What the published results call a policy. */
const PUBLISHED_NAMES: Readonly<Record<string, string>> = {
  random: 'Random',
  'dot-product': 'DotProd',
  'gpu-clustering': 'GpuClustering',
  'gpu-packing': 'GpuPacking',
  'best-fit': 'BestFit',
  fgd: 'FGD',
};
export const PUBLISHED_POLICIES = Object.keys(PUBLISHED_NAMES);

const read = (name: string): string => readFileSync(join(folder, name), 'utf8');

export function openbNodes(): Machine[] {
  return readNodes('openb_node_list_gpu_node.csv', read('openb_node_list_gpu_node.csv'));
}

export function openbWorkload(list: string): Workload {
  const file = `openb_pod_list_${list}.csv`;
  return workloadOf(readPods(file, read(file)).map(({ demand }) => demand));
}

/** One run as published: arrivals until 130 % of GPU capacity, servers in a random order. */
export function publishedRun(
  nodes: readonly Machine[],
  workload: Workload,
  policy: string,
  seed: number,
): FillResult {
  const prng = new Prng(seed);
  const capacityMilli = nodes.reduce((sum, { gpus }) => sum + gpus * 1000, 0);
  const arrivals = drawArrivals(workload, prng.fork(), capacityMilli, 130);
  const makePolicy = SERVER_POLICIES[policy]!;
  const design = new ServerDesign(nodes, workload, makePolicy, prng.fork());
  return fill(design, workload.kinds, arrivals);
}

export interface Comparison {
  readonly arrivedPct: number;
  readonly mean: number;
  readonly publishedMean: number;
  /** Three standard errors of the difference of the two means, plus 0.3 points. */
  readonly bandPct: number;
}

/**
 * Holds runs of some seeds against the published mean of ten, at 80 to 130 % arrived. The spread of
 * one run is taken from the published one where that is wider: of two seeds it says little.
 */
export function compareWithPublished(
  list: string,
  policy: string,
  results: readonly FillResult[],
): Comparison[] {
  const rows = read('expected-allocation.csv')
    .trim()
    .split('\n')
    .map((line) => line.split(','));
  const mine = rows.filter(
    ([workload, name]) => workload === `openb_pod_list_${list}` && name === PUBLISHED_NAMES[policy],
  );
  return mine.map(([, , count, arrivedPct, mean, stdev]) => {
    const published = { mean: Number(mean), stdev: Number(stdev), count: Number(count) };
    const values = results.map(
      ({ curve }) => curve.find((point) => point.arrivedPct === Number(arrivedPct))!.allocatedPct,
    );
    const own = spreadOf(values);
    const few = values.length < published.count;
    const stdevOwn = few ? Math.max(own.stdev, published.stdev) : own.stdev;
    return {
      arrivedPct: Number(arrivedPct),
      mean: own.mean,
      publishedMean: published.mean,
      bandPct: threeStandardErrors({ ...own, stdev: stdevOwn }, published) + 0.3,
    };
  });
}
