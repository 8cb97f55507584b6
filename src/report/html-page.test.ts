import { parseHTML } from 'linkedom';
import { describe, expect, it } from 'vitest';
import { callout, figure, htmlPage, list, paragraph, table } from './html-page.ts';
import { barPlot, linePlot } from './plot.ts';
import { pngOf } from './png.ts';
import { stacked } from './stack.ts';

const LINES = linePlot({
  title: 'Overhead <of> "this"',
  description: 'It rises.',
  x: { label: 'round trip, µs', domain: [0, 10] },
  y: { label: 'overhead, %' },
  series: [
    {
      name: 'replay',
      points: [
        { x: 1, y: 0 },
        { x: 9, y: 5 },
      ],
    },
    {
      name: 'additive',
      dashed: true,
      colour: 0,
      points: [
        { x: 1, y: 0 },
        { x: 9, y: 20 },
      ],
    },
  ],
  levels: [{ y: 10, label: 'budget 10 %' }],
  marks: [{ x: 6.8, label: 'here' }],
});
const BARS = barPlot({
  title: 'Causes',
  description: 'Two.',
  x: { label: 'ms' },
  bars: [
    {
      label: 'replay',
      parts: [
        { name: 'fetch', value: 3, colour: 0 },
        { name: 'waits', value: 1, colour: 4 },
      ],
    },
  ],
});

const svgOf = (text: string) => parseHTML(`<body>${text}</body>`).document.querySelector('svg');

describe('pictures', () => {
  it('have a title, axes, a legend and a line for each series', () => {
    const svg = svgOf(LINES);
    expect(svg?.querySelector('title')?.textContent).toBe('Overhead <of> "this"');
    expect(svg?.querySelector('desc')?.textContent).toBe('It rises.');
    for (const text of [
      'round trip, µs',
      'overhead, %',
      'replay',
      'additive',
      'budget 10 %',
      'here',
    ]) {
      expect(svg?.textContent).toContain(text);
    }
    const strokes = [...LINES.matchAll(/stroke-dasharray="7 4"/g)];
    expect(strokes).toHaveLength(1);
    expect(LINES).not.toMatch(/NaN|undefined|Infinity/);
  });

  it('keep the colour a name is given', () => {
    expect(BARS).toContain('fill="#2f7ed8"');
    expect(BARS).toContain('fill="#c2a000"');
  });

  it('are the same every time, and follow the setting of the reader', () => {
    const again = barPlot({ title: 'x', description: '', x: { label: 'ms' }, bars: [] });
    expect(barPlot({ title: 'x', description: '', x: { label: 'ms' }, bars: [] })).toBe(again);
    expect(LINES).toContain('prefers-color-scheme:dark');
  });

  it('refuse a number that is none', () => {
    const bars = [{ label: 'a', parts: [{ name: 'b', value: Number.NaN }] }];
    expect(() => barPlot({ title: 't', description: '', x: { label: 'ms' }, bars })).toThrow(
      /t: a number to plot is not finite/,
    );
  });

  it('stand below each other in one', () => {
    const both = stacked('Both', [LINES, BARS]);
    const heights = [LINES, BARS].map((one) => Number(/ height="(\d+)"/.exec(one)?.[1]));
    const [first = 0, second = 0] = heights;
    expect(both).toContain(`viewBox="0 0 720 ${first + second}"`);
    expect(both).toContain(`<svg y="${first}" `);
  });

  it('become PNG of twice their size', () => {
    const png = Buffer.from(pngOf(BARS));
    expect(png.subarray(1, 4).toString()).toBe('PNG');
    // Width in the header chunk, 16 bytes in.
    expect(png.readUInt32BE(16)).toBe(2 * 720);
  });
});

describe('a page', () => {
  const page = htmlPage({
    title: 'What <script>alert(1)</script> loses',
    subtitle: 'a & b',
    sections: [
      {
        heading: 'All',
        body: [
          callout('fits', 'good'),
          paragraph('text <b>'),
          table(['name', 'value'], [['a"b', '3.2 %']], ['word', 'number']),
          list(['one', 'two']),
          figure(BARS, 'caption'),
        ],
      },
    ],
    footer: 'made here',
  });

  it('is whole: no script, nothing loaded from anywhere', () => {
    const { document } = parseHTML(page);
    expect(document.querySelectorAll('script, link, iframe, img, object')).toHaveLength(0);
    expect(page).not.toMatch(/\b(?:src|href)=|@import|url\(/);
    expect(document.querySelectorAll('section figure')).toHaveLength(1);
    expect(page).toContain('prefers-color-scheme:dark');
  });

  it('shows text as text', () => {
    const { document } = parseHTML(page);
    expect(document.querySelector('h1')?.textContent).toBe('What <script>alert(1)</script> loses');
    expect(document.querySelector('td.number')?.textContent).toBe('3.2 %');
    expect(page).toContain('text &lt;b&gt;');
  });
});
