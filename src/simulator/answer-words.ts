/** What text, table and page have in common: rows of an answer, and words for them. */
import * as figures from '#report/figures';
import { priceWords } from './bill.ts';
import type { FewestRow, SimulateResult, SimulateRun } from './result.ts';
import { spreadOf, threeStandardErrors } from './statistics.ts';

export type Setting = SimulateRun['setting'];

/** Runs that differ in seed alone. */
export interface RunGroup {
  readonly design: SimulateRun['design'];
  readonly policy: string;
  readonly setting: Setting;
  readonly runs: readonly SimulateRun[];
}

/** In the order of the answer. */
export function groupsOf(runs: readonly SimulateRun[]): RunGroup[] {
  const groups = new Map<string, { first: SimulateRun; runs: SimulateRun[] }>();
  for (const run of runs) {
    const key = JSON.stringify([run.design, run.policy, run.setting]);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, { first: run, runs: [run] });
    else group.runs.push(run);
  }
  return [...groups.values()].map(({ first: { design, policy, setting }, runs: own }) => ({
    design,
    policy,
    setting,
    runs: own,
  }));
}

/** Settings that have several values among rows that have them at all. */
export function variedOf(rows: readonly { readonly setting: Setting }[]): string[] {
  const values = new Map<string, Set<string | number>>();
  for (const { setting } of rows) {
    for (const [name, value] of Object.entries(setting)) {
      values.set(name, (values.get(name) ?? new Set()).add(value));
    }
  }
  return [...values].flatMap(([name, all]) => (all.size > 1 ? [name] : []));
}

const SETTING_WORDS: Readonly<Record<string, string>> = {
  untilPct: 'until %',
  demandPct: 'demand %',
  racksPerPod: 'racks a pod',
  overheadPct: 'overhead %',
  gpuMtbfH: 'GPU MTBF h',
  serverMtbfH: 'server MTBF h',
  boxMtbfH: 'box MTBF h',
  repairH: 'repair h',
  checkpointMin: 'checkpoint min',
  rebindS: 'rebind s',
};

export function settingWord(name: string): string {
  return SETTING_WORDS[name] ?? name;
}

export function settingCells(setting: Setting, names: readonly string[]): string[] {
  return names.map((name) => String(setting[name] ?? ''));
}

/** `pool fgd`, and what of its setting is varied: `pool fgd, slots 8`. */
export function labelOf(
  row: { readonly design: string; readonly policy: string; readonly setting: Setting },
  varied: readonly string[],
): string {
  const own = varied.flatMap((name) => {
    const value = row.setting[name];
    return value === undefined ? [] : [`${settingWord(name)} ${value}`];
  });
  return [`${row.design} ${row.policy}`, ...own].join(', ');
}

export interface Allocated {
  readonly mean: number;
  readonly stdev: number;
  readonly count: number;
}

/** Of all GPUs at `arrivedPct`, if the curve of every run reaches there. */
export function allocatedAt({ runs }: RunGroup, arrivedPct: number): Allocated | undefined {
  const values = runs.flatMap(({ curve }) => pointAt(curve, arrivedPct) ?? []);
  return values.length < runs.length ? undefined : spreadOf(values);
}

/** Few GPUs leave gaps between the points of a curve: a straight line over each. */
function pointAt(curve: SimulateRun['curve'], arrivedPct: number): number | undefined {
  const at = curve.findIndex((point) => point.arrivedPct >= arrivedPct);
  const [before, after] = [curve[at - 1], curve[at]];
  if (after === undefined) return undefined;
  if (after.arrivedPct === arrivedPct || before === undefined) {
    return after.arrivedPct === arrivedPct ? after.allocatedPct : undefined;
  }
  const share = (arrivedPct - before.arrivedPct) / (after.arrivedPct - before.arrivedPct);
  return before.allocatedPct + share * (after.allocatedPct - before.allocatedPct);
}

/** Every whole percent that all curves of all groups reach. */
export function sharedPcts(groups: readonly RunGroup[]): number[] {
  const curves = groups.flatMap(({ runs }) => runs.map(({ curve }) => curve));
  const edge = (which: 0 | -1): number[] => curves.map((curve) => curve.at(which)?.arrivedPct ?? 0);
  const first = edge(0).reduce((most, pct) => Math.max(most, pct), 0);
  const last = edge(-1).reduce((least, pct) => Math.min(least, pct), Infinity);
  if (!(last >= first && last < Infinity)) return [];
  return Array.from({ length: last - first + 1 }, (_, i) => first + i);
}

/** The arrived shares a table shows: 80 %, 100 %, and the last that all reach. */
export function shownPcts(groups: readonly RunGroup[]): number[] {
  const shared = sharedPcts(groups);
  const last = shared.at(-1);
  return shared.filter((pct) => pct === 80 || pct === 100 || pct === last);
}

/** `92.3 ± 0.12`; of one seed without a spread. */
export function allocatedWords(at: Allocated | undefined): string {
  if (at === undefined) return '';
  return at.count === 1 ? at.mean.toFixed(2) : `${at.mean.toFixed(2)} ± ${at.stdev.toFixed(2)}`;
}

const REASON_WORDS: Readonly<Record<string, string>> = {
  model: 'model',
  'no-cpu-beside-gpu': 'no CPU beside a free GPU',
  'no-slot': 'no slot',
  fragmentation: 'fragmentation',
  'no-gpu-beside-cpu': 'no GPU beside free CPU',
};

/** Reasons with their mean count a run, the commonest first. */
export function refusedOf({ runs }: RunGroup): { readonly word: string; readonly mean: number }[] {
  return Object.entries(REASON_WORDS)
    .map(([reason, word]) => ({
      word,
      mean: meanOf(runs, ({ unplaced }) => unplaced[reason as keyof typeof unplaced]),
    }))
    .filter(({ mean }) => mean > 0)
    .toSorted((a, b) => b.mean - a.mean);
}

export function meanOf(
  runs: readonly SimulateRun[],
  of: (run: SimulateRun) => number | undefined,
): number {
  return spreadOf(runs.map((run) => of(run) ?? 0)).mean;
}

/** Seconds as people read them: `40 s`, `25 min`, `3.2 h`, `4.1 d`. */
export function spanWords(seconds: number): string {
  if (seconds < 120) return `${figures.threeDigits(seconds)} s`;
  if (seconds < 7200) return `${figures.threeDigits(seconds / 60)} min`;
  if (seconds < 259_200) return `${figures.threeDigits(seconds / 3600)} h`;
  return `${figures.threeDigits(seconds / 86_400)} d`;
}

/** What comes out, in sentences: pool against servers, whichever is better; empty without both. */
export function findings(result: SimulateResult): string[] {
  const groups = groupsOf(result.runs);
  const timed = groups.some(({ runs }) => runs[0]?.timed !== undefined);
  return [
    ...(timed ? waitFinding(groups) : allocatedFinding(groups)),
    ...fewestFinding(result.fewest ?? []),
  ];
}

function allocatedFinding(groups: readonly RunGroup[]): string[] {
  const pct = shownPcts(groups).findLast((at) => at <= 100);
  if (pct === undefined) return [];
  const best = (design: string) =>
    groups
      .filter((group) => group.design === design)
      .flatMap((group) => {
        const at = allocatedAt(group, pct);
        return at === undefined ? [] : [{ group, at }];
      })
      .toSorted((a, b) => b.at.mean - a.at.mean)[0];
  const [server, pool] = [best('server'), best('pool')];
  if (server === undefined || pool === undefined) return [];
  const varied = variedOf(groups);
  const difference = pool.at.mean - server.at.mean;
  const chance = threeStandardErrors(pool.at, server.at);
  const points = `${Math.abs(difference).toFixed(2)} points`;
  const much =
    pool.at.count > 1 && Math.abs(difference) <= chance
      ? `${points} apart, which is within chance (three standard errors)`
      : `the pool allocates ${points} ${difference < 0 ? 'less' : 'more'}`;
  return [
    `At ${pct} % arrived, best of each design: ${labelOf(pool.group, varied)}: ` +
      `${pool.at.mean.toFixed(2)} %; ${labelOf(server.group, varied)}: ${server.at.mean.toFixed(2)} %; ${much}.`,
  ];
}

function waitFinding(groups: readonly RunGroup[]): string[] {
  const waits = groups.map((group) => ({
    group,
    seconds: meanOf(group.runs, ({ timed }) => timed?.waitMeanS),
  }));
  const best = (design: string) =>
    waits
      .filter(({ group }) => group.design === design)
      .toSorted((a, b) => a.seconds - b.seconds)[0];
  const [server, pool] = [best('server'), best('pool')];
  if (server === undefined || pool === undefined) return [];
  const varied = variedOf(groups);
  return [
    `Mean wait, best of each design: ${labelOf(pool.group, varied)}: ${spanWords(pool.seconds)}; ` +
      `${labelOf(server.group, varied)}: ${spanWords(server.seconds)}.`,
  ];
}

function fewestFinding(rows: readonly FewestRow[]): string[] {
  const best = (design: string) =>
    rows
      .flatMap((row) =>
        row.design === design && row.gpus !== null ? [{ row, gpus: row.gpus }] : [],
      )
      .toSorted((a, b) => a.gpus - b.gpus)[0];
  // A sweep over demands has no one best.
  if (variedOf(rows).includes('demandPct')) return [];
  const [server, pool] = [best('server'), best('pool')];
  if (server === undefined || pool === undefined) return [];
  const varied = variedOf(rows);
  const saved = server.gpus - pool.gpus;
  const share = figures.percent((Math.abs(saved) / server.gpus) * 100);
  const much =
    saved === 0
      ? 'as many'
      : saved > 0
        ? `the pool saves ${figures.count(saved)}, ${share}`
        : `the pool needs ${figures.count(-saved)} more, ${share}`;
  return [
    `Fewest GPUs for the same demand: ${labelOf(pool.row, varied)}: ${figures.count(pool.gpus)}; ` +
      `${labelOf(server.row, varied)}: ${figures.count(server.gpus)}; ${much}.`,
  ];
}

/** `12 machines of nodes.csv`; made-up lists are called so. */
export function inputWords({ inputs = [] }: SimulateResult): string[] {
  const words = { nodes: 'machines', pods: 'requests', jobs: 'jobs' } as const;
  return inputs.map(
    ({ role, name, entries, synthetic }) =>
      `${figures.count(entries)} ${words[role]} of ${name}${synthetic ? ' (SYNTHETIC)' : ''}`,
  );
}

export function isSynthetic({ inputs = [] }: SimulateResult): boolean {
  return inputs.some(({ synthetic }) => synthetic);
}

export const SYNTHETIC_WORDS =
  'SYNTHETIC: made-up lists, of no cluster; the figures say nothing of yours.';

/** What was set, in lines: of each design what all its rows share, and the prices. */
export function settingLines({ runs, fewest = [], prices }: SimulateResult): string[] {
  return [
    ...sharedSettings([...runs, ...fewest]),
    ...(prices === undefined ? [] : [priceWords(prices)]),
  ];
}

function sharedSettings(rows: readonly { design: string; setting: Setting }[]): string[] {
  const varied = new Set(variedOf(rows));
  return (['server', 'pool'] as const).flatMap((design) => {
    const row = rows.find((one) => one.design === design);
    if (row === undefined) return [];
    const own = Object.entries(row.setting).filter(([name]) => !varied.has(name));
    if (own.length === 0) return [];
    return [`${design}: ${own.map(([name, value]) => `${settingWord(name)} ${value}`).join(', ')}`];
  });
}

/** Lines or bars that a picture of the answer has. */
export function lineCount(result: SimulateResult): number {
  return Math.max(groupsOf(result.runs).length, result.fewest?.length ?? 0);
}
