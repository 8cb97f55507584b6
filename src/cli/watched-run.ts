/** Jobs on all cores, with progress on stderr, and an end by Ctrl-C: what commands that take long share. */
import * as os from 'node:os';
import { Progress } from './progress.ts';
import { type Outcome, runJobs, type WorkerLike } from './worker-pool.ts';

export interface WatchedRun<R> {
  readonly start: () => WorkerLike;
  /** As progress calls a job. */
  readonly nameOf: (job: number) => string;
  /** Whether progress is told. */
  readonly isWatched: boolean;
  /** In the order of the jobs. `stop` ends the run: what is not done is left out. */
  readonly onOutcome: (job: number, outcome: Outcome<R>, stop: () => void) => void;
}

/** What shells report of a process that a signal ended. */
export const EXIT_SIGNALS = { SIGINT: 130, SIGTERM: 143 } as const;
export type EndSignal = keyof typeof EXIT_SIGNALS;

/** Whether progress is told: an example takes no time, and of what a program reads only on a terminal. */
export function tellsProgress(isExample: boolean, output: string): boolean {
  return !isExample && (process.stderr.isTTY || output === 'table');
}

const PROGRESS_EVERY_MS = 100;
/** Jobs in work that the progress names. */
const MAX_STEPS = 3;

/** Resolves when all is done or stopped, with the signal that stopped it. */
export async function runWatched<R>(
  jobs: readonly unknown[],
  { start, nameOf, isWatched, onOutcome }: WatchedRun<R>,
): Promise<EndSignal | undefined> {
  const progress = isWatched ? new Progress(process.stderr) : undefined;
  const steps = new Map<number, string>();
  let ended = 0;
  const stop = new AbortController();
  let signalled: EndSignal | undefined;
  const onSignal = (signal: NodeJS.Signals): void => {
    signalled ??= signal === 'SIGTERM' ? 'SIGTERM' : 'SIGINT';
    stop.abort();
  };
  const tell = (): void => {
    if (steps.size === 0) return;
    progress?.tell(() => {
      const all = [...steps.values()];
      const more = all.length > MAX_STEPS ? [`${all.length - MAX_STEPS} more`] : [];
      const now = [...all.slice(0, MAX_STEPS), ...more].join(', ');
      return jobs.length === 1 ? now : `${ended} of ${jobs.length} done; ${now}`;
    });
  };
  // To the end: what passes a signal on to us may come after the terminal's own.
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, onSignal);
  const timer = setInterval(tell, PROGRESS_EVERY_MS);
  try {
    await runJobs<R>(jobs, {
      workers: os.availableParallelism(),
      start,
      onProgress: (job, step, share) => {
        const done = share > 0 ? ` ${Math.floor(100 * share)} %` : '';
        steps.set(job, `${step} ${nameOf(job)}${done}`);
      },
      onEnd: (job) => {
        steps.delete(job);
        ended += 1;
      },
      onOutcome: (job, outcome) => {
        progress?.clear();
        onOutcome(job, outcome, () => stop.abort());
      },
      signal: stop.signal,
    });
  } finally {
    clearInterval(timer);
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.removeListener(signal, onSignal);
    progress?.clear();
  }
  return signalled;
}

export interface WholeRun<R> extends Omit<WatchedRun<R>, 'onOutcome'> {
  /** In the order of the jobs, up to the first that fails. */
  readonly onResult: (result: R) => void;
}

export interface WholeEnd {
  readonly failure: Error | undefined;
  readonly signalled: EndSignal | undefined;
}

/** The same of jobs that are one thing together: the first that fails stops the others. */
export async function runWhole<R>(
  jobs: readonly unknown[],
  { onResult, ...run }: WholeRun<R>,
): Promise<WholeEnd> {
  let failure: Error | undefined;
  const signalled = await runWatched<R>(jobs, {
    ...run,
    onOutcome: (_job, outcome, stop) => {
      if (failure !== undefined) return;
      if ('result' in outcome) {
        onResult(outcome.result);
        return;
      }
      failure = outcome.error;
      stop();
    },
  });
  return { failure, signalled };
}
