/**
 * What each stream had been given by a moment: goes through the work of all streams in the order it
 * was launched, once, while the questions come in order of time.
 */
import type { Lanes } from './lanes.ts';
import { issuedNs, lastEndedBy } from './lanes.ts';
import type { Timeline } from './timeline.ts';
import { endOfWork } from './timeline.ts';

export class LaunchSweep {
  readonly #timeline: Timeline;
  readonly #lanes: Lanes;
  readonly #next: Uint32Array;
  /** Of the work launched so far, the row that ends last; -1 for none. */
  readonly #last: Int32Array;

  constructor(timeline: Timeline, lanes: Lanes) {
    this.#timeline = timeline;
    this.#lanes = lanes;
    this.#next = lanes.workFrom.slice();
    this.#last = new Int32Array(lanes.workFrom.length).fill(-1);
  }

  /** Of the work launched on the stream by `atNs`, the row that ends last; -1 for none. */
  lastBy(stream: number, atNs: number): number {
    this.#advance(stream, atNs);
    return this.#last[stream] ?? -1;
  }

  /** The first row of the stream launched after `atNs`; -1 for none. */
  nextAfter(stream: number, atNs: number): number {
    this.#advance(stream, atNs);
    const next = this.#next[stream] ?? 0;
    return next < (this.#lanes.workTo[stream] ?? 0) ? next : -1;
  }

  /**
   * Of the work launched on the stream by `atNs`, the latest row that ended by `endedByNs`, looking
   * back over a few; -1 for none.
   */
  endedBy(stream: number, atNs: number, endedByNs: number): number {
    this.#advance(stream, atNs);
    const from = this.#lanes.workFrom[stream] ?? 0;
    return lastEndedBy(this.#timeline, from, this.#next[stream] ?? 0, endedByNs);
  }

  #advance(stream: number, atNs: number): void {
    const to = this.#lanes.workTo[stream] ?? 0;
    let next = this.#next[stream] ?? 0;
    let last = this.#last[stream] ?? -1;
    while (next < to && issuedNs(this.#timeline, next) <= atNs) {
      if (last < 0 || endOfWork(this.#timeline, next) >= endOfWork(this.#timeline, last))
        last = next;
      next += 1;
    }
    this.#next[stream] = next;
    this.#last[stream] = last;
  }
}
