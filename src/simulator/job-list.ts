/** Timed jobs: from a list as Muri publishes it, or from pods that have times. */
import { csvError, readCsv } from './csv.ts';
import { couldHold, type Demand, demandKey, gpusOf, type Machine, WHOLE_GPU } from './demand.ts';
import { requiredField, UniqueNames, wholeGpus, wholeNumber } from './field.ts';
import type { Pod } from './pod-list.ts';

/** Times in milliseconds; `submitMs` counts from whatever the list counts from. */
export interface Job {
  readonly name: string;
  /** What its overhead is looked up by: the model it trains, or ''. */
  readonly workClass: string;
  readonly submitMs: number;
  /** Without any overhead. */
  readonly durationMs: number;
  /** So many equal ones, that start and end together: several where one machine could not hold all. */
  readonly tasks: number;
  /** Of each task. Equal demands of a list are one object. */
  readonly demand: Demand;
  /** In its list, where it asks for GPUs; of a job made of a request not. */
  readonly at?: { readonly line: number; readonly column: number };
}

const REQUIRED = ['job_id', 'num_gpu', 'submit_time', 'duration'] as const;
const OPTIONAL = [
  'iterations',
  'model_name',
  'batch_size',
  'interval',
  'iteration_time',
  'resource_time_0',
  'resource_time_1',
  'resource_time_2',
  'priority',
] as const;

/** What the list does not say. */
export interface JobNeeds {
  readonly cpuMilliPerGpu: number;
  readonly memoryMibPerGpu: number;
  /** A job of more GPUs becomes as few equal tasks as can be, none of more. */
  readonly gpusPerTask: number;
}

/**
 * Reads `text`, the content of `file`: times in milliseconds. Throws `invalid_argument` with file, line
 * and column for a file that is not such a list, a job used twice, a count that is no whole number, a
 * job of no GPU, or one whose GPUs make no equal tasks.
 */
export function readJobs(file: string, text: string, needs: JobNeeds): Job[] {
  const names = new UniqueNames(file, 'job_id');
  const demands = new Map<number, Demand>();
  return readCsv(file, text, { required: REQUIRED, optional: OPTIONAL }).map((row) => {
    const field = (column: (typeof REQUIRED)[number]) => requiredField(row, column);
    const name = names.take(field('job_id'));
    const gpus = wholeGpus(file, 'num_gpu', field('num_gpu'));
    if (gpus === 0) throw csvError(file, field('num_gpu'), 'a job of no GPU');
    const tasks = Math.ceil(gpus / needs.gpusPerTask);
    if (gpus % tasks !== 0) {
      const what = `${gpus} GPUs make no ${tasks} equal tasks of at most ${needs.gpusPerTask}`;
      throw csvError(file, field('num_gpu'), what);
    }
    const demand = demands.get(gpus / tasks) ?? demandOf(gpus / tasks, needs);
    demands.set(gpus / tasks, demand);
    return {
      name,
      workClass: row.field('model_name')?.text ?? '',
      submitMs: wholeNumber(file, 'submit_time', field('submit_time'), 'milliseconds'),
      durationMs: wholeNumber(file, 'duration', field('duration'), 'milliseconds'),
      tasks,
      demand,
      at: { line: field('num_gpu').line, column: field('num_gpu').column },
    };
  });
}

/**
 * Holds jobs against machines: a message with file, line and column for every job that no machine could
 * hold a task of, or that asks for more GPUs than there are.
 */
export function checkJobs(
  file: string,
  jobs: readonly Job[],
  machines: readonly Machine[],
): string[] {
  const all = gpusOf(machines);
  const held = new Map<Demand, boolean>();
  return jobs.flatMap(({ name, tasks, demand, at = { line: 1, column: 1 } }) => {
    const fits = held.get(demand) ?? machines.some((machine) => couldHold(machine, demand));
    held.set(demand, fits);
    const place = `${file}:${at.line}:${at.column}: job ${name}`;
    if (!fits) {
      const task = tasks === 1 ? '' : `a task of ${demand.gpus} GPUs `;
      return [`${place}: ${task}fits no machine, even an empty one`];
    }
    const gpus = tasks * demand.gpus;
    return gpus > all ? [`${place}: ${gpus} GPUs, and all machines have ${all}`] : [];
  });
}

function demandOf(gpus: number, { cpuMilliPerGpu, memoryMibPerGpu }: JobNeeds): Demand {
  return {
    cpuMilli: cpuMilliPerGpu * gpus,
    memoryMib: memoryMibPerGpu * gpus,
    gpus,
    gpuMilli: WHOLE_GPU,
    models: [],
  };
}

/** Pods that were created and deleted, as jobs of that length; others are left out. */
export function jobsOfPods(pods: readonly Pod[]): Job[] {
  const demands = new Map<string, Demand>();
  return pods.flatMap(({ name, demand, createdS, deletedS }) => {
    if (createdS === undefined || deletedS === undefined) return [];
    const key = demandKey(demand);
    const shared = demands.get(key) ?? demand;
    demands.set(key, shared);
    const durationMs = (deletedS - createdS) * 1000;
    return [
      { name, workClass: '', submitMs: createdS * 1000, durationMs, tasks: 1, demand: shared },
    ];
  });
}
