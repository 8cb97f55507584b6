/**
 * Time is injected everywhere. Pure cores get `now` as an argument and say when they next want to
 * be woken (`Timed`); a shell around them owns the one timer that does it (`TimerDriver`).
 */
import type { Nanos } from './units.ts';

export interface Clock {
  /** Monotonic; the origin is arbitrary. */
  now(): Nanos;
  /** Calls `fn` once at or after `atNs`. Returns a function that cancels it. */
  at(atNs: Nanos, fn: (now: Nanos) => void): () => void;
}

/** A synchronous state machine that wants to be woken. */
export interface Timed {
  /** When `tick` must be called next, or Infinity. May change after any call on the machine. */
  nextDeadlineNs(): number;
  /** Does what is due at `now`. Called early or twice it does nothing more. */
  tick(now: Nanos): void;
}

/**
 * Keeps one timer armed for the earliest deadline of one machine. Call `update` after every event
 * given to the machine; it is cheap when the deadline did not move.
 */
export class TimerDriver {
  readonly #clock: Clock;
  readonly #machine: Timed;
  #armedForNs = Infinity;
  #cancel: (() => void) | undefined;
  /** Made once: a machine is woken often. */
  readonly #fire = (now: Nanos): void => {
    this.#cancel = undefined;
    this.#armedForNs = Infinity;
    this.#machine.tick(now);
    this.update();
  };

  constructor(clock: Clock, machine: Timed) {
    this.#clock = clock;
    this.#machine = machine;
  }

  update(): void {
    const deadlineNs = this.#machine.nextDeadlineNs();
    // A timer that fires early finds nothing due and is armed anew: cheaper than re-arming each time.
    if (deadlineNs >= this.#armedForNs) return;
    this.#cancel?.();
    this.#armedForNs = deadlineNs;
    this.#cancel = this.#clock.at(deadlineNs as Nanos, this.#fire);
  }

  stop(): void {
    this.#cancel?.();
    this.#cancel = undefined;
    this.#armedForNs = Infinity;
  }
}

/**
 * The machine's monotonic clock. What is due already runs in this turn of the event loop; other
 * timers are setTimeout's: at or after the asked time, in ms steps.
 */
export class RealClock implements Clock {
  now(): Nanos {
    return (performance.now() * 1e6) as Nanos;
  }

  at(atNs: Nanos, fn: (now: Nanos) => void): () => void {
    const delayMs = Math.min(0x7fffffff, Math.ceil((atNs - this.now()) / 1e6));
    if (delayMs <= 0) {
      const immediate = setImmediate(() => fn(this.now()));
      return () => clearImmediate(immediate);
    }
    const timer = setTimeout(() => fn(this.now()), delayMs);
    return () => clearTimeout(timer);
  }
}
