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
 */
import type { Nanos } from '#base/units';
import { DxpuError } from '#base/errors';
import { EventQueue } from '#base/event-queue';
import type { Clock, Timed } from '#base/clock';

/** Something a task can wait for. Started once; calls back at most once, maybe before `start` returns. */
export interface Operation {
  /** Begins. `finish` hands the result to the task. Returns how to give up, if that needs doing. */
  start(now: Nanos, runner: TaskRunner, finish: Finish): (() => void) | undefined;
}

export type Finish = (now: Nanos, result: unknown) => void;

export type Task<T> = Generator<Operation, T, unknown>;

/** How a task ended. */
export type Outcome<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly error: unknown };

/** Groups tasks that end together. Its error, once set, fails every later operation in it. */
export class TaskScope {
  readonly name: string;
  error: DxpuError | undefined;

  constructor(name: string) {
    this.name = name;
  }
}

export class TaskRunner implements Timed {
  run<T>(
    _now: Nanos,
    _task: Task<T>,
    _done?: (now: Nanos, outcome: Outcome<T>) => void,
    _scope?: TaskScope,
  ): void {
    throw new Error('to be written');
  }
  cancelScope(_now: Nanos, _scope: TaskScope, _error: DxpuError): void {
    throw new Error('to be written');
  }
  nextDeadlineNs(): number {
    throw new Error('to be written');
  }
  tick(_now: Nanos): void {
    throw new Error('to be written');
  }
}
