/** A worker thread that runs one unit of a study after another; see `worker-pool.ts`. */
import { workerData } from 'node:worker_threads';
import { runUnit, type StudyConstants, type StudyLists, type StudyUnit } from '#simulator/study';
import { serveJobs } from './job-worker.ts';

/** Sent once to each thread, not with each unit. */
export interface SimulateWorkerData {
  readonly lists: StudyLists;
  readonly constants: StudyConstants;
}

const { lists, constants } = workerData as SimulateWorkerData;

serveJobs((unit: StudyUnit, onStep) => {
  onStep(unit.kind === 'fewest' ? 'looking for the fewest,' : 'running', 0);
  return runUnit(lists, constants, unit);
});
