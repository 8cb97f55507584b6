/** The answer as pictures: overhead against round trip, and what the loss is made of. */
import { assert } from '#base/assert';
import * as figures from '#report/figures';
import { overheadPlot, overheadSentence } from '#report/overhead-plot';
import { MAX_PLOTTED } from '#report/palette';
import { barPlot } from '#report/plot';
import { stacked } from '#report/stack';
import { legendName, titleWords } from '#report/trace-words';
import { curveGroups, curvesOf, shownRttNs } from './answer-curves.ts';
import { shortNames } from './answer-names.ts';
import { CAUSE_WORDS, mainOverheadPct } from './answer-words.ts';
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
  return overheadPlot({
    subject: subjectOf(predictions),
    description: predictions
      .map((one) => overheadSentence(one.trace.file, one.link, mainOverheadPct(one)))
      .join(' '),
    series,
    budgetPct: predictions[0]?.verdict.budgetPct ?? 0,
    links: predictions.map(({ link }) => link),
    endNs: nsShown,
  });
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
    title: `Time lost, by cause: ${subjectOf(predictions)}`,
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
      ...(severalFiles ? [legendName(files[index] ?? '')] : []),
      ...(severalLinks ? [legendName(links[index] ?? '')] : []),
    ].join(' '),
  );
}

function subjectOf(predictions: readonly Prediction[]): string {
  const [first] = predictions;
  const files = new Set(predictions.map(({ trace }) => trace.file));
  if (first === undefined || files.size > 1) {
    const made = predictions.some(({ trace }) => trace.format === 'synthetic');
    return `${files.size} traces${made ? ' (SYNTHETIC)' : ''}`;
  }
  return titleWords(first.trace);
}
