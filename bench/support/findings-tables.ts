/** Tables of docs/simulate-findings.md, in Markdown. */
import { overheadWords } from '#simulator/break-even-words';
import { allocatedAt, groupsOf, refusedOf, type RunGroup } from '#simulator/answer-words';
import type { FewestRow, SimulateResult } from '#simulator/result';
import { type Spread, spreadOf, threeStandardErrors } from '#simulator/statistics';

const S_PER_H = 3600;
export const AT_PCT = 100;

export function table(titles: readonly string[], rows: readonly (readonly string[])[]): string {
  const rule = titles.map((_, at) => (at === 0 ? '---' : '---:'));
  return [titles, rule, ...rows].map((row) => `| ${row.join(' | ')} |`).join('\n');
}

export interface Side {
  readonly policy: string;
  readonly at: Spread;
}

/** At 100 % arrived, of each design, by policy. */
export function sidesOf(result: SimulateResult, design: 'server' | 'pool'): Side[] {
  return groupsOf(result.runs)
    .filter((group) => group.design === design)
    .map((group) => ({ policy: group.policy, at: shareOf(group) }));
}

export function bestOf(sides: readonly Side[]): Side {
  const best = sides.toSorted((a, b) => b.at.mean - a.at.mean)[0];
  if (best === undefined) throw new Error('a study without runs');
  return best;
}

function shareOf(group: RunGroup): Spread {
  const at = allocatedAt(group, AT_PCT);
  if (at === undefined) throw new Error(`no run of ${group.policy} reaches ${AT_PCT} %`);
  return at;
}

/** A row for each policy: servers, pool, and what lies between. */
export function policyTable(result: SimulateResult): string {
  const servers = sidesOf(result, 'server');
  const rows = sidesOf(result, 'pool').map(({ policy, at }) => {
    const server = servers.find((side) => side.policy === policy)?.at;
    if (server === undefined) return [policy, '', spread(at), ''];
    return [policy, spread(server), spread(at), difference(at, server)];
  });
  return table(['policy', 'servers', 'pool', 'points'], rows);
}

/** `+0.42`, with what is within three standard errors marked. */
export function difference(pool: Spread, server: Spread): string {
  const points = pool.mean - server.mean;
  const words = `${points < 0 ? '−' : '+'}${Math.abs(points).toFixed(2)}`;
  return mayBeChance(pool, server) ? `${words} (chance)` : words;
}

export function mayBeChance(pool: Spread, server: Spread): boolean {
  return Math.abs(pool.mean - server.mean) <= threeStandardErrors(pool, server);
}

export function spread({ mean, stdev }: Spread, digits = 2): string {
  return `${mean.toFixed(digits)} ± ${stdev.toFixed(digits)}`;
}

/** Pools by reach, down, and slots, across. */
export function reachTable(result: SimulateResult, slots: readonly number[]): string {
  const groups = groupsOf(result.runs).filter(({ design }) => design === 'pool');
  const reaches = [...new Set(groups.map(({ setting }) => String(setting['reach'])))];
  const rows = reaches.map((reach) => [
    reach,
    ...slots.map((count) => {
      const group = groups.find(
        ({ setting }) => setting['reach'] === reach && setting['slots'] === count,
      );
      return group === undefined ? '' : spread(shareOf(group));
    }),
  ]);
  return table(['reach', ...slots.map((count) => `${count} slots`)], rows);
}

/** What is mostly the reason that requests are not placed. */
export function reasonsTable(result: SimulateResult, policy: string): string {
  const rows = groupsOf(result.runs)
    .filter((group) => group.policy === policy)
    .map((group) => [
      group.design,
      refusedOf(group)
        .map(({ word, mean }) => `${word} ${mean.toFixed(0)}`)
        .join(', '),
    ]);
  return table(['design', `requests not placed, mean a run, ${policy}`], rows);
}

export function fewestTable(
  rows: readonly (readonly [string, SimulateResult])[],
  first = 'list',
): string {
  const cells = rows.flatMap(([name, { fewest = [], breakEven = [] }]) => {
    const server = fewest.find(({ design }) => design === 'server');
    return fewest
      .filter(({ design }) => design === 'pool')
      .map((pool) => {
        const even = breakEven.find(
          ({ by, policy, setting }) =>
            by === 'gpus' &&
            policy === pool.policy &&
            JSON.stringify(setting) === JSON.stringify(pool.setting),
        );
        return [
          name,
          ...hardware(server),
          ...hardware(pool),
          saved(server, pool),
          even === undefined ? '–' : overheadWords(even),
        ];
      });
  });
  const titles = ['servers: GPUs', 'machines', 'pool: GPUs', 'hosts', 'GPUs saved', 'break-even'];
  return table([first, ...titles], cells);
}

function hardware(row: FewestRow | undefined): [string, string] {
  if (row === undefined) return ['–', '–'];
  const { gpus, servers } = row;
  return gpus === null ? ['over 4 times the list', '–'] : [String(gpus), String(servers)];
}

function saved(server: FewestRow | undefined, pool: FewestRow): string {
  if (server === undefined || server.gpus === null || pool.gpus === null) return '–';
  const share = ((server.gpus - pool.gpus) / server.gpus) * 100;
  return `${server.gpus - pool.gpus} (${share.toFixed(1)} %)`;
}

/** Jobs in time: a row for each design, policy and overhead. */
export function timedTable(result: SimulateResult): string {
  const groups = groupsOf(result.runs);
  const rows = groups.map(({ design, policy, setting, runs }) => {
    type Timed = NonNullable<(typeof runs)[number]['timed']>;
    const over = (of: (timed: Timed) => number): Spread =>
      spreadOf(runs.flatMap(({ timed }) => (timed === undefined ? [] : [of(timed)])));
    return [
      design,
      policy,
      design === 'server' ? '' : String(setting['overheadPct']),
      spread(
        over(({ waitMeanS }) => waitMeanS / S_PER_H),
        1,
      ),
      over(({ waitMedianS }) => waitMedianS / S_PER_H).mean.toFixed(1),
      over(({ wait95S }) => wait95S / S_PER_H).mean.toFixed(0),
      spread(
        over(({ utilisationPct }) => utilisationPct),
        1,
      ),
      over(({ restarts }) => restarts).mean.toFixed(1),
      over(({ rebinds }) => rebinds).mean.toFixed(1),
    ];
  });
  const titles = ['policy', 'overhead %', 'mean wait h', 'median h', '95 % h', 'utilisation %'];
  return table(['design', ...titles, 'restarts', 'rebinds'], rows);
}

/** One line for each pool whose overhead was swept. */
export function breakEvenList({ breakEven = [] }: SimulateResult): string {
  return breakEven
    .filter(({ by }) => by === 'wait')
    .map(
      (row) => `- pool ${row.policy} against servers ${row.server.policy}: ${overheadWords(row)}`,
    )
    .join('\n');
}
