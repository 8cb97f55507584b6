/**
 * The answer as CSV: a row for each point of the summary, each run in time, and each of the fewest; `kind`
 * says which. A column is there if a row has it.
 */
import { type CsvCell, csvLine } from '#report/csv-line';
import type { SimulateResult } from './result.ts';

type Row = Readonly<Record<string, CsvCell>>;

export function answerCsv(result: SimulateResult): string[] {
  const rows: Row[] = [
    ...result.summary.map(({ setting, design, policy, ...figures }) => ({
      kind: 'allocated',
      design,
      policy,
      ...setting,
      ...figures,
    })),
    ...result.runs.flatMap(({ timed, design, policy, setting, seed }) => {
      if (timed === undefined) return [];
      const { overTime: _, ...figures } = timed;
      return [{ kind: 'timed', design, policy, ...setting, seed, ...figures }];
    }),
    ...(result.fewest ?? []).map(({ setting, design, policy, ...figures }) => ({
      kind: 'fewest',
      design,
      policy,
      ...setting,
      ...figures,
    })),
  ];
  // Settings before figures, whichever row has them first.
  const settings = new Set(
    [...result.runs, ...(result.fewest ?? [])].flatMap(({ setting }) => Object.keys(setting)),
  );
  const all = new Set(['kind', 'design', 'policy', ...settings, ...rows.flatMap(Object.keys)]);
  const columns = [...all];
  return [csvLine(columns), ...rows.map((row) => csvLine(columns.map((name) => row[name])))];
}
