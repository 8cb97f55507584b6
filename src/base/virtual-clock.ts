import { assert } from './assert.ts';
import type { Clock } from './clock.ts';
import { EventQueue } from './event-queue.ts';
import type { Nanos } from './units.ts';

interface Scheduled {
  atNs: number;
  fn: ((now: Nanos) => void) | undefined;
}

/**
 * Virtual time: events run in (time, order of scheduling), each to its end before the next, and
 * time moves only between events. Nothing else may drive a world that must replay from a seed.
 */
export class VirtualClock implements Clock {
  readonly #queue = new EventQueue<Scheduled>();
  #nowNs = 0;

  now(): Nanos {
    return this.#nowNs as Nanos;
  }

  at(atNs: Nanos, fn: (now: Nanos) => void): () => void {
    const event: Scheduled = { atNs: Math.max(atNs, this.#nowNs), fn };
    this.#queue.push(event.atNs, event);
    return () => {
      event.fn = undefined;
    };
  }

  /** Runs the next event. Returns false when there is none. */
  step(): boolean {
    if (this.#nextNs() === Infinity) return false;
    const event = this.#queue.pop();
    if (event?.fn === undefined) return false;
    this.#nowNs = event.atNs;
    event.fn(this.now());
    return true;
  }

  /** Runs every event up to and including `untilNs`, then sets the time to it. */
  runUntil(untilNs: number): void {
    assert(untilNs >= this.#nowNs, 'virtual time does not run backwards');
    while (this.#nextNs() <= untilNs) this.step();
    this.#nowNs = untilNs;
  }

  /** Steps until `done()` or until nothing is left or `limitNs` is passed. Returns whether done. */
  runWhile(pending: () => boolean, limitNs = Infinity): boolean {
    while (pending()) {
      if (this.#nextNs() > limitNs || !this.step()) return false;
    }
    return true;
  }

  /** When the next event is due that was not cancelled, or Infinity. */
  #nextNs(): number {
    const queue = this.#queue;
    while (queue.next !== undefined && queue.next.fn === undefined) queue.pop();
    return queue.nextTimeNs;
  }
}
