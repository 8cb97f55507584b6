/** Answers as CSV (RFC 4180, with `\n`). An empty cell has no figure. */
import { type CsvCell, csvLine } from '#report/csv-line';
import type { MicrobenchAnswer, RunAnswer, TraceAnswer } from './answer.ts';

type Column = readonly [string, (answer: TraceAnswer) => CsvCell];

const runColumns = (name: 'native' | 'pooled'): Column[] => {
  const of =
    (field: (run: RunAnswer) => CsvCell): Column[1] =>
    (answer) =>
      field(answer[name]);
  return [
    [`${name}SpanNs`, of((run) => run.spanNs)],
    [`${name}TlpsDown`, of((run) => run.down.total)],
    [`${name}TlpsUp`, of((run) => run.up.total)],
    [`${name}DownOccupancyPct`, of((run) => run.downOccupancyPct)],
    [`${name}UpOccupancyPct`, of((run) => run.upOccupancyPct)],
    [`${name}MeanTags`, of((run) => run.meanTags)],
    [`${name}MostTags`, of((run) => run.mostTags)],
  ];
};

const COLUMNS: readonly Column[] = [
  ['file', ({ trace }) => trace],
  ['format', ({ format }) => format],
  ['gpus', ({ gpus }) => gpus.join('; ')],
  ['link', ({ link }) => link.name],
  ['rttNs', ({ link }) => link.rttNs],
  ['addedRttNs', ({ link }) => link.addedRttNs],
  ['tags', ({ link }) => link.tags],
  ['mrrsBytes', ({ link }) => link.mrrsBytes],
  ['mpsBytes', ({ link }) => link.mpsBytes],
  ['networkGbps', ({ link }) => link.networkGbps],
  ['sharing', ({ link }) => link.sharing],
  ['recordedSpanNs', ({ recordedSpanNs }) => recordedSpanNs],
  ['nativeErrorPct', ({ nativeErrorPct }) => nativeErrorPct],
  ['additiveOverheadPct', ({ estimates }) => estimates.additiveOverheadPct],
  ['replayOverheadPct', ({ estimates }) => estimates.replayOverheadPct],
  ['emulatedOverheadPct', ({ estimates }) => estimates.emulatedOverheadPct],
  ['budgetPct', ({ budgetPct }) => budgetPct],
  ['within', ({ within }) => within],
  ...runColumns('native'),
  ...runColumns('pooled'),
  ['networkDownPct', ({ pooled }) => pooled.networkDownPct],
  ['networkUpPct', ({ pooled }) => pooled.networkUpPct],
  ['bulkHtodBytes', ({ bulk }) => bulk.htodBytes],
  ['bulkDtohBytes', ({ bulk }) => bulk.dtohBytes],
  ['warnings', ({ warnings }) => warnings.length],
];

export const TRACE_CSV_HEADER = csvLine(COLUMNS.map(([name]) => name));

export function traceCsvLine(answer: TraceAnswer): string {
  return csvLine(COLUMNS.map(([, cell]) => cell(answer)));
}

/** Header and rows, in the order of the answer. */
export function microbenchCsv({ kind, link, rows }: MicrobenchAnswer): string[] {
  const [first] = rows;
  if (first === undefined) return [];
  const names = Object.keys(first);
  return [
    csvLine(['microbenchmark', 'link', ...names]),
    ...rows.map((row) => {
      const cells = Object.values(row).map((cell) =>
        typeof cell === 'boolean' ? String(cell) : cell,
      );
      return csvLine([kind, link.name, ...cells]);
    }),
  ];
}
