import { assert } from './assert.ts';
import type { Alarm, Clock } from './clock.ts';
import { EventQueue } from './event-queue.ts';
import type { Nanos } from './units.ts';

const NOT_SCHEDULED = -1;

/** What a `VirtualClock` runs. Made once by who wants it often, and scheduled again after it has run. */
export class ClockEvent {
  readonly fire: (now: Nanos) => void;
  /** Its turn; what lies in the queue under another one is no longer wanted. The clock's to set. */
  turn = NOT_SCHEDULED;

  constructor(fire: (now: Nanos) => void) {
    this.fire = fire;
  }

  get isScheduled(): boolean {
    return this.turn !== NOT_SCHEDULED;
  }

  cancel(): void {
    this.turn = NOT_SCHEDULED;
  }
}

/**
 * Virtual time: events run in (time, order of scheduling), each to its end before the next, and
 * time moves only between events. Nothing else may drive a world that must replay from a seed.
 *
 * An event has a turn, its place in the order of scheduling. Who may or may not need an event later takes
 * its turn alone: `hasPassed` then says whether it would have run, and `schedule` puts it where it would
 * have been.
 */
export class VirtualClock implements Clock {
  readonly #queue = new EventQueue<ClockEvent>();
  #nowNs = 0;
  /** Of the last event that ran, or Infinity when all that was due by now has run. */
  #turn = Infinity;

  now(): Nanos {
    return this.#nowNs as Nanos;
  }

  at(atNs: Nanos, fn: (now: Nanos) => void): () => void {
    const event = new ClockEvent(fn);
    this.schedule(event, atNs, this.takeTurn());
    return () => event.cancel();
  }

  alarm(fn: (now: Nanos) => void): Alarm {
    const event = new ClockEvent(fn);
    return {
      set: (atNs) => this.schedule(event, atNs, this.takeTurn()),
      cancel: () => event.cancel(),
    };
  }

  /** The place in the order of an event that is, or might be, scheduled now. */
  takeTurn(): number {
    return this.#queue.takeSequence();
  }

  /** Runs `event` at `atNs` or now, whichever is later, and at no time it was scheduled for before. */
  schedule(event: ClockEvent, atNs: number, turn: number): void {
    event.turn = turn;
    this.#queue.pushAs(atNs > this.#nowNs ? atNs : this.#nowNs, turn, event);
  }

  /** Whether an event of this time, not before it took its turn, and turn would have begun to run. */
  hasPassed(atNs: number, turn: number): boolean {
    return atNs < this.#nowNs || (atNs === this.#nowNs && turn <= this.#turn);
  }

  /** Runs the next event. Returns false when there is none. */
  step(): boolean {
    const nextNs = this.#nextNs();
    if (nextNs === Infinity) return false;
    const turn = this.#queue.nextSequence;
    const event = this.#queue.pop() as ClockEvent;
    event.turn = NOT_SCHEDULED;
    this.#nowNs = nextNs;
    this.#turn = turn;
    event.fire(nextNs as Nanos);
    return true;
  }

  /** Runs every event up to and including `untilNs`, then sets the time to it. */
  runUntil(untilNs: number): void {
    assert(untilNs >= this.#nowNs, 'virtual time does not run backwards');
    while (this.#nextNs() <= untilNs) this.step();
    this.#nowNs = untilNs;
    this.#turn = Infinity;
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
    for (;;) {
      const event = queue.next;
      if (event === undefined) return Infinity;
      if (event.turn === queue.nextSequence) return queue.nextTimeNs;
      queue.pop();
    }
  }
}
