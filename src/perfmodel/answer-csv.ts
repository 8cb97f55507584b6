/**
 * The answer as CSV (RFC 4180, with `\n`): a row for each trace and link. An empty cell has no figure;
 * a round trip without a limit is `inf`, one that cannot be reached is empty. Characters that could act
 * on a terminal, as names in a trace may have them, are `�`; a text that a spreadsheet would take for a
 * formula has a `'` before it.
 */
import { type CsvCell, csvLine } from '#report/csv-line';
import type { Budget, Causes, Prediction } from './prediction.ts';

type Column = readonly [string, (prediction: Prediction) => CsvCell];

const COLUMNS: readonly Column[] = [
  ['file', ({ trace }) => trace.file],
  ['format', ({ trace }) => trace.format],
  ['gpus', ({ trace }) => trace.gpus.join('; ')],
  ['link', ({ link }) => link.name],
  ['rttNs', ({ link }) => link.rttNs],
  ['addedRttNs', ({ link }) => link.addedRttNs],
  ['spanNs', ({ trace }) => trace.spanNs],
  ['kernels', ({ trace }) => trace.kernels],
  ['kernelsAtMost10us', ({ trace }) => trace.kernelsAtMost10us],
  ['graphLaunches', ({ trace }) => trace.graphLaunches],
  ['submissions', ({ trace }) => trace.submissions],
  ['hostWaits', ({ trace }) => trace.hostWaits],
  ['queries', ({ trace }) => trace.queries],
  ['htodCount', ({ trace }) => trace.copies.htod.count],
  ['htodBytes', ({ trace }) => trace.copies.htod.bytes],
  ['dtohCount', ({ trace }) => trace.copies.dtoh.count],
  ['dtohBytes', ({ trace }) => trace.copies.dtoh.bytes],
  ['gpuBusyPct', ({ trace }) => trace.gpuBusyPct],
  ['iterations', ({ trace }) => trace.iterations],
  ['additiveAddedNs', ({ additive }) => additive.addedNs],
  ['additiveOverheadPct', ({ additive }) => additive.overheadPct],
  ['replayNativeSpanNs', ({ replay }) => replay?.nativeSpanNs],
  ['replayAddedNs', ({ replay }) => replay?.addedNs],
  ['replayOverheadPct', ({ replay }) => replay?.overheadPct],
  ['replayLowPct', ({ replay }) => replay?.rangePct[0]],
  ['replayHighPct', ({ replay }) => replay?.rangePct[1]],
  ['selfErrorPct', ({ replay }) => replay?.selfErrorPct],
  ['residualPct', ({ replay }) => replay?.residualPct],
  ['violations', ({ replay }) => replay?.violations],
  ['unexplainedPct', ({ replay }) => replay?.unexplainedPct],
  ['confidence', ({ replay }) => replay?.confidence],
  ['budgetPct', ({ verdict }) => verdict.budgetPct],
  ['within', ({ verdict }) => verdict.within],
  ...(['fetchNs', 'doorbellNs', 'htodNs', 'dtohNs', 'waitNs', 'peerNs'] as const).map(
    (cause: keyof Causes): Column => [cause, ({ causes }) => causes[cause]],
  ),
  ['helpsMost', ({ advice }) => advice[0]?.change],
  ['helpsMostSavesPct', ({ advice }) => advice[0]?.savesPct],
  ['warnings', ({ warnings }) => warnings.length],
];

/** Columns of the largest round trips: those of the budgets of `first`, which all share. */
function columnsFor(first: Prediction): Column[] {
  const budgets = first.budgets.flatMap(({ overheadPct }, at): Column[] => [
    [`replayMaxRttNs${overheadPct}`, ({ budgets: all }) => maxRtt(all[at], 'replay')],
    [`additiveMaxRttNs${overheadPct}`, ({ budgets: all }) => maxRtt(all[at], 'additive')],
  ]);
  return [...COLUMNS, ...budgets];
}

function maxRtt(budget: Budget | undefined, estimate: 'replay' | 'additive'): CsvCell {
  if (budget?.[`${estimate}Reason`] === 'unlimited') return 'inf';
  return budget?.[`${estimate}MaxRttNs`];
}

/** Lines of a table that grows: the first call has the header too. */
export class AnswerCsv {
  #columns: readonly Column[] | undefined;

  /** Every prediction has the budgets of the first. */
  lines(predictions: readonly Prediction[]): string[] {
    const [first] = predictions;
    if (first === undefined) return [];
    const header = this.#columns === undefined ? [columnsFor(first)] : [];
    const columns = (this.#columns ??= header[0] ?? []);
    return [
      ...header.map((all) => csvLine(all.map(([name]) => name))),
      ...predictions.map((one) => csvLine(columns.map(([, cell]) => cell(one)))),
    ];
  }
}
