/** A worker thread that predicts one trace after another; see `worker-pool.ts`. */
import { serveJobs } from './job-worker.ts';
import { runPredictJob } from './predict-job.ts';

serveJobs(runPredictJob);
