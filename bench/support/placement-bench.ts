/** Placement: how long an answer takes, and how much memory the pool. */
import { performance } from 'node:perf_hooks';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { Prng } from '#base/prng';
import type { Demand } from '#placement/demand';
import { type Figure, figure } from './figures.ts';
import { anyDemand, nvlink8 } from './placement-demands.ts';
import { anyHost, benchPool, type BenchPool } from './placement-pool.ts';
import { type Measured, PlacementRun } from './placement-run.ts';
import { quantileOf, type Spent } from './spent.ts';

const LARGEST = 100_000;
const DEMANDS = 20_000;
const WARM_UP = 4000;

/** Hosts a tenth of the GPU nodes; what is measured is in `bench/README.md`. */
export function placementFigures(_blocks: number, note: (text: string) => void): Figure[] {
  const figures: Figure[] = [];
  for (const gpuNodes of [1000, 10_000]) {
    note(`placement, ${gpuNodes} GPU nodes`);
    const run = new PlacementRun(benchPool(new Prng(1), gpuNodes), new Prng(2));
    run.fill(0.9);
    run.measure(WARM_UP);
    const name = `plan, ${gpuNodes.toLocaleString('en')} GPU nodes, 90 % full`;
    figures.push(...planFigures(name, run.measure(DEMANDS)));
  }

  note(`placement, ${LARGEST} GPU nodes`);
  const before = heapUsed();
  const pool = benchPool(new Prng(1), LARGEST);
  const used = heapUsed() - before;
  const run = new PlacementRun(pool, new Prng(2));
  const columns = run.scan.columnBytes;
  figures.push(memoryFigure('heap of the pool, facts included', used, columns));
  const size = `${LARGEST.toLocaleString('en')} GPU nodes`;
  for (const part of [0.5, 0.9, 0.99]) {
    const percent = `${Math.round(part * 100)} % full`;
    note(`placement, ${LARGEST} GPU nodes, ${percent}`);
    run.fill(part);
    run.measure(WARM_UP);
    const measured = run.measure(DEMANDS);
    figures.push(...planFigures(`plan, ${size}, ${percent}`, measured));
    figures.push(...partFigures(percent, measured));
    figures.push(...everyBoxFigures(run, percent));
  }
  note('placement, hard cases');
  const hard = run.measure(DEMANDS / 4, (_, host) => nvlink8(host));
  figures.push(...planFigures(`plan, nvlink 8, ${size}, 99 % full`, hard));
  figures.push(pathFigure(pool));
  const peak = process.resourceUsage().maxRSS * 1024;
  figures.push(
    memoryFigure('peak RSS of the process, the scan and its columns included', peak, columns),
  );
  return figures;
}

function planFigures(name: string, { granted, refused, scans }: Measured): Figure[] {
  const all = granted.with(refused);
  return [
    quantileFigure(`${name}, p50`, all, scans, 0.5),
    { ...quantileFigure(`${name}, p99`, all, scans, 0.99), goal: 'value < 1 ms' },
    quantileFigure(`${name}, max`, all, scans, 1),
  ];
}

/** What of a level is a refusal, a check, an update. */
function partFigures(percent: string, measured: Measured): Figure[] {
  const { refused, granted, holds, updates, scans } = measured;
  const share = Math.round((100 * refused.ms.length) / (refused.ms.length + granted.ms.length));
  return [
    quantileFigure(`a refusal (${share} % of the demands), ${percent}, p99`, refused, scans, 0.99),
    quantileFigure(`holds, ${percent}, p99`, holds, scans, 0.99),
    quantileFigure(`update of a GPU node and a slot, ${percent}, p99`, updates, scans, 0.99),
  ];
}

/** A host that reaches all boxes: there is no longer way through them. */
function everyBoxFigures(run: PlacementRun, percent: string): Figure[] {
  const { boxes } = run.pool;
  const host = anyHost(new Prng(3), 'host-everywhere', boxes, boxes.length);
  run.addHost(host);
  const demandOf = (prng: Prng): Demand => anyDemand(prng, host.id);
  run.measure(WARM_UP / 8, demandOf, true);
  const measured = run.measure(DEMANDS / 8, demandOf, true);
  const name = `plan, a host with paths to all ${boxes.length.toLocaleString('en')} boxes, ${percent}`;
  return planFigures(name, measured);
}

/** Round trips change all the time. */
function pathFigure(pool: BenchPool): Figure {
  const prng = new Prng(4);
  const changes = 200_000;
  const plain = new Map(
    pool.hosts.map((host) => [host.id, new Map(host.paths.map((path) => [path.box, path.rttNs]))]),
  );
  const pairs = [];
  for (let block = -1; block < 5; block++) {
    const list = Array.from({ length: changes }, () => {
      const host = prng.pick(pool.hosts);
      return {
        host: host.id,
        path: { ...prng.pick(host.paths), rttNs: prng.between(1500, 12_000) },
      };
    });
    const begin = performance.now();
    for (const { host, path } of list) pool.index.setPath(host, path);
    const middle = performance.now();
    for (const { host, path } of list) plain.get(host)?.set(path.box, path.rttNs);
    const end = performance.now();
    const perChange = 1e6 / changes;
    if (block < 0) continue;
    pairs.push({ value: (middle - begin) * perChange, baseline: (end - middle) * perChange });
  }
  return figure('update of a path, against two lookups in maps', 'ns', pairs);
}

/** The same quantile of both; 1 is the largest. */
function quantileFigure(name: string, spent: Spent, scans: Spent, quantile: number): Figure {
  const value = quantileOf(spent.ms, quantile);
  const baseline = quantileOf(scans.ms, quantile);
  return {
    name,
    unit: 'ms',
    value,
    baseline,
    ratio: value / baseline,
    cpuNs: quantileOf(spent.cpuNs, quantile),
    baselineCpuNs: quantileOf(scans.cpuNs, quantile),
  };
}

function memoryFigure(name: string, value: number, baseline: number): Figure {
  return { name, unit: 'B', value, baseline, ratio: value / baseline, goal: 'value ≤ 1 GB' };
}

function heapUsed(): number {
  setFlagsFromString('--expose-gc');
  runInNewContext('gc()');
  return process.memoryUsage().heapUsed;
}
