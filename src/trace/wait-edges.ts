/**
 * Which work a host call waits for, and which work a stream waits for because of an event. Known
 * where the trace records it; inferred, and flagged so, where a rule has to choose.
 */
import type { CallKind } from './call-kind.ts';
import { CALL_KIND } from './call-kind.ts';
import { CallStreams } from './call-streams.ts';
import type { EdgeList } from './edge-list.ts';
import { EDGE } from './edge-list.ts';
import type { Lanes } from './lanes.ts';
import { hasCall } from './lanes.ts';
import { LaunchSweep } from './launch-sweep.ts';
import type { Timeline } from './timeline.ts';
import { WORK_KIND, hostWaits } from './timeline.ts';

/** How far back from a stream wait the event record it goes with is looked for, in calls. */
const RECORD_REACH = 16;

export interface WaitCounts {
  /** Edges the recorded times contradict, left out. */
  contradicted: number;
  /** Stream waits for which neither record nor rule gives an edge. */
  unknownStreamWaits: number;
}

interface Builder {
  readonly timeline: Timeline;
  readonly lanes: Lanes;
  /** Of calls: target a call, source a row of work. */
  readonly waits: EdgeList;
  /** Of work: target and source are rows. */
  readonly work: EdgeList;
  readonly streams: CallStreams;
  readonly counts: WaitCounts;
}

export function addWaits(
  timeline: Timeline,
  lanes: Lanes,
  waits: EdgeList,
  work: EdgeList,
): WaitCounts {
  const counts = { contradicted: 0, unknownStreamWaits: 0 };
  const builder: Builder = {
    timeline,
    lanes,
    waits,
    work,
    streams: new CallStreams(timeline, lanes),
    counts,
  };
  addCopyWaits(builder);
  addEventEdges(builder);
  addSynchronises(builder);
  return counts;
}

/** Blocking copies and asynchronous DtoH copies into pageable memory wait for their own work. */
function addCopyWaits({ timeline, lanes, waits, counts }: Builder): void {
  const { calls, work } = timeline;
  const isWait = hostWaits(timeline);
  for (let stream = 0; stream < lanes.workFrom.length; stream += 1) {
    const to = lanes.workTo[stream] ?? 0;
    for (let row = lanes.workFrom[stream] ?? 0; row < to; row += 1) {
      const call = work.call[row] ?? -1;
      if (!hasCall(timeline, lanes, call) || isWait[call] !== 1) continue;
      if (work.kind[row] === WORK_KIND.kernel) continue;
      const kind = calls.kind[call];
      if (kind !== CALL_KIND.copyBlocking && kind !== CALL_KIND.copyAsync) continue;
      if (endOfWork(timeline, row) <= endOfCall(timeline, call)) waits.add(call, row, EDGE.sync);
      else counts.contradicted += 1;
    }
  }
}

interface EventUse {
  /** The event synchronise or stream wait. */
  readonly call: number;
  readonly recordedNs: number;
  /** The stream the event was recorded on. */
  readonly source: number;
  readonly flags: number;
}

/** Event synchronises and stream waits whose event record is known, or found by a rule. */
function addEventEdges(builder: Builder): void {
  const { timeline, lanes, waits, work, streams, counts } = builder;
  const { calls } = timeline;
  const uses: EventUse[] = [];
  forCalls(lanes, (call) => {
    const kind = calls.kind[call];
    if (kind !== CALL_KIND.eventSync && kind !== CALL_KIND.streamWait) return;
    const use = eventUse(builder, call);
    if (use !== undefined) uses.push(use);
    else if (kind === CALL_KIND.streamWait) counts.unknownStreamWaits += 1;
  });
  uses.sort((a, b) => a.recordedNs - b.recordedNs || a.call - b.call);
  const recorded = new LaunchSweep(timeline, lanes);
  const sources = uses.map((use) => recorded.lastBy(use.source, use.recordedNs));
  const byCall = uses.map((_, index) => index);
  const startOf = (index: number): number => calls.startNs[uses[index]?.call ?? 0] ?? 0;
  byCall.sort((a, b) => startOf(a) - startOf(b) || a - b);
  const waiting = new LaunchSweep(timeline, lanes);
  for (const index of byCall) {
    const use = uses[index];
    const source = sources[index] ?? -1;
    if (use === undefined || source < 0) continue;
    if (calls.kind[use.call] === CALL_KIND.eventSync) {
      addIfTrue(endOfWork(timeline, source) <= endOfCall(timeline, use.call), use, counts, () =>
        waits.add(use.call, source, use.flags | EDGE.sync),
      );
      continue;
    }
    const { stream, flags } = held(streams, timeline, use.call);
    if (stream < 0 || stream === timeline.work.stream[source]) continue;
    const target = waiting.nextAfter(stream, calls.startNs[use.call] ?? 0);
    if (target < 0) continue;
    const all = { flags: use.flags | flags | EDGE.sync };
    addIfTrue(endOfWork(timeline, source) <= startOfWork(timeline, target), all, counts, () =>
      work.add(target, source, all.flags),
    );
  }
}

/** A contradicted edge that was only inferred was a wrong guess, not a violation. */
function addIfTrue(
  isTrue: boolean,
  { flags }: { readonly flags: number },
  counts: WaitCounts,
  add: () => void,
): void {
  if (isTrue) add();
  else if ((flags & EDGE.inferred) === 0) counts.contradicted += 1;
}

function eventUse({ timeline, lanes, streams }: Builder, call: number): EventUse | undefined {
  const { calls } = timeline;
  let record = calls.recordCall[call] ?? -1;
  let flags = 0;
  if (record < 0) {
    // An event synchronise without a record is inferred from what had ended.
    if (calls.kind[call] !== CALL_KIND.streamWait) return undefined;
    record = recordBefore(timeline, lanes, call);
    flags = EDGE.inferred;
  }
  if (record < 0 || !hasCall(timeline, lanes, record)) return undefined;
  let source = calls.stream[record] ?? -1;
  if (source < 0 && calls.kind[call] === CALL_KIND.eventSync) source = calls.stream[call] ?? -1;
  if (source < 0) {
    source = streams.before(record);
    flags = EDGE.inferred;
  }
  if (source < 0) return undefined;
  return { call, recordedNs: calls.startNs[record] ?? 0, source, flags };
}

/** The stream a stream wait holds up. */
function held(
  streams: CallStreams,
  timeline: Timeline,
  call: number,
): { readonly stream: number; readonly flags: number } {
  const known = timeline.calls.stream[call] ?? -1;
  if (known >= 0) return { stream: known, flags: 0 };
  return { stream: streams.after(call), flags: EDGE.inferred };
}

function recordBefore(timeline: Timeline, lanes: Lanes, call: number): number {
  const { calls } = timeline;
  const first = lanes.callFrom[calls.thread[call] ?? 0] ?? 0;
  for (let earlier = call - 1; earlier >= Math.max(first, call - RECORD_REACH); earlier -= 1) {
    if (calls.kind[earlier] === CALL_KIND.eventRecord) return earlier;
  }
  return -1;
}

/** Device, context and stream synchronises, and event synchronises without a record. */
function addSynchronises(builder: Builder): void {
  const { timeline, lanes } = builder;
  const { calls } = timeline;
  const list: number[] = [];
  forCalls(lanes, (call) => {
    if (isSynchronise(calls.kind[call] as CallKind) && (calls.recordCall[call] ?? -1) < 0) {
      list.push(call);
    }
  });
  list.sort((a, b) => (calls.startNs[a] ?? 0) - (calls.startNs[b] ?? 0) || a - b);
  const sweep = new LaunchSweep(timeline, lanes);
  const working = [...lanes.workFrom.keys()].filter(
    (stream) => (lanes.workFrom[stream] ?? 0) < (lanes.workTo[stream] ?? 0),
  );
  const devices = new Set(working.map((stream) => timeline.streams[stream]?.device));
  const device = new DeviceWaits(builder, sweep, working, devices.size);
  for (const call of list) {
    const kind = calls.kind[call];
    const stream = calls.stream[call] ?? -1;
    if (kind === CALL_KIND.deviceSync || kind === CALL_KIND.contextSync) device.add(call);
    else if (kind === CALL_KIND.streamSync && stream >= 0) addKnownStream(builder, sweep, call);
    else addLikeliest(builder, sweep, stream >= 0 ? [stream] : working, call);
  }
}

/** All work of the device launched before; what an earlier one has waited for is not repeated. */
class DeviceWaits {
  readonly #builder: Builder;
  readonly #sweep: LaunchSweep;
  readonly #working: readonly number[];
  readonly #devices: number;
  readonly #waitedFor = new Map<string, number>();

  constructor(builder: Builder, sweep: LaunchSweep, working: readonly number[], devices: number) {
    this.#builder = builder;
    this.#sweep = sweep;
    this.#working = working;
    this.#devices = devices;
  }

  add(call: number): void {
    const { timeline, waits, streams, counts } = this.#builder;
    const { calls } = timeline;
    const thread = calls.thread[call] ?? 0;
    // With several GPUs, the one the thread last used: no trace tells.
    const last = this.#devices > 1 ? streams.before(call) : -1;
    const device = timeline.streams[last]?.device;
    const flags = this.#devices > 1 ? EDGE.inferred : 0;
    for (const stream of this.#working) {
      if (device !== undefined && timeline.streams[stream]?.device !== device) continue;
      const row = this.#sweep.lastBy(stream, calls.startNs[call] ?? 0);
      const key = `${thread} ${stream}`;
      if (row < 0 || this.#waitedFor.get(key) === row) continue;
      addIfTrue(endOfWork(timeline, row) <= endOfCall(timeline, call), { flags }, counts, () => {
        waits.add(call, row, flags | EDGE.sync);
        this.#waitedFor.set(key, row);
      });
    }
  }
}

function addKnownStream({ timeline, waits, counts }: Builder, sweep: LaunchSweep, call: number) {
  const { calls } = timeline;
  const row = sweep.lastBy(calls.stream[call] ?? 0, calls.startNs[call] ?? 0);
  if (row < 0) return;
  addIfTrue(endOfWork(timeline, row) <= endOfCall(timeline, call), { flags: 0 }, counts, () =>
    waits.add(call, row, EDGE.sync),
  );
}

/**
 * The latest completion by the wait's end. A stream that still had work to do then was not what a
 * stream synchronise waited for; an event may lie before that work.
 */
function addLikeliest(
  { timeline, waits }: Builder,
  sweep: LaunchSweep,
  candidates: readonly number[],
  call: number,
): void {
  const { calls } = timeline;
  const atNs = calls.startNs[call] ?? 0;
  const endNs = endOfCall(timeline, call);
  let likeliest = -1;
  for (const stream of candidates) {
    let row = sweep.lastBy(stream, atNs);
    if (row >= 0 && endOfWork(timeline, row) > endNs) {
      row = calls.kind[call] === CALL_KIND.eventSync ? sweep.endedBy(stream, atNs, endNs) : -1;
    }
    if (row < 0) continue;
    if (likeliest < 0 || endOfWork(timeline, row) > endOfWork(timeline, likeliest)) likeliest = row;
  }
  if (likeliest >= 0) waits.add(call, likeliest, EDGE.inferred | EDGE.sync);
}

function isSynchronise(kind: CallKind): boolean {
  return (
    kind === CALL_KIND.deviceSync ||
    kind === CALL_KIND.contextSync ||
    kind === CALL_KIND.streamSync ||
    kind === CALL_KIND.eventSync
  );
}

function forCalls(lanes: Lanes, visit: (call: number) => void): void {
  for (let thread = 0; thread < lanes.callFrom.length; thread += 1) {
    const to = lanes.callTo[thread] ?? 0;
    for (let call = lanes.callFrom[thread] ?? 0; call < to; call += 1) visit(call);
  }
}

function endOfCall(timeline: Timeline, call: number): number {
  return (timeline.calls.startNs[call] ?? 0) + (timeline.calls.durationNs[call] ?? 0);
}

function startOfWork(timeline: Timeline, row: number): number {
  return timeline.work.startNs[row] ?? 0;
}

function endOfWork(timeline: Timeline, row: number): number {
  return (timeline.work.startNs[row] ?? 0) + (timeline.work.durationNs[row] ?? 0);
}
