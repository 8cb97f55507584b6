/** Runs in time over seeds: means of the same spans, and how far seeds are apart. */
import type { SimulateRun } from './result.ts';
import { type Spread, spreadOf } from './statistics.ts';

type Timed = NonNullable<SimulateRun['timed']>;
type Figure = 'allocatedPct' | 'queued';

export interface SpanPoint extends Pick<Spread, 'mean' | 'stdev'> {
  readonly atS: number;
}

export const S_PER_H = 3600;

/** A point of a line, of a mean that is never below 0, with the band of its spread. */
export function banded(x: number, { mean, stdev }: Pick<Spread, 'mean' | 'stdev'>) {
  return { x, y: mean, low: Math.max(0, mean - stdev), high: mean + stdev };
}

/**
 * Spans of a long run are longer: the longest are taken for all. A run that has ended has nothing
 * allocated and nothing that waits.
 */
export function overTime(runs: readonly Timed[], figure: Figure): SpanPoint[] {
  const spanS = Math.max(0, ...runs.map((run) => spanOf(run)));
  const endS = Math.max(0, ...runs.map(({ makespanS }) => makespanS));
  const starts = runs.find((run) => spanOf(run) === spanS)?.overTime.map(({ atS }) => atS) ?? [];
  const longest = Math.max(0, ...runs.map((run) => run.overTime.at(-1)?.atS ?? 0));
  // Of runs with equal spans the last to end has most of them.
  for (let at = (starts.at(-1) ?? 0) + spanS; spanS > 0 && at <= longest; at += spanS) {
    starts.push(at);
  }
  return starts.map((fromS, i) => {
    const toS = starts[i + 1] ?? Math.max(endS, fromS);
    const { mean, stdev } = spreadOf(runs.map((run) => meanBetween(run, figure, fromS, toS)));
    return { atS: fromS, mean, stdev };
  });
}

function spanOf({ overTime: points }: Timed): number {
  return (points[1]?.atS ?? 0) - (points[0]?.atS ?? 0);
}

function meanBetween(run: Timed, figure: Figure, fromS: number, toS: number): number {
  const points = run.overTime;
  let sum = 0;
  for (const [i, point] of points.entries()) {
    const endS = points[i + 1]?.atS ?? Math.max(run.makespanS, point.atS);
    const overlapS = Math.min(toS, endS) - Math.max(fromS, point.atS);
    if (overlapS > 0) sum += point[figure] * overlapS;
  }
  return toS > fromS ? sum / (toS - fromS) : 0;
}
