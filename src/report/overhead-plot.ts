/** Overhead by whole round trip, the budget and the links that were asked for. */
import * as figures from './figures.ts';
import type { LinkFigures } from './link-figures.ts';
import { linePlot, type LineSeries } from './plot.ts';
import { legendName } from './trace-words.ts';

export interface OverheadPlot {
  /** What it is of, for the title. */
  readonly subject: string;
  readonly description: string;
  /** µs and percent. */
  readonly series: readonly LineSeries[];
  readonly budgetPct: number;
  readonly links: readonly LinkFigures[];
  /** The longest round trip shown, ns. */
  readonly endNs: number;
}

export function overheadPlot(plot: OverheadPlot): string {
  const { subject, description, series, budgetPct, endNs } = plot;
  const shares = series.flatMap(({ points }) => points.map(({ y }) => y));
  const links = [...new Map(plot.links.map((link) => [link.rttNs, link])).values()];
  return linePlot({
    title: `Overhead by round trip: ${subject}`,
    description,
    x: { label: 'whole round trip, µs', domain: [0, endNs / 1e3] },
    y: {
      label: 'overhead, %',
      domain: [Math.min(0, ...shares), Math.max(budgetPct, ...shares) * 1.05 || 1],
    },
    series,
    levels: [{ y: budgetPct, label: `budget ${figures.percent(budgetPct)}` }],
    marks: links.map(({ rttNs, name }) => ({ x: rttNs / 1e3, label: legendName(name) })),
  });
}

/** What the picture says to those who do not see it; null: no estimate. */
export function overheadSentence(file: string, link: LinkFigures, pct: number | null): string {
  return `${file} over ${link.name}: ${figures.percentOr(pct)} at ${figures.duration(link.rttNs)}.`;
}
