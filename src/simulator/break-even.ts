/**
 * How much longer jobs may take in a pool until it saves nothing: by GPUs and money of the fewest
 * hardware, and by the mean wait of jobs in time. A pool is held against the servers that do best under
 * the same settings.
 */
import { type BreakEvenRow, type FewestRow, rounded, type SimulateRun } from './result.ts';
import { spreadOf } from './statistics.ts';

type Setting = SimulateRun['setting'];
interface Named {
  readonly policy: string;
  readonly setting: Setting;
}

const SWEPT = 'overheadPct';

/** Of every pool that has servers to be held against; of waits, where overheads were swept. */
export function breakEvens(
  runs: readonly SimulateRun[],
  fewest: readonly FewestRow[],
): BreakEvenRow[] {
  return [
    ...byHardware(fewest, 'gpus', ({ gpus }) => gpus),
    ...byHardware(fewest, 'cost', ({ cost }) => cost?.total ?? null),
    ...byWait(runs),
  ];
}

/**
 * Jobs that take (1 + o) times as long hold hardware (1 + o) times as long, so the same jobs need
 * (1 + o) times the hardware. That is as much as the servers at o = servers ÷ pool − 1.
 */
function byHardware(
  rows: readonly FewestRow[],
  by: 'gpus' | 'cost',
  sizeOf: (row: FewestRow) => number | null,
): BreakEvenRow[] {
  const sized = rows.flatMap((row) => {
    const size = sizeOf(row);
    return size === null || size === 0 ? [] : [{ row, size }];
  });
  return sized
    .filter(({ row }) => row.design === 'pool')
    .flatMap(({ row, size }) => {
      const server = sized
        .filter((one) => one.row.design === 'server' && isUnder(one.row.setting, row.setting))
        .toSorted((a, b) => a.size - b.size)[0];
      if (server === undefined) return [];
      const { policy, setting, seeds } = row;
      const overheadPct = rounded((server.size / size - 1) * 100);
      return [{ by, policy, setting, server: nameOf(server.row), seeds, overheadPct }];
    });
}

interface Swept extends Named {
  /** By overhead, then by seed. */
  readonly waits: Map<number, Map<number, number>>;
}

function byWait(runs: readonly SimulateRun[]): BreakEvenRow[] {
  const servers = sweptOf(runs.filter(({ design }) => design === 'server'));
  return sweptOf(runs.filter(({ design }) => design === 'pool')).flatMap((pool) => {
    const pcts = [...pool.waits.keys()].toSorted((a, b) => a - b);
    const server = servers
      .filter(({ setting }) => isUnder(setting, pool.setting))
      .map((one) => ({ one, bySeed: one.waits.get(0) ?? new Map<number, number>() }))
      .map((each) => ({ ...each, mean: spreadOf([...each.bySeed.values()]).mean }))
      .toSorted((a, b) => a.mean - b.mean)[0];
    if (server === undefined || pcts.length < 2) return [];
    const found = [...server.bySeed].flatMap(([seed, wait]) => {
      const points = pcts.flatMap((pct) => {
        const y = pool.waits.get(pct)?.get(seed);
        return y === undefined ? [] : [{ x: pct, y }];
      });
      return points.length === pcts.length ? [crossing(points, wait)] : [];
    });
    const at = found.filter((each) => typeof each === 'number');
    const { mean, stdev } = spreadOf(at);
    const { policy, setting } = pool;
    return [
      {
        by: 'wait' as const,
        policy,
        setting,
        server: nameOf(server.one),
        seeds: found.length,
        overheadPct: at.length === 0 ? null : rounded(mean),
        overheadPctStdev: at.length === 0 ? null : rounded(stdev),
        sweptPct: { least: pcts[0] ?? 0, most: pcts.at(-1) ?? 0 },
        none: found.filter((each) => each === 'none').length,
        beyond: found.filter((each) => each === 'beyond').length,
      },
    ];
  });
}

/**
 * Where a line through `points`, in order of x, first rises above `level`: `none` if it starts above,
 * `beyond` if it never does.
 */
export function crossing(
  points: readonly { readonly x: number; readonly y: number }[],
  level: number,
): number | 'none' | 'beyond' {
  const at = points.findIndex(({ y }) => y > level);
  const [before, after] = [points[at - 1], points[at]];
  if (after === undefined) return 'beyond';
  if (before === undefined) return 'none';
  return before.x + ((level - before.y) / (after.y - before.y)) * (after.x - before.x);
}

/** Runs in time that differ in seed and overhead alone; servers have none, which is 0. */
function sweptOf(runs: readonly SimulateRun[]): Swept[] {
  const all = new Map<string, Swept>();
  for (const { policy, setting, seed, timed } of runs) {
    if (timed === undefined) continue;
    const { [SWEPT]: pct = 0, ...others } = setting;
    const key = JSON.stringify([policy, others]);
    const group = all.get(key) ?? { policy, setting: others, waits: new Map() };
    all.set(key, group);
    const bySeed = group.waits.get(Number(pct)) ?? new Map<number, number>();
    group.waits.set(Number(pct), bySeed.set(seed, timed.waitMeanS));
  }
  return [...all.values()];
}

/** Whether servers of `setting` are to be held against a pool of `pool`, which has more settings. */
function isUnder(setting: Setting, pool: Setting): boolean {
  return Object.entries(setting).every(([name, value]) => pool[name] === value);
}

const nameOf = ({ policy, setting }: Named): Named => ({ policy, setting });
