/** The lists of `dxpu simulate`, read and checked. */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import * as path from 'node:path';
import { DxpuError } from '#base/errors';
import { plainText } from '#report/text-width';
import type { Machine } from '#simulator/demand';
import {
  EXAMPLE_JOBS,
  EXAMPLE_NODES,
  EXAMPLE_PODS,
  exampleJobs,
  exampleNodes,
  examplePods,
} from '#simulator/example-lists';
import { type Job, type JobNeeds, jobsOfPods, readJobs } from '#simulator/job-list';
import { readNodes } from '#simulator/node-list';
import { checkPods, readPods } from '#simulator/pod-list';
import type { InputRow } from '#simulator/result';
import type { StudyLists } from '#simulator/study';
import { workloadOf } from '#simulator/workload';
import { fileProblem } from './file-problem.ts';
import { UsageError } from './output.ts';

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

/** The files that `readLists` reads. Throws `UsageError` where they do not go together. */
export function listFiles({ nodes, pods, jobs, timed, example }: ListOptions): string[] {
  const files = [nodes, pods, jobs].flatMap((file) => file ?? []);
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

interface Text {
  /** As messages name it. */
  readonly file: string;
  readonly text: string;
  readonly row: (entries: number) => InputRow;
}

export function readLists(options: ListOptions): ReadLists {
  listFiles(options);
  const isExample = options.example === true;
  const nodes = isExample
    ? madeUp('nodes', EXAMPLE_NODES, exampleNodes())
    : fromFile('nodes', options.nodes ?? '');
  const machines = readNodes(nodes.file, nodes.text);
  if (machines.every(({ gpus }) => gpus === 0)) {
    throw new DxpuError('invalid_argument', `${nodes.file}: no machine has a GPU`);
  }
  const inputs = [nodes.row(machines.length)];
  if (options.jobs !== undefined || (isExample && options.timed === true)) {
    const text = isExample
      ? madeUp('jobs', EXAMPLE_JOBS, exampleJobs())
      : fromFile('jobs', options.jobs ?? '');
    const jobs = readJobs(text.file, text.text, needsOf(options));
    return { ...timedLists(machines, jobs), inputs: [...inputs, text.row(jobs.length)] };
  }
  const text = isExample
    ? madeUp('pods', EXAMPLE_PODS, examplePods())
    : fromFile('pods', options.pods ?? '');
  const pods = readPods(text.file, text.text);
  const warnings = checkPods(text.file, pods, machines);
  const row = text.row(pods.length);
  if (options.timed !== true) {
    const workload = workloadOf(pods.map(({ demand }) => demand));
    return { lists: { machines, workload }, inputs: [...inputs, row], warnings };
  }
  const jobs = jobsOfPods(pods);
  if (jobs.length === 0) {
    throw new DxpuError(
      'invalid_argument',
      `${text.file}: no request has a creation_time and a deletion_time, which --timed needs`,
    );
  }
  const left = pods.length - jobs.length;
  const without = left === 0 ? [] : [`${text.file}: ${left} requests have no times: left out`];
  return {
    lists: timedLists(machines, jobs).lists,
    inputs: [...inputs, row],
    warnings: [...warnings, ...without],
  };
}

function timedLists(machines: readonly Machine[], jobs: readonly Job[]): Omit<ReadLists, 'inputs'> {
  const workload = workloadOf(jobs.map(({ demand }) => demand));
  return { lists: { machines, workload, jobs }, warnings: [] };
}

/** What each job of `--jobs` needs beside GPUs, and how large ones are split. */
export function needsOf({ cpuPerGpu, memoryPerGpu, gpusPerTask }: ListOptions): JobNeeds {
  return {
    cpuMilliPerGpu: cpuPerGpu * 1000,
    memoryMibPerGpu: memoryPerGpu * MIB_PER_GIB,
    gpusPerTask,
  };
}

function fromFile(role: InputRow['role'], file: string): Text {
  let bytes: Buffer;
  try {
    bytes = readFileSync(file);
  } catch (error) {
    throw fileProblem('read', file, error);
  }
  return textOf(role, file, path.basename(file), bytes, false);
}

function madeUp(role: InputRow['role'], name: string, text: string): Text {
  return textOf(role, name, name, Buffer.from(text), true);
}

function textOf(
  role: InputRow['role'],
  file: string,
  name: string,
  bytes: Buffer,
  synthetic: boolean,
): Text {
  const sha256 = createHash('sha256').update(bytes).digest('hex');
  return {
    file,
    text: bytes.toString('utf8'),
    row: (entries) => ({ role, name: plainText(name), sha256, entries, synthetic }),
  };
}
