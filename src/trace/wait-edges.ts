/**
 * Which work a host call waits for, and which work a stream waits for because of an event. Known
 * where the trace records it; inferred, and flagged so, where a rule has to choose.
 */
import { CALL_KIND, isSynchronise } from './call-kind.ts';
import { CallStreams } from './call-streams.ts';
import type { EdgeList } from './edge-list.ts';
import { EDGE } from './edge-list.ts';
import { addEventEdges } from './event-edges.ts';
import type { Lanes } from './lanes.ts';
import { forEachCall, forEachWork, hasCall, workingStreams } from './lanes.ts';
import { LaunchSweep } from './launch-sweep.ts';
import type { Timeline } from './timeline.ts';
import { endOfCall, endOfWork, WORK_KIND } from './timeline.ts';
import type { WaitBuilder, WaitCounts } from './wait-builder.ts';
import { addWait } from './wait-builder.ts';

/** Adds the edges of host waits (`isWait`, see `hostWaits`) to `waits` and those of stream waits to `work`. */
export function addWaits(
  timeline: Timeline,
  lanes: Lanes,
  isWait: Uint8Array,
  waits: EdgeList,
  work: EdgeList,
): WaitCounts {
  const counts = { contradicted: 0, unknownStreamWaits: 0 };
  const streams = new CallStreams(timeline, lanes);
  const builder = { timeline, lanes, waits, work, streams, counts };
  addCopyWaits(builder, isWait);
  addEventEdges(builder);
  addSynchronises(builder);
  return counts;
}

/** Blocking copies and asynchronous DtoH copies into pageable memory wait for their own work. */
function addCopyWaits(builder: WaitBuilder, isWait: Uint8Array): void {
  const { timeline, lanes } = builder;
  const { calls, work } = timeline;
  forEachWork(lanes, (row) => {
    const call = work.call[row] ?? -1;
    if (!hasCall(timeline, lanes, call) || isWait[call] !== 1) return;
    if (work.kind[row] === WORK_KIND.kernel) return;
    const kind = calls.kind[call];
    if (kind !== CALL_KIND.copyBlocking && kind !== CALL_KIND.copyAsync) return;
    addWait(builder, call, row, 0);
  });
}

/** Device, context and stream synchronises, and event synchronises without a record. */
function addSynchronises(builder: WaitBuilder): void {
  const { timeline, lanes } = builder;
  const { calls } = timeline;
  const list: number[] = [];
  forEachCall(lanes, (call) => {
    if (isSynchronise(calls.kind[call] ?? 0) && (calls.recordCall[call] ?? -1) < 0) {
      list.push(call);
    }
  });
  list.sort((a, b) => (calls.startNs[a] ?? 0) - (calls.startNs[b] ?? 0) || a - b);
  const sweep = new LaunchSweep(timeline, lanes);
  const working = workingStreams(lanes);
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
  readonly #builder: WaitBuilder;
  readonly #sweep: LaunchSweep;
  readonly #working: readonly number[];
  readonly #devices: number;
  readonly #waitedFor = new Map<string, number>();

  constructor(
    builder: WaitBuilder,
    sweep: LaunchSweep,
    working: readonly number[],
    devices: number,
  ) {
    this.#builder = builder;
    this.#sweep = sweep;
    this.#working = working;
    this.#devices = devices;
  }

  add(call: number): void {
    const { timeline, streams } = this.#builder;
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
      if (addWait(this.#builder, call, row, flags)) this.#waitedFor.set(key, row);
    }
  }
}

function addKnownStream(builder: WaitBuilder, sweep: LaunchSweep, call: number): void {
  const { calls } = builder.timeline;
  const row = sweep.lastBy(calls.stream[call] ?? 0, calls.startNs[call] ?? 0);
  if (row >= 0) addWait(builder, call, row, 0);
}

/**
 * The latest completion by the wait's end. A stream that still had work to do then was not what a
 * stream synchronise waited for; an event may lie before that work.
 */
function addLikeliest(
  builder: WaitBuilder,
  sweep: LaunchSweep,
  candidates: readonly number[],
  call: number,
): void {
  const { timeline } = builder;
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
  if (likeliest >= 0) addWait(builder, call, likeliest, EDGE.inferred);
}
