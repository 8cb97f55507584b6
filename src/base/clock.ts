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
  /** As `at`, for one who asks again and again: what was asked for before is forgotten. */
  alarm?(fn: (now: Nanos) => void): Alarm;
}

/** Calls its function once, at or after the time it was last set to, unless it was cancelled since. */
export interface Alarm {
  set(atNs: number): void;
  cancel(): void;
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
  readonly #machine: Timed;
  readonly #alarm: Alarm;
  #armedForNs = Infinity;

  constructor(clock: Clock, machine: Timed) {
    this.#machine = machine;
    const fire = (now: Nanos): void => {
      this.#armedForNs = Infinity;
      this.#machine.tick(now);
      this.update();
    };
    this.#alarm = clock.alarm?.(fire) ?? alarmOf(clock, fire);
  }

  update(): void {
    const deadlineNs = this.#machine.nextDeadlineNs();
    // A timer that fires early finds nothing due and is armed anew: cheaper than re-arming each time.
    if (deadlineNs >= this.#armedForNs) return;
    this.#armedForNs = deadlineNs;
    this.#alarm.set(deadlineNs);
  }

  stop(): void {
    this.#alarm.cancel();
    this.#armedForNs = Infinity;
  }
}

function alarmOf(clock: Clock, fn: (now: Nanos) => void): Alarm {
  let cancel: (() => void) | undefined;
  return {
    set: (atNs) => {
      cancel?.();
      cancel = clock.at(atNs as Nanos, fn);
    },
    cancel: () => cancel?.(),
  };
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
