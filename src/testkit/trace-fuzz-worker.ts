/** A worker thread of `fuzzInWorkers`: tells each seed before its file is read, then the result. */
import { parentPort, workerData } from 'node:worker_threads';
import { checkPredictions } from './prediction-check.ts';
import { fuzzTraces } from './trace-fuzz.ts';
import type { TraceFuzzResult } from './trace-fuzz.ts';

export interface TraceFuzzTask {
  readonly firstSeed: number;
  readonly count: number;
  readonly folder: string;
}

export type TraceFuzzMessage =
  | { readonly seed: number }
  | { readonly result: TraceFuzzResult }
  | { readonly finding: string };

const { firstSeed, count, folder } = workerData as TraceFuzzTask;
const tell = (message: TraceFuzzMessage): void => parentPort?.postMessage(message);
try {
  const onFile = (seed: number): void => tell({ seed });
  const options = { folder, onFile, use: checkPredictions };
  tell({ result: await fuzzTraces(firstSeed, count, options) });
} catch (error) {
  tell({ finding: error instanceof Error ? `${error.message}\n${stackOf(error)}` : String(error) });
}

function stackOf(error: Error): string {
  return error.cause instanceof Error ? (error.cause.stack ?? '') : '';
}
