/** The answer as pictures: overhead against round trip, and what the loss is made of. */
import { assert } from '#base/assert';
import * as figures from '#report/figures';
import { barPlot, linePlot } from '#report/plot';
import { stacked } from '#report/stack';
import { plainText, withoutMiddle } from '#report/text-width';
import { curveGroups, curvesOf, shownRttNs } from './answer-curves.ts';
import { shortNames } from './answer-names.ts';
import { CAUSE_WORDS, MAX_PLOTTED, mainOverheadPct, percentOr } from './answer-words.ts';
import type { Causes, Prediction } from './prediction.ts';

/** Both pictures as one SVG, for at most `MAX_PLOTTED` predictions. */
export function answerPlot(predictions: readonly Prediction[]): string {
  return stacked(subjectOf(predictions), [
    overheadPicture(predictions),
    causesPicture(predictions),
  ]);
}

/** Overhead against the whole round trip: both estimates, the budget, and where each link stands. */
export function overheadPicture(predictions: readonly Prediction[]): string {
  assert(predictions.length <= MAX_PLOTTED, 'more predictions than a picture holds');
  const nsShown = shownRttNs(predictions);
  const groups = curveGroups(predictions);
  const names = namesOf(groups);
  const series = groups.flatMap((group, colour) =>
    curvesOf(group, nsShown).map(({ estimate, points }) => ({
      name: names[colour] === '' ? estimate : `${estimate}, ${names[colour]}`,
      points,
      colour,
      dashed: estimate === 'additive',
    })),
  );
  const budgetPct = predictions[0]?.verdict.budgetPct ?? 0;
  const most = Math.max(budgetPct, ...series.flatMap(({ points }) => points.map(({ y }) => y)));
  const links = [...new Map(predictions.map(({ link }) => [link.rttNs, link])).values()];
  return linePlot({
    title: titled('Overhead by round trip', predictions),
    description: predictions.map(overheadSentence).join(' '),
    x: { label: 'whole round trip, µs', domain: [0, nsShown / 1e3] },
    y: { label: 'overhead, %', domain: [0, most * 1.05 || 1] },
    series,
    levels: [{ y: budgetPct, label: `budget ${figures.percent(budgetPct)}` }],
    marks: links.map((link) => ({ x: link.rttNs / 1e3, label: link.name })),
  });
}

function overheadSentence(prediction: Prediction): string {
  const { trace, link } = prediction;
  const pct = percentOr(mainOverheadPct(prediction));
  return `${trace.file} over ${link.name}: ${pct} at ${figures.duration(link.rttNs)}.`;
}

/** A bar for each estimate, made of its causes. */
export function causesPicture(predictions: readonly Prediction[]): string {
  const names = namesOf(predictions.map((one) => [one]));
  const bars = predictions.flatMap((one, index) => {
    const of = (estimate: string): string =>
      names[index] === '' ? estimate : `${names[index]}, ${estimate}`;
    return [
      ...(one.replay === null ? [] : [{ label: of('replay'), causes: one.replay.causes }]),
      { label: of('additive'), causes: one.additive.causes },
    ];
  });
  const total = (causes: Causes): number =>
    CAUSE_WORDS.reduce((sum, { key }) => sum + causes[key], 0);
  const most = Math.max(...bars.map(({ causes }) => total(causes)));
  const [unit, ns] =
    most >= 1e9
      ? (['s', 1e9] as const)
      : most >= 1e6
        ? (['ms', 1e6] as const)
        : (['µs', 1e3] as const);
  const shown = CAUSE_WORDS.map((cause, colour) => ({ ...cause, colour })).filter(({ key }) =>
    bars.some(({ causes }) => causes[key] > 0),
  );
  return barPlot({
    title: titled('Time lost, by cause', predictions),
    description: bars
      .map(({ label, causes }) => `${label}: ${figures.duration(total(causes))}.`)
      .join(' '),
    x: { label: `added time, ${unit}`, ...(most > 0 ? {} : { domain: [0, 1] as const }) },
    bars: bars.map(({ label, causes }) => ({
      label,
      parts: shown.map(({ key, word, colour }) => ({
        name: word,
        value: causes[key] / ns,
        colour,
      })),
    })),
  });
}

/** What tells groups of predictions apart; empty for one alone. */
function namesOf(groups: readonly (readonly Prediction[])[]): string[] {
  const files = shortNames(groups.map(([first]) => first?.trace.file ?? ''));
  const links = groups.map((group) => [...new Set(group.map(({ link }) => link.name))].join(' / '));
  const severalFiles = new Set(files).size > 1;
  const severalLinks = new Set(links).size > 1;
  return groups.map((_, index) =>
    [
      ...(severalFiles ? [shortened(files[index] ?? '')] : []),
      ...(severalLinks ? [shortened(links[index] ?? '')] : []),
    ].join(' '),
  );
}

function shortened(name: string): string {
  return withoutMiddle(plainText(name), 28);
}

function titled(text: string, predictions: readonly Prediction[]): string {
  return `${text}: ${subjectOf(predictions)}`;
}

function subjectOf(predictions: readonly Prediction[]): string {
  const files = [...new Set(predictions.map(({ trace }) => trace.file))];
  const made = predictions.some(({ trace }) => trace.format === 'synthetic') ? ' (SYNTHETIC)' : '';
  const [only = ''] = files;
  if (files.length > 1) return `${files.length} traces${made}`;
  const name = only.slice(only.lastIndexOf('/') + 1);
  return `${withoutMiddle(plainText(name), 48)}${made}`;
}
