/** A worker thread that predicts one trace after another; see `worker-pool.ts`. */
import { parentPort } from 'node:worker_threads';
import type { Prediction } from '#perfmodel/prediction';
import { errorObject } from './output.ts';
import { type PredictJob, runPredictJob } from './predict-job.ts';
import type { WorkerMessage } from './worker-pool.ts';

/** Shares are told by the percent: more often, nobody looks. */
const STEP = 0.01;

parentPort?.on('message', (job: PredictJob) => {
  void answer(job);
});

async function answer(job: PredictJob): Promise<void> {
  let told = { step: '', share: 0 };
  try {
    const result = await runPredictJob(job, (step, share) => {
      if (step === told.step && share - told.share < STEP) return;
      told = { step, share };
      say({ kind: 'progress', step, share });
    });
    say({ kind: 'done', result });
  } catch (error) {
    say({ kind: 'failed', error: plain(error) });
  }
}

/** Details may hold what no message can. */
function plain(error: unknown): ReturnType<typeof errorObject> {
  const { code, message, details } = errorObject(error);
  return { code, message, details: JSON.parse(JSON.stringify(details)) as typeof details };
}

function say(message: WorkerMessage<Prediction[]>): void {
  parentPort?.postMessage(message);
}
