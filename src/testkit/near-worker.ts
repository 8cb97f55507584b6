/** A worker without a thread: what it does is the same. */
import { EventEmitter } from 'node:events';
import type { OnStep } from '#cli/job-worker';
import { errorObject } from '#cli/output';
import type { WorkerLike } from '#cli/worker-pool';

class NearWorker<J, R> extends EventEmitter {
  readonly #run: (job: J, onStep: OnStep) => Promise<R>;

  constructor(run: (job: J, onStep: OnStep) => Promise<R>) {
    super();
    this.#run = run;
  }

  postMessage(job: J): void {
    void this.#run(job, (step, share) => this.emit('message', { kind: 'progress', step, share }))
      .then(
        (result) => ({ kind: 'done', result }),
        (error: unknown) => ({ kind: 'failed', error: errorObject(error) }),
      )
      .then((message) => this.emit('message', message));
  }

  terminate(): void {
    this.emit('exit', 1);
  }
}

export function nearWorker<J, R>(run: (job: J, onStep: OnStep) => Promise<R>): WorkerLike {
  return new NearWorker(run) as unknown as WorkerLike;
}
