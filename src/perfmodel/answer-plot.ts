/** The answer as pictures: overhead against round trip, and what the loss is made of. */
import { assert } from '#base/assert';
import * as figures from '#report/figures';
import { barPlot, linePlot, type LineSeries } from '#report/plot';
import { stacked } from '#report/stack';
import { plainText, withoutMiddle } from '#report/text-width';
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
  const names = namesOf(predictions);
  const series = predictions.flatMap((one, index) =>
    seriesOf(one, names[index] ?? '', index, nsShown),
  );
  const budgetPct = predictions[0]?.verdict.budgetPct ?? 0;
  const most = Math.max(budgetPct, ...series.flatMap(({ points }) => points.map(({ y }) => y)));
  const links = [...new Map(predictions.map(({ link }) => [link.rttNs, link])).values()];
  return linePlot({
    title: titled('Overhead by round trip', predictions),
    description: predictions
      .map((one, index) => {
        const name = names[index] === '' ? one.link.name : names[index];
        return `${name}: ${percentOr(mainOverheadPct(one))} at ${figures.duration(one.link.rttNs)}.`;
      })
      .join(' '),
    x: { label: 'whole round trip, µs', domain: [0, nsShown / 1e3] },
    y: { label: 'overhead, %', domain: [0, most * 1.05 || 1] },
    series,
    levels: [{ y: budgetPct, label: `budget ${figures.percent(budgetPct)}` }],
    marks: links.map((link) => ({ x: link.rttNs / 1e3, label: link.name })),
  });
}

/** Up to what round trip the picture goes: to the end of the curves, or past every link. */
function shownRttNs(predictions: readonly Prediction[]): number {
  const ends = predictions.map(({ link, curve }) => curve?.at(-1)?.rttNs ?? 1.6 * link.rttNs);
  return Math.max(...ends);
}

type Point = LineSeries['points'][number];

/** The replay as a line, the additive estimate dashed in its colour. */
function seriesOf(
  prediction: Prediction,
  name: string,
  colour: number,
  nsShown: number,
): LineSeries[] {
  const of = (estimate: string): string => (name === '' ? estimate : `${estimate}, ${name}`);
  const replay = clipped(pointsOf(prediction, 'replay'), nsShown / 1e3);
  const additive = clipped(pointsOf(prediction, 'additive'), nsShown / 1e3);
  return [
    ...(prediction.replay === null ? [] : [{ name: of('replay'), points: replay, colour }]),
    { name: of('additive'), points: additive, colour, dashed: true },
  ];
}

/** All that is known of a curve: what was asked for, the link itself, and its budgets. µs and %. */
function pointsOf(prediction: Prediction, estimate: 'replay' | 'additive'): Point[] {
  const { link, budgets, curve } = prediction;
  const known = new Map<number, number>();
  for (const budget of budgets) {
    const ns = budget[`${estimate}MaxRttNs`];
    if (ns !== null) known.set(ns, budget.overheadPct);
  }
  for (const point of curve ?? []) {
    const pct = point[`${estimate}OverheadPct`];
    if (pct !== null) known.set(point.rttNs, pct);
  }
  const own = prediction[estimate]?.overheadPct;
  if (own !== null && own !== undefined) known.set(link.rttNs, own);
  return [...known].map(([ns, pct]) => ({ x: ns / 1e3, y: pct })).toSorted((a, b) => a.x - b.x);
}

/** The part of a line up to `x`, ending there where it goes on. */
function clipped(points: readonly Point[], x: number): Point[] {
  const kept = points.filter((point) => point.x <= x);
  const last = kept.at(-1);
  const next = points[kept.length];
  if (last === undefined || next === undefined) return kept;
  const y = last.y + ((next.y - last.y) * (x - last.x)) / (next.x - last.x);
  return [...kept, { x, y }];
}

/** A bar for each estimate, made of its causes. */
export function causesPicture(predictions: readonly Prediction[]): string {
  const names = namesOf(predictions);
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

/** What tells the predictions apart; empty for one alone. */
function namesOf(predictions: readonly Prediction[]): string[] {
  const files = shortNames(predictions.map(({ trace }) => trace.file));
  const severalFiles = new Set(files).size > 1;
  const severalLinks = new Set(predictions.map(({ link }) => link.name)).size > 1;
  return predictions.map(({ link }, index) =>
    [
      ...(severalFiles ? [shortened(files[index] ?? '')] : []),
      ...(severalLinks ? [shortened(link.name)] : []),
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
