/** Many traces at a glance: a row each, and what they come to together. */
import * as figures from '#report/figures';
import { recalledWords } from '#report/link-words';
import { type TextColumn, LEAST_WIDTH, textTable } from '#report/text-table';
import { paragraph, plainText } from '#report/text-width';
import { verdictWord } from '#report/trace-words';
import { commonFolder, shortNames } from './answer-names.ts';
import { linkWords, mainCauseWords, mainOverheadPct, maxRttWords } from './answer-words.ts';
import type { Prediction } from './prediction.ts';

/** A row for each trace and link, in the order given. */
export function summaryText(predictions: readonly Prediction[], width: number): string[] {
  const [first] = predictions;
  if (first === undefined) return [];
  const room = Math.max(LEAST_WIDTH, width);
  const links = linksOf(predictions);
  const several = links.length > 1;
  const files = predictions.map(({ trace }) => trace.file);
  const folder = commonFolder(files);
  const names = shortNames(files);
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
  const rows = predictions.map((one, index) => [
    plainText(names[index] ?? ''),
    ...(several ? [plainText(one.link.name)] : []),
    figures.percentOr(one.replay?.overheadPct),
    figures.percentOr(one.additive.overheadPct),
    verdictWord(one.verdict.within),
    budgetRtt(one),
    mainCauseWords(one),
    one.replay === null ? 'no replay' : one.replay.confidence,
  ]);
  return [
    ...(folder === '' ? [] : [...paragraph(`in ${plainText(folder)}`, room), '']),
    ...textTable(columns, rows, room),
    '',
    ...paragraph(totalWords(predictions), room),
    ...links.flatMap((link) =>
      paragraph(`${plainText(link.name)}: ${linkWords(link)}`, room, '', '  '),
    ),
    ...paragraph(recalledWords(links), room, '', '  ').filter((line) => line !== ''),
  ];
}

function linksOf(predictions: readonly Prediction[]): Prediction['link'][] {
  return [...new Map(predictions.map(({ link }) => [link.name, link])).values()];
}

/** The largest round trip of the budget asked for. */
function budgetRtt({ budgets, verdict, replay }: Prediction): string {
  const budget = budgets.find(({ overheadPct }) => overheadPct === verdict.budgetPct);
  return budget === undefined ? '-' : maxRttWords(budget, replay === null ? 'additive' : 'replay');
}

/** How many fit, and the worst. */
export function totalWords(predictions: readonly Prediction[]): string {
  const names = shortNames(predictions.map(({ trace }) => trace.file));
  const fit = predictions.filter(({ verdict }) => verdict.within === 'yes').length;
  const ranked = predictions
    .map((one, index) => ({ name: names[index] ?? '', pct: mainOverheadPct(one) }))
    .flatMap(({ name, pct }) => (pct === null ? [] : [{ name, pct }]))
    .toSorted((a, b) => b.pct - a.pct);
  const [worst] = ranked;
  const budget = figures.percent(predictions[0]?.verdict.budgetPct ?? 0);
  const counted = `${fit} of ${predictions.length} fit a budget of ${budget}`;
  if (worst === undefined) return `${counted}.`;
  return `${counted}; the worst is ${figures.percent(worst.pct)}, ${plainText(worst.name)}.`;
}
