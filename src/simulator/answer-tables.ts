/** The tables of an answer, as titles and cells: text and page set them each in their way. */
import * as figures from '#report/figures';
import {
  allocatedAt,
  allocatedWords,
  groupsOf,
  meanOf,
  refusedOf,
  type RunGroup,
  settingCells,
  settingWord,
  shownPcts,
  spanWords,
  variedOf,
} from './answer-words.ts';
import { overheadWords } from './break-even-words.ts';
import type { BreakEvenRow, SimulateResult } from './result.ts';

const BY_WORDS = { gpus: 'GPUs', cost: 'money', wait: 'mean wait' } as const;

export interface AnswerTable {
  readonly heading: string;
  readonly titles: readonly string[];
  readonly rows: readonly (readonly string[])[];
  /** So many columns, from the first, hold words. */
  readonly words: number;
  /** Titles of columns left out where there is no room. */
  readonly optional?: readonly string[];
  /** The last column holds a text. */
  readonly endsInText?: boolean;
}

export function answerTables(result: SimulateResult): AnswerTable[] {
  const groups = groupsOf(result.runs);
  const filled = groups.filter(({ runs }) => runs[0]?.timed === undefined);
  const timed = groups.filter(({ runs }) => runs[0]?.timed !== undefined);
  return [
    ...(filled.length === 0 ? [] : [fillTable(filled)]),
    ...(timed.length === 0 ? [] : [timedTable(timed)]),
    ...(result.fewest === undefined ? [] : [fewestTable(result.fewest)]),
    ...(result.breakEven === undefined ? [] : [breakEvenTable(result.breakEven)]),
  ];
}

function fillTable(groups: readonly RunGroup[]): AnswerTable {
  const varied = variedOf(groups);
  const pcts = shownPcts(groups);
  return {
    heading: 'GPUs allocated, % of all, when so much has been asked for',
    titles: [
      'design',
      'policy',
      ...varied.map(settingWord),
      ...pcts.map((pct) => `at ${pct} %`),
      'not placed',
      'mostly',
    ],
    words: 2,
    optional: ['at 80 %', 'not placed'],
    endsInText: true,
    rows: groups.map((group) => {
      const requests = meanOf(group.runs, (run) => run.requests);
      const refused = meanOf(group.runs, (run) => run.requests - run.placed);
      return [
        group.design,
        group.policy,
        ...settingCells(group.setting, varied),
        ...pcts.map((pct) => allocatedWords(allocatedAt(group, pct))),
        figures.percent(requests === 0 ? 0 : (refused / requests) * 100),
        refusedOf(group)[0]?.word ?? '',
      ];
    }),
  };
}

function timedTable(groups: readonly RunGroup[]): AnswerTable {
  const varied = variedOf(groups);
  const fails = groups.some(({ runs }) => runs.some(({ timed }) => (timed?.failures ?? 0) > 0));
  return {
    heading: 'Jobs in time, means over seeds',
    titles: [
      'design',
      'policy',
      ...varied.map(settingWord),
      'mean wait',
      'median',
      '95 %',
      'longest',
      'utilisation',
      'makespan',
      ...(fails ? ['failures', 'restarts', 'rebinds', 'GPU hours lost'] : []),
    ],
    words: 2,
    optional: ['median', 'longest', 'makespan', 'failures', 'GPU hours lost'],
    rows: groups.map(({ design, policy, setting, runs }) => {
      type Timed = NonNullable<(typeof runs)[number]['timed']>;
      const mean = (of: (timed: Timed) => number): number =>
        meanOf(runs, ({ timed }) => timed && of(timed));
      const failed = [
        figures.threeDigits(mean((timed) => timed.failures)),
        figures.threeDigits(mean((timed) => timed.restarts)),
        figures.threeDigits(mean((timed) => timed.rebinds)),
        figures.threeDigits(mean((timed) => timed.lostGpuHours)),
      ];
      return [
        design,
        policy,
        ...settingCells(setting, varied),
        spanWords(mean((timed) => timed.waitMeanS)),
        spanWords(mean((timed) => timed.waitMedianS)),
        spanWords(mean((timed) => timed.wait95S)),
        spanWords(mean((timed) => timed.waitMaxS)),
        figures.percent(mean((timed) => timed.utilisationPct)),
        spanWords(mean((timed) => timed.makespanS)),
        ...(fails ? failed : []),
      ];
    }),
  };
}

function fewestTable(rows: NonNullable<SimulateResult['fewest']>): AnswerTable {
  const varied = variedOf(rows);
  const orNone = (value: number | null): string =>
    value === null ? 'over 4 times the list' : figures.count(value);
  const share = rows[0]?.sharePct ?? 0;
  const priced = rows.some(({ cost }) => cost !== undefined);
  return {
    heading: `Fewest that place ${figures.percent(share)} of the demand in every seed`,
    titles: [
      'design',
      'policy',
      ...varied.map(settingWord),
      'GPUs asked',
      'GPUs',
      'machines',
      'boxes',
      ...(priced ? ['cost'] : []),
    ],
    words: 2,
    rows: rows.map(({ design, policy, setting, demandGpus, gpus, servers, boxes, cost }) => [
      design,
      policy,
      ...settingCells(setting, varied),
      figures.count(Math.round(demandGpus)),
      orNone(gpus),
      servers === null ? '' : figures.count(servers),
      boxes === undefined ? '' : figures.count(boxes),
      ...(priced ? [cost === undefined ? '' : figures.count(Math.round(cost.total))] : []),
    ]),
  };
}

function breakEvenTable(rows: readonly BreakEvenRow[]): AnswerTable {
  const varied = variedOf(rows);
  return {
    heading: 'Break-even: how much longer jobs may take in a pool until it saves nothing',
    titles: ['by', 'pool', 'servers', ...varied.map(settingWord), 'overhead'],
    words: 3,
    endsInText: true,
    rows: rows.map((row) => [
      BY_WORDS[row.by],
      row.policy,
      row.server.policy,
      ...settingCells(row.setting, varied),
      overheadWords(row),
    ]),
  };
}

/** Why requests found no place, mean counts a run, for a page. */
export function refusedTable(result: SimulateResult): AnswerTable | undefined {
  const groups = groupsOf(result.runs).filter((group) => refusedOf(group).length > 0);
  if (groups.length === 0) return undefined;
  const varied = variedOf(groups);
  const words = [...new Set(groups.flatMap((group) => refusedOf(group).map(({ word }) => word)))];
  return {
    heading: 'Requests not placed, and why: means a run',
    titles: ['design', 'policy', ...varied.map(settingWord), ...words],
    words: 2,
    rows: groups.map((group) => {
      const means = new Map(refusedOf(group).map(({ word, mean }) => [word, mean]));
      return [
        group.design,
        group.policy,
        ...settingCells(group.setting, varied),
        ...words.map((word) => figures.threeDigits(means.get(word) ?? 0)),
      ];
    }),
  };
}
