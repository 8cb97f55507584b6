/**
 * The answer as CSV: a row for each point of the summary, each run in time, each of the fewest, and each
 * break-even; `kind` says which. A column is there if a row has it.
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
    ...(result.fewest ?? []).map((row) => {
      const { setting, design, policy, cost, gpusByModel: _, ...figures } = row;
      return { kind: 'fewest', design, policy, ...setting, ...figures, cost: cost?.total };
    }),
    ...(result.breakEven ?? []).map((row) => {
      const {
        setting,
        policy,
        server,
        sweptPct: _,
        overheadPct,
        overheadPctStdev,
        ...figures
      } = row;
      const found = { breakEvenPct: overheadPct, breakEvenPctStdev: overheadPctStdev };
      const held = { serverPolicy: server.policy, ...figures, ...found };
      return { kind: 'break-even', design: 'pool', policy, ...setting, ...held };
    }),
  ];
  // Settings before figures, whichever row has them first.
  const settings = new Set(
    [...result.runs, ...(result.fewest ?? [])].flatMap(({ setting }) => Object.keys(setting)),
  );
  const all = new Set(['kind', 'design', 'policy', ...settings, ...rows.flatMap(Object.keys)]);
  const columns = [...all].filter((name) => rows.some((row) => row[name] !== undefined));
  return [csvLine(columns), ...rows.map((row) => csvLine(columns.map((name) => row[name])))];
}
