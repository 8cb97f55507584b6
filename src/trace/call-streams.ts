/** Which stream and device a thread was using at a call, as its launches tell. */
import type { Lanes } from './lanes.ts';
import type { Timeline } from './timeline.ts';

/** How many calls of the thread are looked at in either direction. */
const REACH = 256;

export class CallStreams {
  readonly #timeline: Timeline;
  readonly #lanes: Lanes;
  #streamOf: Int32Array | undefined;

  constructor(timeline: Timeline, lanes: Lanes) {
    this.#timeline = timeline;
    this.#lanes = lanes;
  }

  /** Stream of the thread's latest launch before the call; -1 if there is none near. */
  before(call: number): number {
    const thread = this.#timeline.calls.thread[call] ?? 0;
    const furthest = Math.max(this.#lanes.callFrom[thread] ?? 0, call - REACH);
    for (let earlier = call - 1; earlier >= furthest; earlier -= 1) {
      const stream = this.#of(earlier);
      if (stream >= 0) return stream;
    }
    return -1;
  }

  /** Stream of the thread's first launch after the call; -1 if there is none near. */
  after(call: number): number {
    const thread = this.#timeline.calls.thread[call] ?? 0;
    const furthest = Math.min(this.#lanes.callTo[thread] ?? 0, call + REACH);
    for (let later = call + 1; later < furthest; later += 1) {
      const stream = this.#of(later);
      if (stream >= 0) return stream;
    }
    return -1;
  }

  #of(call: number): number {
    this.#streamOf ??= streamsOfCalls(this.#timeline);
    return this.#streamOf[call] ?? -1;
  }
}

/** A launch over several streams counts by one of them. */
function streamsOfCalls(timeline: Timeline): Int32Array {
  const { calls, work } = timeline;
  const streamOf = new Int32Array(calls.count).fill(-1);
  for (let row = work.count - 1; row >= 0; row -= 1) {
    const call = work.call[row] ?? -1;
    if (call >= 0) streamOf[call] = work.stream[row] ?? 0;
  }
  return streamOf;
}
