/** The counts of a trace that tests compare: those that `dxpu predict` shows. */
import { traceFigures } from '#perfmodel/trace-figures';
import type { Timeline } from '#trace/timeline';

export interface Copies {
  readonly count: number;
  readonly bytes: number;
}

export interface TraceCounts {
  readonly kernels: number;
  readonly kernelsAtMost10us: number;
  readonly memsets: number;
  readonly graphLaunches: number;
  readonly submissions: number;
  readonly hostWaits: number;
  readonly queries: number;
  readonly htod: Copies;
  readonly dtoh: Copies;
  readonly dtod: Copies;
}

export function countsOf(timeline: Timeline): TraceCounts {
  const { kernels, kernelsAtMost10us, memsets, graphLaunches, submissions, ...others } =
    traceFigures(timeline, 'trace');
  const { hostWaits, queries, copies } = others;
  const { htod, dtoh, dtod } = copies;
  const counts = { kernels, kernelsAtMost10us, memsets, graphLaunches, submissions };
  return { ...counts, hostWaits, queries, htod, dtoh, dtod };
}
