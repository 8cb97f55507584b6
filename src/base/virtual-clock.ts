/**
 * Time that moves only from event to event, of a world and of processes in it that may lag behind.
 *
 * Order. Events run by (time, time at which their turn was taken, turn). A turn is a place in the order of
 * scheduling, so without lag this is (time, order of scheduling). Who may or may not need an event later
 * takes its turn alone: `hasPassed` then says whether it would have run, and `schedule` puts it where it
 * would have been.
 *
 * Lag. A process that hears from the rest of its world by messages alone, and sends none that arrive within
 * less than some time, may be behind the world by less than that time: nobody can tell. It is worth doing,
 * since the code of one process then runs many times in a row. Such a process has a clock of its own, made
 * of the world's. All that happens to it is an event of its clock and sees the time it was due at. Who
 * looks at the process or does something to it from outside calls `catchUp` before. What happens to it comes
 * in the same order whatever the lag, but for events due at the same time whose turns were taken at the
 * same time, one inside the process and one outside: any order of them is as good.
 */
import { assert } from './assert.ts';
import type { Alarm, Clock } from './clock.ts';
import { ClockEvent, ClockQueue } from './clock-queue.ts';
import type { Nanos } from './units.ts';

/** Nothing else may drive a world that must replay from a seed. Each event runs to its end before the next. */
export class VirtualClock implements Clock {
  readonly #queue = new ClockQueue();
  /** Of the clock of a process. */
  readonly #world: VirtualClock | undefined;
  #nowNs = 0;
  /** The place in the order up to which all has run, of the time it is. */
  #takenNs = 0;
  #turn = -1;
  #turns = 0;
  #wantedLagNs = 0;
  #lagBoundNs = Infinity;
  #isCatchingUp = false;
  /** In the world: to catch up at the latest. */
  readonly #wake: ClockEvent | undefined;

  /** With `world`: the clock of a process in it, which does not lag until `lagNs` is set. */
  constructor(world?: VirtualClock) {
    this.#world = world;
    if (world === undefined) return;
    this.#wake = new ClockEvent(() => this.catchUp());
    this.catchUp();
  }

  now(): Nanos {
    return this.#nowNs as Nanos;
  }

  at(atNs: Nanos, fn: (now: Nanos) => void): () => void {
    const event = new ClockEvent(fn);
    this.schedule(event, atNs, this.takeTurn(), this.#nowNs);
    return () => event.cancel();
  }

  alarm(fn: (now: Nanos) => void): Alarm {
    const event = new ClockEvent(fn);
    return {
      set: (atNs) => this.schedule(event, atNs, this.takeTurn(), this.#nowNs),
      cancel: () => event.cancel(),
    };
  }

  /** The place in the order of an event that is, or might be, scheduled now. Processes share them. */
  takeTurn(): number {
    return this.#world === undefined ? this.#turns++ : this.#world.takeTurn();
  }

  /**
   * Runs `event` at `atNs` or now, whichever is later, and at no time it was scheduled for before. `takenNs`
   * is when the turn was taken.
   */
  schedule(event: ClockEvent, atNs: number, turn: number, takenNs: number): void {
    event.isScheduled = true;
    event.atNs = atNs > this.#nowNs ? atNs : this.#nowNs;
    event.takenNs = takenNs;
    event.turn = turn;
    this.#queue.put(event);
    if (this.#world !== undefined && event.place === 0) this.#setWake(event);
  }

  /** Whether an event of this time, not before it took its turn, and turn would have begun to run. */
  hasPassed(atNs: number, takenNs: number, turn: number): boolean {
    if (atNs !== this.#nowNs) return atNs < this.#nowNs;
    return takenNs < this.#takenNs || (takenNs === this.#takenNs && turn <= this.#turn);
  }

  /** Runs the next event. Returns false when there is none. */
  step(): boolean {
    const event = this.#next();
    if (event === undefined) return false;
    this.#run(event);
    return true;
  }

  /** Runs every event up to and including `untilNs`, then sets the time to it. */
  runUntil(untilNs: number): void {
    assert(untilNs >= this.#nowNs, 'virtual time does not run backwards');
    for (let event = this.#next(); event !== undefined && event.atNs <= untilNs; ) {
      this.#run(event);
      event = this.#next();
    }
    this.#nowNs = untilNs;
    this.#takenNs = untilNs;
    this.#turn = this.#turns - 1;
  }

  /** Steps until `done()` or until nothing is left or `limitNs` is passed. Returns whether done. */
  runWhile(pending: () => boolean, limitNs = Infinity): boolean {
    while (pending()) {
      const event = this.#next();
      if (event === undefined || event.atNs > limitNs) return false;
      this.#run(event);
    }
    return true;
  }

  /** How far a process may be behind its world, ns; 0 where a bound forbids what was asked for. */
  get lagNs(): number {
    return this.#wantedLagNs < this.#lagBoundNs ? this.#wantedLagNs : 0;
  }

  set lagNs(wantedNs: number) {
    assert(this.#world !== undefined && wantedNs >= 0, 'a process may be behind its world');
    this.catchUp();
    this.#wantedLagNs = wantedNs;
    this.#setWake(this.#next());
  }

  /** What the process sends takes `atLeastNs` to arrive: it does not lag by as much. For good. */
  boundLag(atLeastNs: number): void {
    this.catchUp();
    this.#lagBoundNs = Math.min(this.#lagBoundNs, atLeastNs);
    this.#setWake(this.#next());
  }

  /** Does what was due in a process before what its world does now; nothing from inside the process. */
  catchUp(): void {
    const world = this.#world;
    if (world === undefined || this.#isCatchingUp) return;
    this.#isCatchingUp = true;
    try {
      for (let event = this.#next(); event !== undefined && world.#isBehind(event); ) {
        this.#run(event);
        event = this.#next();
      }
      this.#nowNs = world.#nowNs;
      this.#takenNs = world.#takenNs;
      this.#turn = world.#turn;
    } finally {
      this.#isCatchingUp = false;
    }
    this.#setWake(this.#next());
  }

  #isBehind(event: ClockEvent): boolean {
    return this.hasPassed(event.atNs, event.takenNs, event.turn);
  }

  /** `event` is the first of a process. */
  #setWake(event: ClockEvent | undefined): void {
    const world = this.#world;
    const wake = this.#wake;
    if (world === undefined || wake === undefined || this.#isCatchingUp) return;
    if (event === undefined) return;
    const { lagNs } = this;
    const wakeNs = event.atNs + lagNs;
    // An early one does no harm. Without lag it has the place of the event itself.
    if (lagNs > 0 && wake.isScheduled && wake.atNs <= wakeNs) return;
    world.schedule(wake, wakeNs, event.turn, event.takenNs);
  }

  #run(event: ClockEvent): void {
    event.isScheduled = false;
    this.#nowNs = event.atNs;
    this.#takenNs = event.takenNs;
    this.#turn = event.turn;
    // It stays where it is meanwhile: mostly it is scheduled again, and moves once.
    event.fire(event.atNs as Nanos);
    if (!event.isScheduled) this.#queue.remove(event);
  }

  /** The next event that was not cancelled. */
  #next(): ClockEvent | undefined {
    const queue = this.#queue;
    for (;;) {
      const event = queue.first;
      if (event === undefined || event.isScheduled) return event;
      queue.remove(event);
    }
  }
}
