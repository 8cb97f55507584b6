/**
 * Tasks: what host software does over time, written as generators that yield operations.
 *
 * A task is a generator. It yields an `Operation` (a config read, a wait) and gets its result back;
 * helpers are called with `yield*`. The `TaskRunner` starts each operation and resumes the task from
 * inside the operation's callback, so a task needs no promise, no event loop and no clock of its
 * own: it runs alike in virtual and in real time, and depends on its inputs alone.
 *
 * A task may run in a scope (the life of the function in a virtual slot). When the scope ends, every
 * wait in it ends at once: the error is thrown at the task's `yield`, where `finally` blocks can
 * still tidy up. What such a block yields in turn fails at once with the same error.
 */
import type { Timed } from '#base/clock';
import type { DxpuError } from '#base/errors';
import { EventQueue } from '#base/event-queue';
import type { Nanos } from '#base/units';

/**
 * Something a task can wait for. Started once; calls `finish` at most once, maybe before `start`
 * returns. Returns how to give up, if giving up needs anything.
 */
export interface Operation {
  start(now: Nanos, runner: TaskRunner, finish: Finish): (() => void) | undefined;
}

export type Finish = (now: Nanos, result: unknown) => void;

export type Task<T> = Generator<Operation, T, unknown>;

/** How a task ended. */
export type Outcome<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly error: unknown };

/** Something that happens again and again, such as an interrupt. */
export class Signal {
  readonly #listeners = new Set<(now: Nanos) => void>();

  listen(fn: (now: Nanos) => void): () => void {
    this.#listeners.add(fn);
    return () => this.#listeners.delete(fn);
  }

  get listenerCount(): number {
    return this.#listeners.size;
  }

  /** Calls everybody who listens. */
  notify(now: Nanos): void {
    for (const fn of this.#listeners) fn(now);
  }
}

/** What can come to an end, and with it every task in it. */
export class TaskScope {
  readonly name: string;
  /** Notified once, when the scope ends. */
  readonly ended = new Signal();
  #error: DxpuError | undefined;

  constructor(name: string) {
    this.name = name;
  }

  /** Why the scope has ended, or `undefined` while it has not. */
  get error(): DxpuError | undefined {
    return this.#error;
  }

  /** Throws `error` into every task of the scope, now and whenever one waits again. */
  end(now: Nanos, error: DxpuError): void {
    if (this.#error !== undefined) return;
    this.#error = error;
    this.ended.notify(now);
  }
}

interface Timer {
  fn: ((now: Nanos) => void) | undefined;
}

export class TaskRunner implements Timed {
  readonly #timers = new EventQueue<Timer>();
  readonly #deadlineChanged: () => void;
  #size = 0;
  #cancelledTimers = 0;

  /** `deadlineChanged` is called when `nextDeadlineNs` may have become earlier. */
  constructor(deadlineChanged: () => void = () => {}) {
    this.#deadlineChanged = deadlineChanged;
  }

  /** Tasks that have not ended. */
  get size(): number {
    return this.#size;
  }

  /** Timers kept, cancelled ones included. */
  get timerCount(): number {
    return this.#timers.size;
  }

  /** Starts a task, in `scope` if given; `done` hears of its end, maybe before `run` returns. */
  run<T>(
    now: Nanos,
    task: Task<T>,
    done?: (now: Nanos, outcome: Outcome<T>) => void,
    scope?: TaskScope,
  ): void {
    this.#size++;
    const inner = scope === undefined ? task : inScope(scope, task);
    this.#advance(now, inner, undefined, (at, outcome) => {
      this.#size--;
      done?.(at, outcome);
    });
  }

  /** Calls `fn` once at or after `atNs`. Returns a function that cancels it. */
  at(atNs: number, fn: (now: Nanos) => void): () => void {
    const timer: Timer = { fn };
    const earlier = atNs < this.#timers.nextTimeNs;
    this.#timers.push(atNs, timer);
    if (earlier) this.#deadlineChanged();
    return () => {
      if (timer.fn === undefined) return;
      timer.fn = undefined;
      this.#cancelledTimers++;
      this.#dropCancelled();
    };
  }

  nextDeadlineNs(): number {
    return this.#timers.nextTimeNs;
  }

  tick(now: Nanos): void {
    while (this.#timers.nextTimeNs <= now) {
      const timer = this.#timers.pop();
      const fn = timer?.fn;
      if (timer !== undefined) timer.fn = undefined;
      if (fn === undefined) this.#cancelledTimers--;
      else fn(now);
    }
    this.#dropCancelled();
  }

  /** Cancelled timers at the head would wake us for nothing; many of them would only take memory. */
  #dropCancelled(): void {
    while (this.#timers.size > 0 && this.#timers.next?.fn === undefined) {
      this.#timers.pop();
      this.#cancelledTimers--;
    }
    if (this.#cancelledTimers < 64 || this.#cancelledTimers * 2 < this.#timers.size) return;
    const kept: [number, Timer][] = [];
    while (this.#timers.size > 0) {
      const timeNs = this.#timers.nextTimeNs;
      const timer = this.#timers.pop();
      if (timer?.fn !== undefined) kept.push([timeNs, timer]);
    }
    for (const [timeNs, timer] of kept) this.#timers.push(timeNs, timer);
    this.#cancelledTimers = 0;
  }

  /** Steps the generator until it waits or ends. Loops rather than recurses over instant results. */
  #advance<T>(
    startedNs: Nanos,
    task: Task<T>,
    input: unknown,
    end: (now: Nanos, outcome: Outcome<T>) => void,
  ): void {
    let now = startedNs;
    let value = input;
    let failed = false;
    for (;;) {
      let step: IteratorResult<Operation, T>;
      try {
        step = failed ? task.throw(value) : task.next(value);
      } catch (error) {
        end(now, { ok: false, error });
        return;
      }
      if (step.done === true) {
        end(now, { ok: true, value: step.value });
        return;
      }
      failed = false;
      let finished = false;
      let starting = true;
      try {
        step.value.start(now, this, (finishedNs, result) => {
          if (finished) return;
          finished = true;
          if (starting) {
            now = finishedNs;
            value = result;
          } else {
            this.#advance(finishedNs, task, result, end);
          }
        });
      } catch (error) {
        finished = true;
        failed = true;
        value = error;
      }
      starting = false;
      if (!finished) return;
    }
  }
}

/** Runs a task in a scope, wherever it is run itself. */
export function* inScope<T>(scope: TaskScope, task: Task<T>): Task<T> {
  let step = task.next();
  while (step.done !== true) {
    const operation = step.value;
    let result: unknown;
    let failure: unknown = scope.error;
    if (failure === undefined) {
      try {
        result = yield endedBy(scope, operation);
        failure = scope.error;
      } catch (error) {
        failure = error;
      }
    }
    step = failure === undefined ? task.next(result) : task.throw(failure);
  }
  return step.value;
}

/** The operation, given up when the scope ends. */
function endedBy(scope: TaskScope, operation: Operation): Operation {
  return {
    start(now, runner, finish) {
      let giveUp: (() => void) | undefined;
      const forget = scope.ended.listen((at) => {
        forget();
        giveUp?.();
        finish(at, undefined);
      });
      try {
        giveUp = operation.start(now, runner, (at, result) => {
          forget();
          finish(at, result);
        });
      } catch (error) {
        forget();
        throw error;
      }
      // Ended from inside the start: there was nothing to give up yet.
      if (scope.error !== undefined) giveUp?.();
      return () => {
        forget();
        giveUp?.();
      };
    },
  };
}

/** Waits for `durationNs`. Returns the time then. */
export function* sleep(durationNs: number): Task<Nanos> {
  return (yield {
    start(now, runner, finish) {
      return runner.at(now + durationNs, (later) => finish(later, later));
    },
  }) as Nanos;
}

/** The present time. */
export function* currentTime(): Task<Nanos> {
  return (yield {
    start(now, _runner, finish) {
      finish(now, now);
      return undefined;
    },
  }) as Nanos;
}

export interface WaitOptions {
  /** Looks again whenever this is notified. */
  readonly signal?: Signal;
  /** Looks again this often. */
  readonly pollIntervalNs?: number;
  /** Gives up this long from now. */
  readonly withinNs: number;
}

/**
 * Waits until `condition` holds: looks at once, at each signal or poll, and a last time at the
 * deadline. Returns whether it holds.
 */
export function* waitUntil(condition: () => boolean, options: WaitOptions): Task<boolean> {
  return (yield {
    start(now, runner, finish) {
      if (condition()) {
        finish(now, true);
        return undefined;
      }
      const cancels: (() => void)[] = [];
      const end = (at: Nanos, result: boolean): void => {
        for (const cancel of cancels) cancel();
        cancelPoll?.();
        finish(at, result);
      };
      let cancelPoll: (() => void) | undefined;
      const { signal, pollIntervalNs } = options;
      if (signal !== undefined) {
        cancels.push(
          signal.listen((at) => {
            if (condition()) end(at, true);
          }),
        );
      }
      if (pollIntervalNs !== undefined) {
        const poll = (at: Nanos): void => {
          if (condition()) end(at, true);
          else cancelPoll = runner.at(at + pollIntervalNs, poll);
        };
        cancelPoll = runner.at(now + pollIntervalNs, poll);
      }
      cancels.push(runner.at(now + options.withinNs, (at) => end(at, condition())));
      return () => {
        for (const cancel of cancels) cancel();
        cancelPoll?.();
      };
    },
  }) as boolean;
}
