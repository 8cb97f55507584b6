/** What the manager's durable state costs: binds, whole lives, and a restart. */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import * as path from 'node:path';
import { type Figure, figure, type Pair } from './figures.ts';
import { BenchPool } from './store-pool.ts';
import { RawRows } from './store-raw.ts';
import { restartFigure } from './store-restart.ts';

const OUTSTANDING = 64;
const BINDS_PER_BLOCK = 2048;
const LIVES_PER_BLOCK = 2048;
const RAW_MS = 1000;
/** 2048 GPU nodes and as many virtual slots: what a block of binds takes. */
const SIZES = { zones: 16, boxesPerZone: 16, slotsPerBox: 8, hostsPerZone: 8, slotsPerHost: 16 };

/** The folder of the measured files goes below the current one: the disk of the checkout. */
export async function storeFigures(
  blocks: number,
  note: (text: string) => void,
): Promise<Figure[]> {
  const parent = path.resolve('.dxpu');
  mkdirSync(parent, { recursive: true });
  const folder = mkdtempSync(path.join(parent, 'bench-store-'));
  const sub = (name: string): string => {
    const made = path.join(folder, name);
    mkdirSync(made);
    return made;
  };
  try {
    const raw = new RawRows(folder);
    const pool = await BenchPool.start(sub('pool'), SIZES);
    const figures: Figure[] = [];
    note('binds acknowledged at reserved, and whole lives');
    const binds: Pair[] = [];
    const lives: Pair[] = [];
    for (let block = -1; block < blocks; block++) {
      const bound = await pairOf(() => bindRate(pool), raw);
      const lived = await pairOf(() => lifeRate(pool), raw);
      // The first block of each warms the code and is not counted.
      if (block < 0) continue;
      binds.push(bound);
      lives.push(lived);
    }
    pool.stop();
    raw.close();
    figures.push(
      figure('binds at reserved, 64 outstanding', '1/s', binds, 'ratio ≥ 1.0'),
      figure('whole lives, every transition durable', '1/s', lives, '≥ 1000'),
    );
    note('restart');
    figures.push(await restartFigure(sub('restart'), Math.min(blocks, 3)));
    return figures;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Operations a second, and what the processor spent on each. */
interface Rate {
  readonly perS: number;
  readonly cpuNs: number;
}

/** A block and the block of raw transactions that follows it. */
async function pairOf(measure: () => Promise<Rate>, raw: RawRows): Promise<Pair> {
  const value = await measure();
  const before = process.cpuUsage();
  const baseline = raw.rate(RAW_MS);
  const baselineCpuNs = cpuNsSince(before) / ((baseline * RAW_MS) / 1000);
  return {
    value: value.perS,
    baseline,
    cpu: { value: value.cpuNs, baseline: baselineCpuNs },
  };
}

function cpuNsSince(before: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(before);
  return (user + system) * 1000;
}

/** Runs `one` for the numbers below `count`, so many at once, and gives how many a second. */
async function rate(count: number, one: (index: number) => Promise<void>): Promise<Rate> {
  let next = 0;
  const client = async (): Promise<void> => {
    while (next < count) await one(next++);
  };
  const before = process.cpuUsage();
  const began = performance.now();
  await Promise.all(Array.from({ length: OUTSTANDING }, client));
  const perS = (count * 1000) / (performance.now() - began);
  return { perS, cpuNs: cpuNsSince(before) / count };
}

/** Agents keep still meanwhile: their answers are no part of a bind. */
async function bindRate(pool: BenchPool): Promise<Rate> {
  const { agents } = pool;
  const bindings: string[] = [];
  agents.hold();
  const measured = await rate(BINDS_PER_BLOCK, async (index) => {
    bindings.push(await pool.bind(hostOf(pool, index)));
  });
  const attached = bindings.map((id) => pool.reaches(id, 'attached'));
  agents.release();
  await Promise.all(attached);
  const gone = bindings.map((id) => pool.reaches(id, 'free'));
  await Promise.all(bindings.map((id) => pool.unbind(id)));
  await Promise.all(gone);
  return measured;
}

function lifeRate(pool: BenchPool): Promise<Rate> {
  return rate(LIVES_PER_BLOCK, async (index) => {
    const id = await pool.bind(hostOf(pool, index));
    await pool.reaches(id, 'attached');
    const gone = pool.reaches(id, 'free');
    await pool.unbind(id);
    await gone;
  });
}

function hostOf(pool: BenchPool, index: number): string {
  const { hosts } = pool.agents;
  const host = hosts[index % hosts.length];
  if (host === undefined) throw new Error('a pool without hosts');
  return host;
}
