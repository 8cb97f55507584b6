/** Plots of microbenchmarks. */
import { linePlot, type LineSeries } from '#report/plot';
import type { Microbench, MicrobenchRow } from './microbench.ts';

/** SVG text. */
export function microbenchPlot(kind: Microbench, rows: readonly MicrobenchRow[]): string {
  const rtt = { label: 'round trip, µs' };
  if (kind === 'bandwidth') {
    return linePlot({
      title: 'Copies of one size after another',
      description:
        'Rates of blocking copies by their size, a line for each round trip and direction.',
      x: { label: 'size of the copy, bytes', log: true },
      y: { label: 'GB/s' },
      series: bandwidthSeries(rows),
    });
  }
  const isLatency = kind === 'latency';
  const points = rows.map(({ rttNs, launchAndWaitNs = 0, launchesPerS = 0 }) => ({
    x: rttNs / 1e3,
    y: isLatency ? launchAndWaitNs / 1e3 : launchesPerS / 1e6,
  }));
  return linePlot({
    title: isLatency ? 'Launch and wait' : 'Launches from a deep queue',
    description: isLatency
      ? 'Time from launching an empty kernel to having waited for it, by round trip.'
      : 'Empty kernels a second from a queue that is never empty, by round trip.',
    x: rtt,
    y: { label: isLatency ? 'launch and wait, µs' : 'million launches a second' },
    series: [{ name: isLatency ? 'empty kernel' : 'launches', points }],
  });
}

function bandwidthSeries(rows: readonly MicrobenchRow[]): LineSeries[] {
  const rtts = [...new Set(rows.map(({ rttNs }) => rttNs))];
  return rtts.flatMap((rttNs, colour) => {
    const own = rows.filter((row) => row.rttNs === rttNs);
    const name = `${rttNs / 1e3} µs`;
    const points = (field: 'htodGbytesPerS' | 'dtohGbytesPerS'): LineSeries['points'] =>
      own.map((row) => ({ x: row.bytes ?? 1, y: row[field] ?? 0 }));
    return [
      { name: `HtoD at ${name}`, points: points('htodGbytesPerS'), colour },
      { name: `DtoH at ${name}`, points: points('dtohGbytesPerS'), colour, dashed: true },
    ];
  });
}
