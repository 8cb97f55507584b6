/**
 * Edges of events: what an event synchronise waits for, and which work a stream wait holds up until
 * which other is done. The record, and the stream it is on, are known or found by a rule; what a rule
 * found is flagged as inferred.
 */
import { CALL_KIND } from './call-kind.ts';
import type { CallStreams } from './call-streams.ts';
import { EDGE } from './edge-list.ts';
import type { Lanes } from './lanes.ts';
import { forEachCall, hasCall } from './lanes.ts';
import { LaunchSweep } from './launch-sweep.ts';
import type { Timeline } from './timeline.ts';
import { endOfWork } from './timeline.ts';
import type { WaitBuilder } from './wait-builder.ts';
import { addWait } from './wait-builder.ts';

/** How far back from a stream wait the event record it goes with is looked for, in calls. */
const RECORD_REACH = 16;

interface EventUse {
  /** The event synchronise or stream wait. */
  readonly call: number;
  readonly recordedNs: number;
  /** The stream the event was recorded on. */
  readonly source: number;
  readonly flags: number;
}

/** Event synchronises and stream waits whose event record is known, or found by a rule. */
export function addEventEdges(builder: WaitBuilder): void {
  const { timeline, lanes, work, streams, counts } = builder;
  const { calls } = timeline;
  const uses: EventUse[] = [];
  forEachCall(lanes, (call) => {
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
      addWait(builder, use.call, source, use.flags);
      continue;
    }
    const { stream, flags } = held(streams, timeline, use.call);
    if (stream < 0 || stream === timeline.work.stream[source]) continue;
    const target = waiting.nextAfter(stream, calls.startNs[use.call] ?? 0);
    if (target < 0) continue;
    const all = use.flags | flags | EDGE.sync;
    if (endOfWork(timeline, source) <= (timeline.work.startNs[target] ?? 0)) {
      work.add(target, source, all);
    } else if ((all & EDGE.inferred) === 0) {
      counts.contradicted += 1;
    }
  }
}

function eventUse({ timeline, lanes, streams }: WaitBuilder, call: number): EventUse | undefined {
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
