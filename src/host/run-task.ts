/** The outermost edge, where a task becomes a promise. */
import type { Clock } from '#base/clock';
import type { SoftHost } from './root-complex.ts';
import type { Task, TaskScope } from './task.ts';

/**
 * Runs a task on a host and resolves with its result or rejects with its error. The host must be
 * driven by somebody (a `TimerDriver` in real time, the virtual clock's loop in virtual time).
 */
export function runTask<T>(
  host: SoftHost,
  clock: Clock,
  task: Task<T>,
  scope?: TaskScope,
): Promise<T> {
  return new Promise((resolve, reject) => {
    host.tasks.run(
      clock.now(),
      task,
      (_now, outcome) => {
        if (outcome.ok) resolve(outcome.value);
        else reject(outcome.error);
      },
      scope,
    );
  });
}
