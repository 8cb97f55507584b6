import { Worker } from 'node:worker_threads';
import type { DxpuError } from '#base/errors';
import type { Prediction } from '#perfmodel/prediction';
import type { SyntheticName } from '#trace/synthetic';
import { printNote, reportError } from '../output.ts';
import { ownFile } from '../own-file.ts';
import type { FileOptions } from '../answer-targets.ts';
import { checkFiles, writeFiles } from '../predict-files.ts';
import type { PredictJob } from '../predict-job.ts';
import { type LinkOptions, linksOf } from '../trace-links.ts';
import { PredictPrinter } from '../predict-printer.ts';
import type { AnswerFormat } from '../program-options.ts';
import { traceName, traceSources, withTraceName } from '../trace-source.ts';
import { type EndSignal, EXIT_SIGNALS, runWatched, tellsProgress } from '../watched-run.ts';
import type { Outcome, WorkerLike } from '../worker-pool.ts';

export interface PredictCommandOptions extends LinkOptions, FileOptions {
  readonly sharing: number;
  readonly fetches: number;
  readonly peers: 'box' | 'spread';
  /** Percent. */
  readonly budget: number;
  readonly perIteration?: boolean;
  readonly example?: SyntheticName;
  readonly output: AnswerFormat;
  readonly debug?: boolean;
}

/** `startWorker` is for tests. */
export async function predict(
  files: readonly string[],
  options: PredictCommandOptions,
  startWorker: () => WorkerLike = newWorker,
): Promise<void> {
  const jobs = await jobsOf(files, options);
  checkFiles(options, files, jobs.length * (jobs[0]?.links.length ?? 0));
  const run = new PredictRun(jobs, options);
  const signalled = await runWatched<Prediction[]>(jobs, {
    start: startWorker,
    nameOf: (job) => run.nameOf(job),
    isWatched: tellsProgress(options.example !== undefined, options.output),
    onOutcome: (job, outcome) => run.take(job, outcome),
  });
  await run.end(signalled);
}

async function jobsOf(
  files: readonly string[],
  options: PredictCommandOptions,
): Promise<PredictJob[]> {
  const { example, sharing, fetches, peers, budget, perIteration, plot, html } = options;
  const traces = traceSources(files, example);
  const links = await linksOf(options);
  return traces.map((trace) => ({
    trace,
    links,
    options: {
      sharing,
      fetches,
      peers,
      budgetPct: budget,
      perIteration: perIteration === true,
      curve: plot !== undefined || html !== undefined,
    },
  }));
}

/** What has come of the jobs so far, and what is said of it. */
class PredictRun {
  readonly #jobs: readonly PredictJob[];
  readonly #options: PredictCommandOptions;
  readonly #printer: PredictPrinter;
  readonly #predictions: Prediction[] = [];
  readonly #errors: DxpuError[] = [];
  #told = 0;

  constructor(jobs: readonly PredictJob[], options: PredictCommandOptions) {
    this.#jobs = jobs;
    this.#options = options;
    this.#printer = new PredictPrinter(options.output, jobs.length === 1);
  }

  take(job: number, outcome: Outcome<Prediction[]>): void {
    this.#told += 1;
    if ('result' in outcome) {
      this.#predictions.push(...outcome.result);
      this.#printer.add(outcome.result);
      return;
    }
    const error = withTraceName(this.nameOf(job), outcome.error);
    this.#errors.push(error);
    if (this.#jobs.length === 1) return;
    const { output, debug } = this.#options;
    reportError(error, output === 'csv' ? 'table' : output, debug === true);
  }

  /** The rest of what is printed and written. Throws the error of a trace that was the only one. */
  async end(signalled: EndSignal | undefined): Promise<void> {
    const [error] = this.#errors;
    if (error !== undefined && this.#jobs.length === 1) throw error;
    await this.#printer.end();
    const without = this.#jobs.length - this.#told + this.#errors.length;
    if (without > 0 && this.#jobs.length > 1) {
      process.exitCode = 1;
      printNote(`dxpu: ${without} of ${this.#jobs.length} traces have no answer`);
    }
    if (signalled !== undefined) {
      printNote('dxpu: interrupted');
      process.exitCode = EXIT_SIGNALS[signalled];
      return;
    }
    const missing = this.#errors.map(({ message }) => message);
    await writeFiles(this.#options, this.#predictions, missing);
  }

  nameOf(job: number): string {
    const one = this.#jobs[job];
    return one === undefined ? '' : traceName(one.trace);
  }
}

function newWorker(): WorkerLike {
  return new Worker(ownFile('predict-worker.js'));
}
