/** The answer as pictures: allocated against arrived, jobs over time, and the fewest GPUs. */
import { barPlot, linePlot, type LineSeries } from '#report/plot';
import { stacked } from '#report/stack';
import { costPicture, waitPicture } from './answer-money.ts';
import {
  allocatedAt,
  groupsOf,
  isSynthetic,
  labelOf,
  type RunGroup,
  sharedPcts,
  variedOf,
} from './answer-words.ts';
import { banded, overTime, S_PER_H } from './over-time.ts';
import type { SimulateResult } from './result.ts';

const BAND = 'band: one standard deviation over seeds';

/** All pictures as one SVG, of at most `MAX_PLOTTED` designs, policies and settings. */
export function answerPlot(result: SimulateResult): string {
  return stacked(titled('Simulation', result), pictures(result));
}

/** At least one for an answer that has anything. */
export function pictures(result: SimulateResult): string[] {
  const groups = groupsOf(result.runs);
  const timed = groups.some(({ runs }) => runs[0]?.timed !== undefined);
  const bars = result.fewest ?? [];
  return [
    ...(groups.length === 0 ? [] : timed ? timePictures(groups, result) : [curves(groups, result)]),
    ...(bars.length === 0 ? [] : [fewestPicture(bars, result)]),
    ...costPicture(bars, titled('What the fewest hardware costs', result)),
  ];
}

function curves(groups: readonly RunGroup[], result: SimulateResult): string {
  const varied = variedOf(groups);
  const series = groups.map((group): LineSeries => {
    const name = labelOf(group, varied);
    return {
      name,
      dashed: group.design === 'server',
      points: sharedPcts([group]).flatMap((pct) => {
        const at = allocatedAt(group, pct);
        if (at === undefined) return [];
        const { mean, stdev } = at;
        return [{ x: pct, y: mean, low: mean - stdev, high: mean + stdev }];
      }),
    };
  });
  return linePlot({
    title: titled('GPUs allocated against GPUs asked for', result),
    description: series
      .map(({ name, points }) => `${name}: ${(points.at(-1)?.y ?? 0).toFixed(1)} % at the end.`)
      .join(' '),
    x: { label: 'asked for, % of all GPUs' },
    y: { label: `allocated, % of all GPUs; ${BAND}` },
    series,
  });
}

function timePictures(groups: readonly RunGroup[], result: SimulateResult): string[] {
  const varied = variedOf(groups);
  const of = (what: 'allocatedPct' | 'queued'): LineSeries[] =>
    groups.map((group) => ({
      name: labelOf(group, varied),
      dashed: group.design === 'server',
      points: overTime(
        group.runs.flatMap(({ timed }) => timed ?? []),
        what,
      ).map((span) => banded(span.atS / S_PER_H, span)),
    }));
  const x = { label: 'hours since the first job' };
  return [
    linePlot({
      title: titled('GPUs allocated over time', result),
      description: 'The share of all GPUs that is allocated, over time.',
      x,
      y: { label: `allocated, % of all GPUs; ${BAND}` },
      series: of('allocatedPct'),
    }),
    linePlot({
      title: titled('Jobs that wait over time', result),
      description: 'How many jobs wait, over time.',
      x,
      y: { label: `jobs that wait; ${BAND}` },
      series: of('queued'),
    }),
    ...waitPicture(groups, titled('Mean wait against overhead', result)),
  ];
}

function fewestPicture(
  rows: NonNullable<SimulateResult['fewest']>,
  result: SimulateResult,
): string {
  const varied = variedOf(rows);
  const found = rows.flatMap((row) => (row.gpus === null ? [] : [{ row, gpus: row.gpus }]));
  return barPlot({
    title: titled('Fewest GPUs for the same demand', result),
    description: found.map(({ row, gpus }) => `${labelOf(row, varied)}: ${gpus}.`).join(' '),
    x: { label: 'GPUs' },
    bars: found.map(({ row, gpus }) => ({
      label: labelOf(row, varied),
      parts: [{ name: 'GPUs', value: gpus }],
    })),
  });
}

function titled(text: string, result: SimulateResult): string {
  return isSynthetic(result) ? `${text} (SYNTHETIC)` : text;
}
