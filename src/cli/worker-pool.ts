/**
 * Jobs over worker threads. Owns the workers: each takes one job at a time and is ended with the pool. A
 * worker that dies takes its job with it and no other; another one takes its place.
 *
 * A worker is sent jobs as they are, and answers with messages: any number of `progress`, then one `done`
 * or `failed`.
 */
import type { Worker } from 'node:worker_threads';
import { DxpuError } from '#base/errors';
import type { ErrorObject } from './output.ts';

export type WorkerMessage<R> =
  | { readonly kind: 'progress'; readonly step: string; readonly share: number }
  | { readonly kind: 'done'; readonly result: R }
  | { readonly kind: 'failed'; readonly error: ErrorObject };

/** What of a `Worker` is used. */
export type WorkerLike = Pick<Worker, 'on' | 'postMessage' | 'terminate'>;

export type Outcome<R> = { readonly result: R } | { readonly error: DxpuError };

export interface PoolOptions<R> {
  readonly workers: number;
  readonly start: () => WorkerLike;
  readonly onProgress?: (job: number, step: string, share: number) => void;
  /** A job has ended; its outcome may have to wait for those before it. */
  readonly onEnd?: (job: number) => void;
  /** In the order of the jobs, each as soon as it and those before it are done. */
  readonly onOutcome: (job: number, outcome: Outcome<R>) => void;
  /** Ends all workers; what is not done is left out. */
  readonly signal?: AbortSignal;
}

/** Resolves when every job has an outcome that was told, or the signal came. */
export async function runJobs<R>(jobs: readonly unknown[], options: PoolOptions<R>): Promise<void> {
  const pool = new Pool<R>(jobs, options);
  await pool.run();
}

class Pool<R> {
  readonly #jobs: readonly unknown[];
  readonly #options: PoolOptions<R>;
  readonly #outcomes = new Map<number, Outcome<R>>();
  #nextJob = 0;
  #nextTold = 0;

  constructor(jobs: readonly unknown[], options: PoolOptions<R>) {
    this.#jobs = jobs;
    this.#options = options;
  }

  async run(): Promise<void> {
    const count = Math.max(1, Math.min(this.#options.workers, this.#jobs.length));
    await Promise.all(Array.from({ length: count }, () => this.#line()));
  }

  #isOver(): boolean {
    return this.#options.signal?.aborted === true || this.#nextJob >= this.#jobs.length;
  }

  /** One worker after another, until no job is left. */
  async #line(): Promise<void> {
    while (!this.#isOver()) await this.#worker();
  }

  /** Resolves when the worker has gone. */
  #worker(): Promise<void> {
    const { start, signal, onProgress } = this.#options;
    return new Promise((resolve) => {
      const worker = start();
      let job = -1;
      const end = (): void => void worker.terminate();
      const next = (): void => {
        if (this.#isOver()) {
          job = -1;
          end();
          return;
        }
        job = this.#nextJob++;
        worker.postMessage(this.#jobs[job]);
      };
      worker.on('message', (message: WorkerMessage<R>) => {
        switch (message.kind) {
          case 'progress':
            onProgress?.(job, message.step, message.share);
            return;
          case 'done':
            this.#tell(job, { result: message.result });
            next();
            return;
          case 'failed': {
            const { code, message: text, details } = message.error;
            this.#tell(job, { error: new DxpuError(code as DxpuError['code'], text, { details }) });
            next();
          }
        }
      });
      let failure: unknown;
      worker.on('error', (error: unknown) => {
        failure = error;
      });
      worker.on('exit', (code: number) => {
        signal?.removeEventListener('abort', end);
        if (job >= 0 && signal?.aborted !== true) {
          this.#tell(job, { error: deathOf(failure, code) });
        }
        resolve();
      });
      signal?.addEventListener('abort', end);
      next();
    });
  }

  #tell(job: number, outcome: Outcome<R>): void {
    this.#outcomes.set(job, outcome);
    this.#options.onEnd?.(job);
    for (;;) {
      const next = this.#outcomes.get(this.#nextTold);
      if (next === undefined) return;
      this.#outcomes.delete(this.#nextTold);
      this.#options.onOutcome(this.#nextTold, next);
      this.#nextTold += 1;
    }
  }
}

/** Why a worker ended in the middle of a job. */
function deathOf(failure: unknown, code: number): DxpuError {
  if ((failure as NodeJS.ErrnoException | undefined)?.code === 'ERR_WORKER_OUT_OF_MEMORY') {
    return new DxpuError('resource_exhausted', 'there was not enough memory for it', {
      cause: failure,
    });
  }
  if (failure !== undefined) return DxpuError.from(failure);
  return new DxpuError('internal', `its worker ended with status ${code}`);
}
