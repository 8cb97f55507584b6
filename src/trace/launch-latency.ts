/** How long after the start of its launch work begins when nothing is in its way. */
import { CALL_KIND } from './call-kind.ts';
import type { Lanes } from './lanes.ts';
import { hasCall } from './lanes.ts';
import type { Timeline } from './timeline.ts';

/** A launch costs 5 to 10 µs of CPU; what takes longer than this is something else. */
const MOST_NS = 20_000;
const MAX_SAMPLES = 1 << 15;

/**
 * By `CallKind`: the median, over work whose stream was idle when its launch began, of the time from
 * the start of the call to the start of the work; at most 20 µs; 0 where no launch met an idle stream.
 */
export function launchLatencies(timeline: Timeline, lanes: Lanes): Float64Array {
  const { calls, work } = timeline;
  const kinds = Object.keys(CALL_KIND).length;
  const samples: number[][] = Array.from({ length: kinds }, () => []);
  const stride = Math.max(1, Math.ceil(work.count / MAX_SAMPLES));
  for (let stream = 0; stream < lanes.workFrom.length; stream += 1) {
    const from = lanes.workFrom[stream] ?? 0;
    const to = lanes.workTo[stream] ?? 0;
    for (let row = from; row < to; row += stride) {
      const call = work.call[row] ?? -1;
      if (!hasCall(timeline, lanes, call)) continue;
      const launchedNs = calls.startNs[call] ?? 0;
      const offsetNs = (work.startNs[row] ?? 0) - launchedNs;
      const idleSinceNs =
        row === from ? 0 : (work.startNs[row - 1] ?? 0) + (work.durationNs[row - 1] ?? 0);
      if (offsetNs >= 0 && idleSinceNs <= launchedNs)
        samples[calls.kind[call] ?? 0]?.push(offsetNs);
    }
  }
  return Float64Array.from(samples, (offsets) => Math.min(MOST_NS, median(offsets)));
}

function median(values: number[]): number {
  values.sort((a, b) => a - b);
  return values[(values.length - 1) >> 1] ?? 0;
}
