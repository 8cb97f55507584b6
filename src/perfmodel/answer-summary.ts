/** Many traces at a glance: a row each, and what they come to together. */
import * as figures from '#report/figures';
import { type TextColumn, LEAST_WIDTH, textTable } from '#report/text-table';
import { paragraph, plainText } from '#report/text-width';
import {
  linkWords,
  mainCauseWords,
  mainOverheadPct,
  maxRttWords,
  percentOr,
  recalledWords,
  verdictWord,
} from './answer-words.ts';
import type { Prediction } from './prediction.ts';

/** A row for each trace and link, in the order given. */
export function summaryText(predictions: readonly Prediction[], width: number): string[] {
  const [first] = predictions;
  if (first === undefined) return [];
  const room = Math.max(LEAST_WIDTH, width);
  const links = linksOf(predictions);
  const several = links.length > 1;
  const folder = commonFolder(predictions.map(({ trace }) => trace.file));
  const { budgetPct } = first.verdict;
  const columns: TextColumn[] = [
    { title: 'trace', squeeze: 'middle', least: 16 },
    ...(several ? [{ title: 'link', squeeze: 'wrap' as const }] : []),
    { title: 'replay', align: 'right' },
    { title: 'additive', align: 'right', optional: true },
    { title: 'verdict', squeeze: 'wrap', least: 8 },
    { title: `${figures.percent(budgetPct)} up to`, align: 'right' },
    { title: 'lost most by', squeeze: 'wrap', least: 18, optional: true },
    { title: 'confidence', optional: true },
  ];
  const rows = predictions.map((one) => [
    plainText(one.trace.file.slice(folder.length)),
    ...(several ? [plainText(one.link.name)] : []),
    percentOr(one.replay?.overheadPct),
    percentOr(one.additive.overheadPct),
    verdictWord(one),
    budgetRtt(one),
    mainCauseWords(one),
    one.replay === null ? 'no replay' : one.replay.confidence,
  ]);
  return [
    ...(folder === '' ? [] : [...paragraph(`in ${plainText(folder)}`, room), '']),
    ...textTable(columns, rows, room),
    '',
    ...paragraph(totalWords(predictions, folder), room),
    ...links.flatMap((link) =>
      paragraph(`${plainText(link.name)}: ${linkWords(link)}`, room, '', '  '),
    ),
    ...paragraph(recalledWords(links), room, '', '  ').filter((line) => line !== ''),
  ];
}

function linksOf(predictions: readonly Prediction[]): Prediction['link'][] {
  return [...new Map(predictions.map(({ link }) => [link.name, link])).values()];
}

/** The folder all files are in, with the slash, as far as their names tell; empty for one file. */
function commonFolder(files: readonly string[]): string {
  const [first = ''] = files;
  if (files.every((file) => file === first)) return '';
  let folder = first.slice(0, first.lastIndexOf('/') + 1);
  while (!files.every((file) => file.startsWith(folder))) {
    folder = folder.slice(0, folder.lastIndexOf('/', folder.length - 2) + 1);
  }
  return folder;
}

/** The largest round trip of the budget asked for. */
function budgetRtt({ budgets, verdict, replay }: Prediction): string {
  const budget = budgets.find(({ overheadPct }) => overheadPct === verdict.budgetPct);
  return budget === undefined ? '-' : maxRttWords(budget, replay === null ? 'additive' : 'replay');
}

/** How many fit, and the worst, whose name is told without `folder`. */
export function totalWords(predictions: readonly Prediction[], folder = ''): string {
  const fit = predictions.filter(({ verdict }) => verdict.within === 'yes').length;
  const ranked = predictions
    .map((one) => ({ one, pct: mainOverheadPct(one) }))
    .flatMap(({ one, pct }) => (pct === null ? [] : [{ one, pct }]))
    .toSorted((a, b) => b.pct - a.pct);
  const [worst] = ranked;
  const budget = figures.percent(predictions[0]?.verdict.budgetPct ?? 0);
  const counted = `${fit} of ${predictions.length} fit a budget of ${budget}`;
  if (worst === undefined) return `${counted}.`;
  return `${counted}; the worst is ${figures.percent(worst.pct)}, ${plainText(worst.one.trace.file.slice(folder.length))}.`;
}
