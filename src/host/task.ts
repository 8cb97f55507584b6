/**
 * Tasks: what host software does over time, written as generators that yield operations.
 *
 * A task is a generator. It yields an `Operation` (a config read, a wait) and gets its result back;
 * helpers are called with `yield*`. The `TaskRunner` starts each operation and resumes the task from
 * inside the operation's callback, so a task needs no promise, no event loop and no clock of its
 * own: it runs alike in virtual and in real time, and depends on its inputs alone.
 *
 * A task may belong to a scope (the function in a virtual slot). `cancelScope` ends every wait in
 * it at once: the error is thrown at the task's `yield`, where `finally` blocks can still tidy up.
 * What such a block yields in turn fails at once with the same error.
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

/** Groups tasks that end together. Once `error` is set, every wait in the scope throws it. */
export class TaskScope {
  readonly name: string;
  error: DxpuError | undefined;

  constructor(name: string) {
    this.name = name;
  }
}

/** Something that happens again and again, such as an interrupt. */
export class Signal {
  readonly #listeners = new Set<(now: Nanos) => void>();

  listen(fn: (now: Nanos) => void): () => void {
    this.#listeners.add(fn);
    return () => this.#listeners.delete(fn);
  }

  notify(now: Nanos): void {
    for (const fn of this.#listeners) fn(now);
  }
}

interface Running {
  readonly task: Task<unknown>;
  readonly scope: TaskScope | undefined;
  readonly done: ((now: Nanos, outcome: Outcome<unknown>) => void) | undefined;
  /** Counts waits: a callback of an earlier wait finds another number and does nothing. */
  wait: number;
  giveUp: (() => void) | undefined;
  /** The generator is executing, so it must not be resumed from here. */
  stepping: boolean;
}

interface Timer {
  fn: ((now: Nanos) => void) | undefined;
}

export class TaskRunner implements Timed {
  readonly #timers = new EventQueue<Timer>();
  readonly #running = new Set<Running>();
  readonly #deadlineChanged: () => void;
  #cancelledTimers = 0;

  /** `deadlineChanged` is called when `nextDeadlineNs` may have become earlier. */
  constructor(deadlineChanged: () => void = () => {}) {
    this.#deadlineChanged = deadlineChanged;
  }

  /** Tasks that have not ended. */
  get size(): number {
    return this.#running.size;
  }

  /** Starts a task; `done` hears of its end, maybe before `run` returns. */
  run<T>(
    now: Nanos,
    task: Task<T>,
    done?: (now: Nanos, outcome: Outcome<T>) => void,
    scope?: TaskScope,
  ): void {
    const running: Running = {
      task,
      scope,
      done: done as ((now: Nanos, outcome: Outcome<unknown>) => void) | undefined,
      wait: 0,
      giveUp: undefined,
      stepping: false,
    };
    this.#running.add(running);
    this.#advance(now, running, undefined, false);
  }

  /** Throws `error` into every task of `scope`, and into whatever it waits for from now on. */
  cancelScope(now: Nanos, scope: TaskScope, error: DxpuError): void {
    if (scope.error !== undefined) return;
    scope.error = error;
    for (const running of [...this.#running]) {
      // A task that cancels its own scope is executing: it finds the error at its next wait.
      if (running.scope !== scope || running.stepping || !this.#running.has(running)) continue;
      running.wait++;
      running.giveUp?.();
      this.#advance(now, running, error, true);
    }
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
  #advance(startedNs: Nanos, running: Running, input: unknown, isError: boolean): void {
    let now = startedNs;
    let value = input;
    let failed = isError;
    for (;;) {
      running.giveUp = undefined;
      running.stepping = true;
      let step: IteratorResult<Operation, unknown>;
      try {
        step = failed ? running.task.throw(value) : running.task.next(value);
      } catch (error) {
        this.#end(now, running, { ok: false, error });
        return;
      }
      if (step.done === true) {
        this.#end(now, running, { ok: true, value: step.value });
        return;
      }
      const scopeError = running.scope?.error;
      if (scopeError !== undefined) {
        value = scopeError;
        failed = true;
        continue;
      }
      failed = false;
      const wait = ++running.wait;
      let finished = false;
      let starting = true;
      let giveUp: (() => void) | undefined;
      try {
        giveUp = step.value.start(now, this, (finishedNs, result) => {
          if (running.wait !== wait) return;
          running.wait++;
          if (starting) {
            finished = true;
            now = finishedNs;
            value = result;
          } else {
            this.#advance(finishedNs, running, result, false);
          }
        });
      } catch (error) {
        running.wait++;
        finished = true;
        failed = true;
        value = error;
      }
      starting = false;
      // The start may have made the scope end, while this task could not be thrown into.
      if (running.scope?.error !== undefined) {
        running.wait++;
        if (!finished) giveUp?.();
        finished = true;
        failed = true;
        value = running.scope.error;
      }
      if (!finished) {
        running.giveUp = giveUp;
        running.stepping = false;
        return;
      }
    }
  }

  #end(now: Nanos, running: Running, outcome: Outcome<unknown>): void {
    this.#running.delete(running);
    running.done?.(now, outcome);
  }
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
