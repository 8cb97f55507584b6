/**
 * What a command of one channel can be held up by that belongs to the whole device: events, and copy
 * engines. Both know the channels that wait and release them; a channel then tries its command again.
 */
import { assert } from '#base/assert';
import type { Nanos } from '#base/units';
import { EVENT_COUNT } from './accel-registers.ts';

/** A channel whose command at its head is held up. */
export interface Held {
  released(now: Nanos): void;
}

interface Waiter {
  readonly held: Held;
  readonly event: number;
  readonly value: number;
}

/** The events: numbers that only grow, 0 after a reset. */
export class EventFile {
  readonly #values = new Float64Array(EVENT_COUNT);
  #waiters: Waiter[] = [];

  /** True if the event has reached `value`; otherwise `held` is released when it has. */
  waitFor(held: Held, event: number, value: number): boolean {
    if ((this.#values[event] as number) >= value) return true;
    this.#waiters.push({ held, event, value });
    return false;
  }

  /** The event becomes `value`, unless it is more already. */
  raise(now: Nanos, event: number, value: number): void {
    if ((this.#values[event] as number) >= value) return;
    this.#values[event] = value;
    const due = this.#waiters.filter((waiter) => waiter.event === event && waiter.value <= value);
    if (due.length === 0) return;
    this.#waiters = this.#waiters.filter((waiter) => !due.includes(waiter));
    for (const { held } of due) held.released(now);
  }

  forget(held: Held): void {
    this.#waiters = this.#waiters.filter((waiter) => waiter.held !== held);
  }

  reset(): void {
    this.#values.fill(0);
    this.#waiters = [];
  }
}

/** An engine that one channel has at a time; the others get it in the order they asked. */
export class CopyEngine {
  #user: Held | undefined;
  #queue: Held[] = [];

  /** True if `held` has the engine now; otherwise it is released when its turn has come. */
  take(held: Held): boolean {
    this.#user ??= held;
    if (this.#user === held) return true;
    this.#queue.push(held);
    return false;
  }

  giveBack(now: Nanos, held: Held): void {
    assert(this.#user === held, 'a copy engine is given back by who has it');
    this.#user = this.#queue.shift();
    this.#user?.released(now);
  }

  /** `held` has stopped: it neither has the engine nor waits for it any more. */
  forget(now: Nanos, held: Held): void {
    this.#queue = this.#queue.filter((other) => other !== held);
    if (this.#user === held) this.giveBack(now, held);
  }

  reset(): void {
    this.#user = undefined;
    this.#queue = [];
  }
}
