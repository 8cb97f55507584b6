/** Answers as pictures: SVG text. */
import { appendTo } from '#base/append-to';
import { assert } from '#base/assert';
import * as figures from '#report/figures';
import { overheadPlot, overheadSentence } from '#report/overhead-plot';
import { MAX_PLOTTED } from '#report/palette';
import { type LinePlot, linePlot, type LineSeries } from '#report/plot';
import { legendName, titleWords } from '#report/trace-words';
import type { BandwidthRow, MicrobenchAnswer, TraceAnswer } from './answer.ts';
import { MICROBENCH_TITLES, shownTrace } from './answer-words.ts';

/** Overhead by whole round trip: the model's two estimates as lines, what was emulated as dots. */
export function tracePlot(answers: readonly TraceAnswer[]): string {
  const [first] = answers;
  assert(first !== undefined && answers.length <= MAX_PLOTTED, 'no picture of so many answers');
  const groups = curveGroups(answers);
  const series = groups.flatMap((group, colour) => seriesOf(group, colour, groups.length > 1));
  const rttsNs = answers.flatMap(({ link, curve = [] }) =>
    [link, ...curve].map(({ rttNs }) => rttNs),
  );
  return overheadPlot({
    subject: titleWords(shownTrace(first)),
    description: answers
      .map(({ trace, link, estimates }) =>
        overheadSentence(trace, link, estimates.emulatedOverheadPct),
      )
      .join(' '),
    series,
    budgetPct: first.budgetPct,
    links: answers.map(({ link }) => link),
    endNs: Math.max(...rttsNs),
  });
}

/** Answers over links that differ by what the fabric adds alone lie on one curve. */
function curveGroups(answers: readonly TraceAnswer[]): TraceAnswer[][] {
  const groups = new Map<string, TraceAnswer[]>();
  for (const answer of answers) {
    const key = JSON.stringify({ ...answer.link, name: '', addedRttNs: 0, rttNs: 0, recalled: [] });
    appendTo(groups, key, answer);
  }
  return [...groups.values()];
}

function seriesOf(group: readonly TraceAnswer[], colour: number, isNamed: boolean): LineSeries[] {
  const names = group.map(({ link }) => legendName(link.name)).join(' / ');
  const named = (estimate: string): string => (isNamed ? `${estimate}, ${names}` : estimate);
  const byRtt = new Map<number, { additive: number | null; replay: number | null }>();
  for (const { link, curve = [], estimates } of group) {
    const { additiveOverheadPct, replayOverheadPct } = estimates;
    for (const point of [...curve, { rttNs: link.rttNs, additiveOverheadPct, replayOverheadPct }]) {
      byRtt.set(point.rttNs, {
        additive: point.additiveOverheadPct,
        replay: point.replayOverheadPct,
      });
    }
  }
  const lineOf = (estimate: 'additive' | 'replay'): LineSeries['points'] =>
    [...byRtt]
      .toSorted(([a], [b]) => a - b)
      .flatMap(([rttNs, values]) => {
        const y = values[estimate];
        return y === null ? [] : [{ x: rttNs / 1e3, y }];
      });
  const lines = [
    { name: named('replay'), points: lineOf('replay'), colour },
    { name: named('additive'), points: lineOf('additive'), colour, dashed: true },
  ];
  const dots = group.map(({ link, estimates }) => ({
    x: link.rttNs / 1e3,
    y: estimates.emulatedOverheadPct,
  }));
  return [
    ...lines.filter(({ points }) => points.length > 0),
    { name: named('emulated'), points: dots, colour, dots: 'alone' },
  ];
}

/** Rates by size, a colour for each round trip; launches and latencies by round trip. */
export function microbenchPlot(answer: MicrobenchAnswer): string {
  const title = MICROBENCH_TITLES[answer.kind];
  switch (answer.kind) {
    case 'bandwidth':
      return linePlot({
        title,
        description: 'Rates by size of the copy, a line for each round trip and direction.',
        x: { label: 'size of the copy, bytes', log: true },
        y: { label: 'GB/s' },
        series: bandwidthSeries(answer.rows),
      });
    case 'latency':
      return linePlot({
        title,
        description: 'Time from the launch to the end of the wait, by round trip.',
        ...byRtt(
          'launch and wait, µs',
          answer.rows.map((row) => ({ x: row.rttNs, y: row.launchAndWaitNs / 1e3 })),
        ),
      });
    case 'launch-rate':
      return linePlot({
        title,
        description: 'Launches a second by round trip.',
        ...byRtt(
          'million launches a second',
          answer.rows.map((row) => ({ x: row.rttNs, y: row.launchesPerS / 1e6 })),
        ),
      });
  }
}

/** One line with its points, both axes from 0 on; `x` in ns. */
function byRtt(
  label: string,
  rows: readonly { readonly x: number; readonly y: number }[],
): Pick<LinePlot, 'x' | 'y' | 'series'> {
  const points = rows.map(({ x, y }) => ({ x: x / 1e3, y })).toSorted((a, b) => a.x - b.x);
  const mostX = Math.max(...points.map(({ x }) => x));
  const mostY = Math.max(...points.map(({ y }) => y));
  return {
    x: { label: 'whole round trip, µs', domain: [0, 1.03 * mostX] },
    y: { label, domain: [0, 1.05 * mostY] },
    series: [{ name: 'emulated', points, dots: 'too' }],
  };
}

function bandwidthSeries(rows: readonly BandwidthRow[]): LineSeries[] {
  const rtts = [...new Set(rows.map(({ rttNs }) => rttNs))].toSorted((a, b) => a - b);
  return rtts.flatMap((rttNs, colour) => {
    const own = rows.filter((row) => row.rttNs === rttNs).toSorted((a, b) => a.bytes - b.bytes);
    const points = (field: 'htodGbytesPerS' | 'dtohGbytesPerS'): LineSeries['points'] =>
      own.map((row) => ({ x: row.bytes, y: row[field] }));
    const at = figures.duration(rttNs);
    return [
      { name: `HtoD at ${at}`, points: points('htodGbytesPerS'), colour },
      { name: `DtoH at ${at}`, points: points('dtohGbytesPerS'), colour, dashed: true },
    ];
  });
}
