/**
 * Plots as SVG text: lines over a number, and stacked bars by category. A plot is a picture of its
 * own (with `xmlns`, a title and a description) that follows the reader's light or dark setting, and
 * can be put into a page as it is. The same input gives the same bytes.
 */
import * as Plot from '@observablehq/plot';
import { parseHTML } from 'linkedom';
import { assert } from '#base/assert';
import { escapeMarkup } from './markup.ts';
import { DARK, FONT_FAMILY, LIGHT, SERIES_COLOURS } from './palette.ts';

export interface Axis {
  readonly label: string;
  /** Logarithmic: all values are above 0. */
  readonly log?: boolean;
  /** The range shown; by default what the data covers, for y from 0. */
  readonly domain?: readonly [number, number];
}

export interface LineSeries {
  readonly name: string;
  readonly points: readonly {
    readonly x: number;
    readonly y: number;
    /** A band around the line. */
    readonly low?: number;
    readonly high?: number;
  }[];
  /** Index into the colours; by default each series has its own. */
  readonly colour?: number;
  readonly dashed?: boolean;
  /** A dot at each point: in place of the line, or on it. */
  readonly dots?: 'alone' | 'too';
}

export interface LinePlot {
  readonly title: string;
  /** One sentence of what is to be seen, for those who do not see it. */
  readonly description: string;
  readonly x: Axis;
  readonly y: Axis;
  readonly series: readonly LineSeries[];
  /** Level lines, such as a budget. */
  readonly levels?: readonly { readonly y: number; readonly label: string }[];
  /** Upright lines, such as the link's own round trip. */
  readonly marks?: readonly { readonly x: number; readonly label: string }[];
}

export interface BarPlot {
  readonly title: string;
  readonly description: string;
  readonly x: Axis;
  /** A bar each, from top to bottom; its parts are stacked in this order. */
  readonly bars: readonly {
    readonly label: string;
    readonly parts: readonly {
      readonly name: string;
      readonly value: number;
      /** Index into the colours, the same wherever the name is; by default each name has its own. */
      readonly colour?: number;
    }[];
  }[];
}

const WIDTH = 720;
const HEIGHT = 400;
const MARK_ROW = 15;
const MARK_ROWS = 4;

interface LegendEntry {
  readonly name: string;
  readonly colour: string;
  readonly swatch: 'area' | 'dashes' | 'dot';
}

/** Names of series are unique; every number is finite. */
export function linePlot(plot: LinePlot): string {
  const legend = plot.series.map(({ name, colour, dashed, dots }, index): LegendEntry => {
    const swatch = dots === 'alone' ? 'dot' : dashed === true ? 'dashes' : 'area';
    return { name, colour: colourOf(colour ?? index), swatch };
  });
  const rows = plot.series.flatMap(({ name, points }) =>
    points.map((point) => ({ name, ...point })),
  );
  const dotted = new Set(plot.series.filter(({ dots }) => dots !== undefined).map(nameOf));
  const swatchOf = new Map(legend.map(({ name, swatch }) => [name, swatch]));
  const drawnAs = (swatch: LegendEntry['swatch']): typeof rows =>
    rows.filter(({ name }) => swatchOf.get(name) === swatch);
  const bands = rows.filter((row) => row.low !== undefined && row.high !== undefined);
  const levels = plot.levels ?? [];
  // Labels of neighbours would lie over each other: they take turns.
  const marks = (plot.marks ?? [])
    .toSorted((a, b) => a.x - b.x)
    .map((mark, index) => ({ ...mark, dy: MARK_ROW * (index % MARK_ROWS) }));
  checkFinite(plot.title, [
    ...rows.flatMap(({ x, y, low, high }) => [x, y, low ?? 0, high ?? 0]),
    ...levels.map((level) => level.y),
    ...marks.map((mark) => mark.x),
  ]);
  const line = { x: 'x', y: 'y', stroke: 'name', strokeWidth: 2.2 } as const;
  return drawn(plot, legend, {
    width: WIDTH,
    height: HEIGHT,
    marginLeft: 56,
    marginRight: 24,
    marginBottom: 42,
    x: { ...scale(plot.x), grid: true },
    y: { ...scale(plot.y), grid: true, ...(plot.y.log === true ? {} : { zero: true }) },
    color: colours(legend),
    marks: [
      Plot.areaY(bands, { x: 'x', y1: 'low', y2: 'high', fill: 'name', fillOpacity: 0.15 }),
      Plot.ruleY(levels, { y: 'y', stroke: 'currentColor', strokeDasharray: '5 4' }),
      Plot.text(levels, {
        y: 'y',
        text: 'label',
        frameAnchor: 'left',
        textAnchor: 'start',
        dy: -7,
        dx: 4,
      }),
      Plot.ruleX(marks, { x: 'x', stroke: 'currentColor', strokeDasharray: '1 4' }),
      ...marks.map((mark) =>
        Plot.text([mark], {
          x: 'x',
          text: 'label',
          frameAnchor: 'top',
          textAnchor: 'start',
          dx: 4,
          dy: mark.dy,
        }),
      ),
      Plot.lineY(drawnAs('dashes'), { ...line, strokeDasharray: '7 4' }),
      Plot.lineY(drawnAs('area'), line),
      ...(dotted.size === 0
        ? []
        : [
            Plot.dot(
              rows.filter(({ name }) => dotted.has(name)),
              { x: 'x', y: 'y', r: 4.5, fill: 'name', stroke: 'currentColor' },
            ),
          ]),
    ],
  });
}

export function barPlot(plot: BarPlot): string {
  const named = new Map(plot.bars.flatMap(({ parts }) => parts.map((part) => [part.name, part])));
  const legend = [...named.values()].map(({ name, colour }, index) => ({
    name,
    colour: colourOf(colour ?? index),
    swatch: 'area' as const,
  }));
  const rows = plot.bars.flatMap(({ label, parts }) => parts.map((part) => ({ label, ...part })));
  checkFinite(
    plot.title,
    rows.map((row) => row.value),
  );
  const labels = plot.bars.map((bar) => bar.label);
  const longest = Math.max(0, ...labels.map((label) => label.length));
  return drawn(plot, legend, {
    width: WIDTH,
    height: 70 + 34 * Math.max(1, labels.length),
    marginLeft: Math.min(280, 16 + 7 * longest),
    marginRight: 24,
    marginBottom: 42,
    x: { ...scale(plot.x), grid: true },
    y: { domain: labels, label: null },
    color: colours(legend),
    marks: [
      Plot.barX(rows, { x: 'value', y: 'label', fill: 'name', insetTop: 3, insetBottom: 3 }),
      Plot.ruleX([0], { stroke: 'currentColor' }),
    ],
  });
}

function nameOf({ name }: LineSeries): string {
  return name;
}

function colours(legend: readonly LegendEntry[]): Plot.ScaleOptions {
  return { domain: legend.map(({ name }) => name), range: legend.map(({ colour }) => colour) };
}

function scale(axis: Axis): Plot.ScaleOptions {
  return {
    label: axis.label,
    type: axis.log === true ? 'log' : 'linear',
    labelArrow: 'none',
    // Else what is below 1 has its unit's prefix: 20m.
    ...(axis.log === true && (axis.domain?.[0] ?? 1) < 1 ? { tickFormat: '~g' } : {}),
    ...(axis.domain === undefined ? {} : { domain: [...axis.domain] }),
  };
}

const LEGEND_ROW = 20;
const TITLE_HEIGHT = 30;

/** The plot with its title and legend, as one picture. */
function drawn(
  { title, description }: { readonly title: string; readonly description: string },
  entries: readonly LegendEntry[],
  options: Plot.PlotOptions,
): string {
  const { document } = parseHTML('<!doctype html><html><body></body></html>');
  const inner = Plot.plot({
    ...options,
    document: document as never,
    className: 'dxpu-plot',
    style: { background: 'none', fontFamily: FONT_FAMILY, fontSize: '12px' },
  });
  const width = options.width ?? WIDTH;
  const legend = legendOf(entries, width);
  const top = TITLE_HEIGHT + legend.height;
  const height = top + (options.height ?? HEIGHT);
  inner.setAttribute('y', String(top));
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" class="dxpu-figure">`,
    `<title>${escapeMarkup(title)}</title><desc>${escapeMarkup(description)}</desc>`,
    `<style>${STYLE}</style>`,
    `<rect class="paper" width="${width}" height="${height}"/>`,
    `<g class="ink"><text x="16" y="20" font-size="14" font-weight="bold" font-family="${FONT_FAMILY}">${escapeMarkup(title)}</text>`,
    legend.markup,
    inner.outerHTML.replace(/<style>[\s\S]*?<\/style>/, ''),
    '</g></svg>\n',
  ].join('');
}

const STYLE =
  `.dxpu-figure .paper{fill:${LIGHT.paper}}.dxpu-figure .ink{color:${LIGHT.ink};fill:${LIGHT.ink}}` +
  `@media (prefers-color-scheme:dark){.dxpu-figure .paper{fill:${DARK.paper}}.dxpu-figure .ink{color:${DARK.ink};fill:${DARK.ink}}}`;

function legendOf(
  entries: readonly LegendEntry[],
  width: number,
): { readonly markup: string; readonly height: number } {
  if (entries.length < 2) return { markup: '', height: 0 };
  const parts: string[] = [];
  let x = 16;
  let row = 0;
  for (const { name, colour, swatch } of entries) {
    const wide = 26 + 7 * name.length;
    if (x > 16 && x + wide > width) {
      x = 16;
      row += 1;
    }
    const y = TITLE_HEIGHT + row * LEGEND_ROW;
    parts.push(
      SWATCHES[swatch](x, y, colour) +
        `<text x="${x + 17}" y="${y + 10.5}" font-size="12" font-family="${FONT_FAMILY}">${escapeMarkup(name)}</text>`,
    );
    x += wide;
  }
  return { markup: parts.join(''), height: (row + 1) * LEGEND_ROW + 4 };
}

const SWATCHES: Readonly<
  Record<LegendEntry['swatch'], (x: number, y: number, colour: string) => string>
> = {
  area: (x, y, colour) => `<rect x="${x}" y="${y}" width="12" height="12" fill="${colour}"/>`,
  dashes: (x, y, colour) =>
    `<path d="M${x} ${y + 6}h4m3 0h5" stroke="${colour}" stroke-width="3" fill="none"/>`,
  dot: (x, y, colour) =>
    `<circle cx="${x + 6}" cy="${y + 6}" r="5" fill="${colour}" stroke="currentColor"/>`,
};

function colourOf(index: number): string {
  return SERIES_COLOURS[index % SERIES_COLOURS.length] ?? 'currentColor';
}

function checkFinite(title: string, values: readonly number[]): void {
  assert(values.every(Number.isFinite), `${title}: a number to plot is not finite`);
}
