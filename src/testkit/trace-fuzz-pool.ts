/**
 * Mutated traces in worker threads with a small heap. A file that takes all of the heap, or never ends,
 * is a finding like any other.
 */
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import type { TraceFuzzMessage, TraceFuzzTask } from './trace-fuzz-worker.ts';
import type { TraceFuzzResult } from './trace-fuzz.ts';

const HEAP_MB = 256;
/** For one file of some kilobytes; generous, as machines may be busy. */
const STALL_MS = 60_000;

export interface FuzzInWorkersOptions {
  /** The compiled `trace-fuzz-worker`. */
  readonly worker: URL;
  readonly firstSeed: number;
  readonly count: number;
  readonly workers: number;
  /** Files begun so far. */
  readonly onProgress?: (files: number) => void;
}

/** Throws an error that names the seed of the first finding. */
export async function fuzzInWorkers(options: FuzzInWorkersOptions): Promise<TraceFuzzResult> {
  const { firstSeed, count, workers, worker, onProgress } = options;
  const folder = await mkdtemp(join(tmpdir(), 'dxpu-fuzz-'));
  let files = 0;
  const onFile = (): void => {
    files += 1;
    onProgress?.(files);
  };
  try {
    const share = Math.ceil(count / workers);
    const results = await Promise.all(
      Array.from({ length: workers }, async (_, index) => {
        const from = index * share;
        const own = join(folder, String(index));
        await mkdir(own);
        const task = {
          firstSeed: firstSeed + from,
          count: Math.max(0, Math.min(share, count - from)),
          folder: own,
        };
        return runWorker(worker, task, onFile);
      }),
    );
    return results.reduce((sum, one) => ({
      files: sum.files + one.files,
      read: sum.read + one.read,
      refused: sum.refused + one.refused,
      warned: sum.warned + one.warned,
    }));
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function runWorker(
  script: URL,
  task: TraceFuzzTask,
  onFile: () => void,
): Promise<TraceFuzzResult> {
  const worker = new Worker(script, {
    workerData: task,
    // What is built, also where the parent runs sources.
    execArgv: [],
    resourceLimits: { maxOldGenerationSizeMb: HEAP_MB },
  });
  try {
    return await resultOf(worker, task.firstSeed, onFile);
  } finally {
    await worker.terminate();
  }
}

function resultOf(worker: Worker, firstSeed: number, onFile: () => void): Promise<TraceFuzzResult> {
  let seed = firstSeed;
  return new Promise((resolve, reject) => {
    const fail = (what: string, cause?: unknown): void => reject(new Error(what, { cause }));
    const stalled = (): void => fail(`seed ${seed}: not done after ${STALL_MS / 1000} s`);
    let timer = setTimeout(stalled, STALL_MS);
    worker.on('message', (message: TraceFuzzMessage) => {
      if ('result' in message) resolve(message.result);
      else if ('finding' in message) fail(message.finding);
      else {
        clearTimeout(timer);
        timer = setTimeout(stalled, STALL_MS);
        ({ seed } = message);
        onFile();
      }
    });
    worker.on('error', (error) => fail(`seed ${seed}: ${error.message}`, error));
    worker.on('exit', () => {
      clearTimeout(timer);
      fail(`seed ${seed}: the worker ended`);
    });
  });
}
