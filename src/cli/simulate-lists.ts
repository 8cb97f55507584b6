/** The lists of `dxpu simulate`, read and checked. */
import { createHash } from 'node:crypto';
import * as path from 'node:path';
import { DxpuError } from '#base/errors';
import { plainText } from '#report/text-width';
import type { Machine } from '#simulator/demand';
import { EXAMPLE_LISTS } from '#simulator/example-lists';
import { checkJobs, type Job, type JobNeeds, jobsOfPods, readJobs } from '#simulator/job-list';
import { readNodes } from '#simulator/node-list';
import { checkPods, readPods } from '#simulator/pod-list';
import type { InputRow } from '#simulator/result';
import type { StudyLists } from '#simulator/study';
import { workloadOf } from '#simulator/workload';
import { UsageError } from './output.ts';
import { USUAL_OF_JOBS } from './simulate-words.ts';
import { readUnzipped, wholeText } from './whole-file.ts';

export interface ListOptions {
  readonly nodes?: string;
  readonly pods?: string;
  readonly jobs?: string;
  readonly timed?: boolean;
  readonly example?: boolean;
  readonly cpuPerGpu: number;
  readonly memoryPerGpu: number;
  readonly gpusPerTask: number;
}

export interface ReadLists {
  readonly lists: StudyLists;
  readonly inputs: readonly InputRow[];
  /** What the lists hold that can never be placed. */
  readonly warnings: readonly string[];
}

const MIB_PER_GIB = 1024;

const JOB_OPTIONS = {
  cpuPerGpu: '--cpu-per-gpu',
  memoryPerGpu: '--memory-per-gpu',
  gpusPerTask: '--gpus-per-task',
} as const;

/** The files that `readLists` reads. Throws `UsageError` where they do not go together. */
export function listFiles(options: ListOptions): string[] {
  const { nodes, pods, jobs, timed, example } = options;
  const files = [nodes, pods, jobs].flatMap((file) => file ?? []);
  if (jobs === undefined && !(example === true && timed === true)) checkJobOptions(options);
  if (example === true) {
    if (files.length === 0) return [];
    throw new UsageError('--example has lists of its own: leave the files out, or leave it out');
  }
  if (nodes === undefined) {
    throw new UsageError('name the machines with --nodes, or try made-up lists with --example');
  }
  if (pods !== undefined && jobs !== undefined) {
    throw new UsageError('--pods and --jobs exclude each other');
  }
  if (files.length < 2)
    throw new UsageError('name requests with --pods, or timed jobs with --jobs');
  if (timed === true && pods === undefined) {
    throw new UsageError('--timed is for --pods: --jobs have times anyway');
  }
  return files;
}

/** Requests say themselves what they need. */
function checkJobOptions(options: ListOptions): void {
  const names = Object.keys(JOB_OPTIONS) as (keyof typeof JOB_OPTIONS)[];
  const given = names.find((name) => options[name] !== USUAL_OF_JOBS[name]);
  if (given !== undefined) {
    throw new UsageError(
      `${JOB_OPTIONS[given]} is of --jobs: --pods have these figures themselves`,
    );
  }
}

interface Text {
  /** As messages name it. */
  readonly file: string;
  readonly text: string;
  readonly row: (entries: number) => InputRow;
}

export function readLists(options: ListOptions): ReadLists {
  listFiles(options);
  const nodes = textOf('nodes', options);
  const machines = readNodes(nodes.file, nodes.text);
  if (machines.every(({ gpus }) => gpus === 0)) {
    throw new DxpuError('invalid_argument', `${nodes.file}: no machine has a GPU`);
  }
  const inputs = [nodes.row(machines.length)];
  if (options.jobs !== undefined || (options.example === true && options.timed === true)) {
    const { file, text, row } = textOf('jobs', options);
    const jobs = readJobs(file, text, needsOf(options));
    return {
      lists: timedLists(machines, jobs),
      inputs: [...inputs, row(jobs.length)],
      warnings: checkJobs(file, jobs, machines),
    };
  }
  const { file, text, row } = textOf('pods', options);
  const pods = readPods(file, text);
  const warnings = checkPods(file, pods, machines);
  inputs.push(row(pods.length));
  if (options.timed !== true) {
    const workload = workloadOf(pods.map(({ demand }) => demand));
    return { lists: { machines, workload }, inputs, warnings };
  }
  const jobs = jobsOfPods(pods);
  if (jobs.length === 0) {
    throw new DxpuError(
      'invalid_argument',
      `${file}: no request has a creation_time and a deletion_time, which --timed needs`,
    );
  }
  const left = pods.length - jobs.length;
  if (left > 0) warnings.push(`${file}: ${left} requests have no times: left out`);
  return { lists: timedLists(machines, jobs), inputs, warnings };
}

function timedLists(machines: readonly Machine[], jobs: readonly Job[]): StudyLists {
  return { machines, workload: workloadOf(jobs.map(({ demand }) => demand)), jobs };
}

/** What each job of `--jobs` needs beside GPUs, and how large ones are split. */
export function needsOf({ cpuPerGpu, memoryPerGpu, gpusPerTask }: ListOptions): JobNeeds {
  return {
    cpuMilliPerGpu: cpuPerGpu * 1000,
    memoryMibPerGpu: memoryPerGpu * MIB_PER_GIB,
    gpusPerTask,
  };
}

function textOf(role: InputRow['role'], options: ListOptions): Text {
  const synthetic = options.example === true;
  const example = EXAMPLE_LISTS[role];
  const file = synthetic ? example.name : (options[role] ?? '');
  const bytes = synthetic ? Buffer.from(example.text()) : readUnzipped(file);
  const name = plainText(path.basename(file));
  const sha256 = createHash('sha256').update(bytes).digest('hex');
  return {
    file,
    text: wholeText(file, bytes, 'give fewer rows, such as every tenth'),
    row: (entries) => ({ role, name, sha256, entries, synthetic }),
  };
}
