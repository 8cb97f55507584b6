/** A worker thread that emulates one thing after another; see `worker-pool.ts`. */
import { runEmulateJob } from './emulate-job.ts';
import { serveJobs } from './job-worker.ts';

serveJobs(runEmulateJob);
