/** One trace over several links, side by side. */
import * as figures from '#report/figures';
import { recalledWords, rttWords } from '#report/link-words';
import { LEAST_WIDTH, textTable } from '#report/text-table';
import { displayWidth, paragraph, plainText } from '#report/text-width';
import { originLines, verdictWord } from '#report/trace-words';
import { linkWords, mainCauseWords, maxRttWords, workloadRows } from './answer-words.ts';
import type { Prediction } from './prediction.ts';

const MOST_WIDTH = 120;

/** Name and the cell of each link. */
type Row = readonly [string, (prediction: Prediction) => string];

/** The figures that differ by link, top to bottom, in every form of the comparison. */
export function comparisonRows(predictions: readonly Prediction[]): Row[] {
  const hasReplay = predictions.some(({ replay }) => replay !== null);
  const budgets = predictions[0]?.budgets ?? [];
  const estimate = hasReplay ? 'replay' : 'additive';
  const rows: Row[] = [
    ['round trip', ({ link }) => rttWords(link)],
    ['HtoD rate', ({ link }) => figures.gbytesPerS(link.pooledReadGbytesPerS)],
    ['DtoH rate', ({ link }) => figures.gbytesPerS(link.pooledWriteGbytesPerS)],
  ];
  if (hasReplay) rows.push(['replay', ({ replay }) => figures.percentOr(replay?.overheadPct)]);
  rows.push(['additive', ({ additive }) => figures.percentOr(additive.overheadPct)]);
  rows.push(['verdict', ({ verdict }) => verdictWord(verdict.within)]);
  for (const [index, { overheadPct }] of budgets.entries()) {
    rows.push([
      `${figures.percent(overheadPct)} up to`,
      (prediction) => {
        const budget = prediction.budgets[index];
        return budget === undefined ? '-' : maxRttWords(budget, estimate);
      },
    ]);
  }
  if (hasReplay) rows.push(['confidence', ({ replay }) => replay?.confidence ?? 'no replay']);
  rows.push(['lost most by', mainCauseWords]);
  rows.push(['helps most', ({ advice }) => advice[0]?.change ?? '-']);
  return rows;
}

/** `predictions` are of one trace. No line is wider than `width`, or `LEAST_WIDTH`. */
export function comparisonText(predictions: readonly Prediction[], width: number): string[] {
  const [first] = predictions;
  if (first === undefined) return [];
  const room = Math.max(LEAST_WIDTH, Math.min(width, MOST_WIDTH));
  const rows = comparisonRows(predictions);
  const names = Math.max(...rows.map(([name]) => displayWidth(name)));
  const cells = predictions.map((one) => [
    plainText(one.link.name),
    ...rows.map(([, cell]) => cell(one)),
  ]);
  const widest = Math.max(...cells.flat().map(displayWidth));
  const atOnce = Math.max(1, Math.floor((room - names) / (Math.min(widest, room - names - 2) + 2)));
  const lines = [
    ...originLines(first.trace, room),
    ...paragraph(`budget ${figures.percent(first.verdict.budgetPct)}`, room),
    '',
  ];
  for (let from = 0; from < cells.length; from += atOnce) {
    const shown = cells.slice(from, from + atOnce);
    lines.push(
      ...textTable(
        [
          { title: '' },
          ...shown.map(([title = '']) => ({
            title,
            align: 'right' as const,
            squeeze: 'wrap' as const,
          })),
        ],
        rows.map(([name], at) => [name, ...shown.map((column) => column[at + 1] ?? '')]),
        room,
      ),
      '',
    );
  }
  const workload = workloadRows(first).map(([name, value]) => `${name}: ${value}`);
  return [
    ...lines,
    'The links',
    ...predictions.flatMap(({ link }) =>
      paragraph(`${plainText(link.name)}: ${linkWords(link)}`, room, '  ', '    '),
    ),
    ...paragraph(recalledWords(predictions.map(({ link }) => link)), room, '', '  ').filter(
      (line) => line !== '',
    ),
    '',
    'The workload',
    ...workload.flatMap((line) => paragraph(line, room, '  ', '    ')),
    '',
    ...warnings(first, room),
  ];
}

function warnings({ warnings: all }: Prediction, room: number): string[] {
  if (all.length === 0) return [];
  return [
    'Warnings',
    ...all.flatMap(({ message }) => paragraph(plainText(message), room, '  - ', '    ')),
    '',
  ];
}
