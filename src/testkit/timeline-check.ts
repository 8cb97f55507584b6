/** What holds of every timeline, whatever the file was like. */
import type { Timeline } from '#trace/timeline';

/** A profile is at most a day long on either side of its middle. */
const MAX_SPAN_NS = 2 * 86_400e9;

/** Throws an error that says what does not hold. */
export function checkTimeline(timeline: Timeline): void {
  const { calls, work, names, streams, threads, spanNs } = timeline;
  holds(spanNs >= 0 && spanNs <= MAX_SPAN_NS, `a span of ${spanNs} ns`);
  checkEvents('call', calls, spanNs);
  checkEvents('work', work, spanNs);
  within('threads of calls', calls.thread, 0, threads.length);
  within('streams of calls', calls.stream, -1, streams.length);
  within('records of calls', calls.recordCall, -1, calls.count);
  within('names of calls', calls.name, 0, names.length);
  within('names of work', work.name, 0, names.length);
  within('streams of work', work.stream, 0, streams.length);
  within('calls of work', work.call, -1, calls.count);
  within('submissions', work.submission, 0, timeline.submissions);
  within('bytes', work.bytes, 0, Number.MAX_SAFE_INTEGER + 1);
  holds(timeline.submissions <= work.count, 'more submissions than work');
  checkOrder('calls', calls.thread, calls.startNs, calls.durationNs);
  checkOrder('work', work.stream, work.startNs, undefined);
  for (const { label, startNs, endNs } of timeline.iterations) {
    holds(Number.isFinite(startNs) && endNs >= startNs, `iteration ${label}`);
  }
  for (const { device } of streams) holds(Number.isFinite(device), `GPU ${device}`);
  for (const { code, count, message } of timeline.warnings) {
    holds(count >= 1 && message.startsWith(String(count)), `warning ${code}: ${message}`);
    holds(!/NaN|undefined/.test(message), `warning ${code}: ${message}`);
  }
}

function holds(condition: boolean, what: string): void {
  if (!condition) throw new Error(`not a timeline: ${what}`);
}

function checkEvents(
  what: string,
  events: {
    readonly count: number;
    readonly startNs: Float64Array;
    readonly durationNs: Float64Array;
  },
  spanNs: number,
): void {
  holds(events.startNs.length === events.count, `${what}: columns of other lengths`);
  for (let row = 0; row < events.count; row += 1) {
    const start = events.startNs[row] ?? Number.NaN;
    const duration = events.durationNs[row] ?? Number.NaN;
    holds(start >= 0 && duration >= 0, `${what} ${row} at ${start}, ${duration} ns long`);
    holds(start + duration <= spanNs, `${what} ${row} ends behind the end`);
  }
}

function within(what: string, values: ArrayLike<number>, low: number, above: number): void {
  for (let row = 0; row < values.length; row += 1) {
    const value = values[row] ?? Number.NaN;
    holds(value >= low && value < above, `${what}: ${value} in row ${row}`);
  }
}

/** By group and start; calls of one thread do not overlap, but for what rounding makes of sums. */
function checkOrder(
  what: string,
  group: Uint32Array,
  start: Float64Array,
  duration: Float64Array | undefined,
): void {
  for (let row = 1; row < start.length; row += 1) {
    const [before = 0, own = 0] = [group[row - 1], group[row]];
    holds(before <= own, `${what}: row ${row} is out of order`);
    if (before !== own) continue;
    const startBefore = start[row - 1] ?? Number.NaN;
    const startOwn = start[row] ?? Number.NaN;
    holds(startBefore <= startOwn, `${what}: row ${row} begins before the one ahead`);
    if (duration === undefined) continue;
    const length = duration[row - 1] ?? Number.NaN;
    holds(length <= startOwn - startBefore, `${what}: row ${row} begins within the one ahead`);
  }
}
