/** The thread's end of `worker-pool.ts`: takes one job after another. */
import { parentPort } from 'node:worker_threads';
import { errorObject } from './output.ts';
import type { WorkerMessage } from './worker-pool.ts';

/** Shares are told by the percent: more often, nobody looks. */
const STEP = 0.01;

/** Told what is done, and the share of it that is, 0 to 1. */
export type OnStep = (step: string, share: number) => void;

/** Answers every job with what `run` makes of it, or its error. */
export function serveJobs<J, R>(run: (job: J, onStep: OnStep) => R | Promise<R>): void {
  const say = (message: WorkerMessage<R>): void => parentPort?.postMessage(message);
  const answer = async (job: J): Promise<void> => {
    let told = { step: '', share: 0 };
    try {
      const result = await run(job, (step, share) => {
        if (step === told.step && share - told.share < STEP) return;
        told = { step, share };
        say({ kind: 'progress', step, share });
      });
      say({ kind: 'done', result });
    } catch (error) {
      say({ kind: 'failed', error: plain(error) });
    }
  };
  parentPort?.on('message', (job: J) => void answer(job));
}

/** Details may hold what no message can. */
function plain(error: unknown): ReturnType<typeof errorObject> {
  const { code, message, details } = errorObject(error);
  return { code, message, details: JSON.parse(JSON.stringify(details)) as typeof details };
}
