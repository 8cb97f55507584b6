/**
 * The part of a timeline a model looks at: for each host thread a run of its calls, for each stream a
 * run of its work. Nothing is copied; a window is the same columns with other bounds.
 */
import { firstAtLeast } from './column.ts';
import type { Timeline } from './timeline.ts';
import { endOfWork } from './timeline.ts';

export interface Lanes {
  /** Rows of calls of thread t: `callFrom[t]` up to, not including, `callTo[t]`. */
  readonly callFrom: Uint32Array;
  readonly callTo: Uint32Array;
  /** Rows of work of stream s, likewise. */
  readonly workFrom: Uint32Array;
  readonly workTo: Uint32Array;
  /** Start of the first event, and end of the last. Both 0 when there is none. */
  readonly startNs: number;
  readonly endNs: number;
  /** Whether this is all of the timeline. */
  readonly isWhole: boolean;
}

/** All of it. */
export function wholeLanes(timeline: Timeline): Lanes {
  const { calls, work } = timeline;
  const [callFrom, callTo] = groups(calls.thread, timeline.threads.length);
  const [workFrom, workTo] = groups(work.stream, timeline.streams.length);
  return { callFrom, callTo, workFrom, workTo, startNs: 0, endNs: timeline.spanNs, isWhole: true };
}

/**
 * The calls that begin from `startNs` up to, not including, `endNs`, and their work; work without a
 * launch in the trace by its own start. What lies between two pieces of such work on a stream belongs
 * to the window too.
 */
export function windowLanes(
  timeline: Timeline,
  whole: Lanes,
  startNs: number,
  endNs: number,
): Lanes {
  const { calls, work } = timeline;
  const callFrom = whole.callFrom.slice();
  const callTo = whole.callTo.slice();
  for (let thread = 0; thread < callFrom.length; thread += 1) {
    const from = whole.callFrom[thread] ?? 0;
    const to = whole.callTo[thread] ?? 0;
    callFrom[thread] = firstAtLeast(calls.startNs, from, to, startNs);
    callTo[thread] = firstAtLeast(calls.startNs, callFrom[thread] ?? 0, to, endNs);
  }
  const workFrom = whole.workFrom.slice();
  const workTo = whole.workTo.slice();
  for (let stream = 0; stream < workFrom.length; stream += 1) {
    const to = whole.workTo[stream] ?? 0;
    const first = firstAtLeast(work.startNs, whole.workFrom[stream] ?? 0, to, startNs);
    let from = first;
    while (from < to && issuedNs(timeline, from) < startNs) from += 1;
    let end = from;
    while (end < to && issuedNs(timeline, end) < endNs) end += 1;
    workFrom[stream] = from;
    workTo[stream] = end;
  }
  return {
    callFrom,
    callTo,
    workFrom,
    workTo,
    ...extent(timeline, callFrom, callTo, workFrom, workTo),
    isWhole: false,
  };
}

/** When the work was launched; its own start where no call of the trace launched it. */
export function issuedNs(timeline: Timeline, row: number): number {
  const call = timeline.work.call[row] ?? -1;
  return (call < 0 ? timeline.work.startNs[row] : timeline.calls.startNs[call]) ?? 0;
}

/** Whether the call is one of the lanes'. */
export function hasCall(timeline: Timeline, lanes: Lanes, call: number): boolean {
  if (call < 0) return false;
  const thread = timeline.calls.thread[call] ?? 0;
  return call >= (lanes.callFrom[thread] ?? 0) && call < (lanes.callTo[thread] ?? 0);
}

export function forEachCall(lanes: Lanes, visit: (call: number) => void): void {
  for (let thread = 0; thread < lanes.callFrom.length; thread += 1) {
    const to = lanes.callTo[thread] ?? 0;
    for (let call = lanes.callFrom[thread] ?? 0; call < to; call += 1) visit(call);
  }
}

export function forEachWork(lanes: Lanes, visit: (row: number) => void): void {
  for (let stream = 0; stream < lanes.workFrom.length; stream += 1) {
    const to = lanes.workTo[stream] ?? 0;
    for (let row = lanes.workFrom[stream] ?? 0; row < to; row += 1) visit(row);
  }
}

/** Streams that have work. */
export function workingStreams({ workFrom, workTo }: Lanes): number[] {
  return [...workFrom.keys()].filter((stream) => (workFrom[stream] ?? 0) < (workTo[stream] ?? 0));
}

/**
 * Rows by lane: threads first, then streams. Not by spreading: there may be more lanes than a call takes
 * arguments.
 */
export function byLane(threads: Uint32Array, streams: Uint32Array): Uint32Array {
  const all = new Uint32Array(threads.length + streams.length);
  all.set(threads);
  all.set(streams, threads.length);
  return all;
}

/**
 * Of the rows of one stream from `from` up to `to`, the latest that ended by then, looking back over a
 * few; -1 for none.
 */
export function lastEndedBy(timeline: Timeline, from: number, to: number, byNs: number): number {
  const { startNs } = timeline.work;
  const next = firstAtLeast(startNs, from, to, byNs);
  const last = startNs[next] === byNs && next < to ? next : next - 1;
  for (let row = last; row >= Math.max(from, last - LOOK_BACK); row -= 1) {
    if (endOfWork(timeline, row) <= byNs) return row;
  }
  return -1;
}

const LOOK_BACK = 8;

function groups(groupOf: Uint32Array, count: number): [Uint32Array, Uint32Array] {
  const from = new Uint32Array(count);
  const to = new Uint32Array(count);
  let row = 0;
  while (row < groupOf.length) {
    const group = groupOf[row] ?? 0;
    const first = row;
    while (row < groupOf.length && groupOf[row] === group) row += 1;
    from[group] = first;
    to[group] = row;
  }
  return [from, to];
}

function extent(
  timeline: Timeline,
  callFrom: Uint32Array,
  callTo: Uint32Array,
  workFrom: Uint32Array,
  workTo: Uint32Array,
): { readonly startNs: number; readonly endNs: number } {
  const { calls, work } = timeline;
  let startNs = Infinity;
  let endNs = 0;
  for (let thread = 0; thread < callFrom.length; thread += 1) {
    const from = callFrom[thread] ?? 0;
    const last = (callTo[thread] ?? 0) - 1;
    if (last < from) continue;
    startNs = Math.min(startNs, calls.startNs[from] ?? 0);
    // Calls of a thread do not overlap: the last one ends last.
    endNs = Math.max(endNs, (calls.startNs[last] ?? 0) + (calls.durationNs[last] ?? 0));
  }
  for (let stream = 0; stream < workFrom.length; stream += 1) {
    const from = workFrom[stream] ?? 0;
    const to = workTo[stream] ?? 0;
    if (from < to) startNs = Math.min(startNs, work.startNs[from] ?? 0);
    for (let row = from; row < to; row += 1) {
      endNs = Math.max(endNs, (work.startNs[row] ?? 0) + (work.durationNs[row] ?? 0));
    }
  }
  return startNs === Infinity ? { startNs: 0, endNs: 0 } : { startNs, endNs };
}
