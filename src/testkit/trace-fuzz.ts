/**
 * Mutated traces of every format against their readers. A finding is an error that is no `DxpuError`
 * naming the file, or a timeline in which something does not hold.
 */
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { DxpuError } from '#base/errors';
import { Prng } from '#base/prng';
import { readTrace } from '#trace/read-trace';
import type { Timeline } from '#trace/timeline';
import { writeNsysFile } from './nsys-file.ts';
import { nsysSample } from './nsys-samples.ts';
import { checkTimeline } from './timeline-check.ts';
import { mutateBytes, mutateTables } from './trace-mutations.ts';
import { kinetoSample, nvprofSample, tensorflowSample } from './trace-samples.ts';

/** Codes that stand for a mistake of ours, not of the file. */
const OURS = new Set(['internal', 'unknown']);

export interface TraceFuzzResult {
  readonly files: number;
  /** Files read, with or without warnings. */
  readonly read: number;
  readonly refused: number;
  /** Files read with at least one warning. */
  readonly warned: number;
}

export interface TraceFuzzOptions {
  /** Where files are written; one at a time, removed afterwards. */
  readonly folder: string;
  /** Before each file, with its seed. */
  readonly onFile?: (seed: number) => void;
  /** What is done with each timeline besides checking it. */
  readonly use?: (timeline: Timeline) => void;
}

/** Seeds `firstSeed` and on, a file each. Throws an error that names the seed when something is found. */
export async function fuzzTraces(
  firstSeed: number,
  count: number,
  { folder, onFile, use }: TraceFuzzOptions,
): Promise<TraceFuzzResult> {
  const samples = new Samples(folder);
  const path = join(folder, 'fuzz.trace');
  let read = 0;
  let warned = 0;
  for (let seed = firstSeed; seed < firstSeed + count; seed += 1) {
    onFile?.(seed);
    try {
      samples.write(path, new Prng(seed));
      const timeline = await readTrace(path).catch((error: unknown) => checkRefusal(error, path));
      if (timeline === undefined) continue;
      checkTimeline(timeline);
      use?.(timeline);
      read += 1;
      if (timeline.warnings.length > 0) warned += 1;
    } catch (error) {
      throw new Error(`seed ${seed}: ${String(error)}`, { cause: error });
    } finally {
      rmSync(path, { force: true });
    }
  }
  return { files: count, read, refused: count - read, warned };
}

function checkRefusal(error: unknown, path: string): undefined {
  if (!(error instanceof DxpuError)) throw error;
  if (OURS.has(error.code)) throw error;
  const { message } = error;
  if (!message.includes(path) || /NaN|undefined|\[object/.test(message)) {
    throw new Error(`a refusal nobody can act on: ${message}`, { cause: error });
  }
  return undefined;
}

class Samples {
  readonly #texts = [kinetoSample(), kinetoSample(), nvprofSample(), tensorflowSample()].map(
    (text) => Buffer.from(text),
  );
  readonly #sqlite: Buffer;

  constructor(folder: string) {
    const path = join(folder, 'sample.sqlite');
    writeNsysFile(path, nsysSample());
    this.#sqlite = readFileSync(path);
    rmSync(path);
  }

  write(path: string, prng: Prng): void {
    const kind = prng.below(10);
    if (kind === 0) {
      const tables = nsysSample();
      mutateTables(prng, tables);
      writeNsysFile(path, tables);
      return;
    }
    if (kind <= 2) {
      writeFileSync(path, mutateBytes(prng, this.#sqlite));
      return;
    }
    const mutated = mutateBytes(prng, prng.pick(this.#texts));
    if (kind > 3) writeFileSync(path, mutated);
    else {
      const packed = gzipSync(mutated, { level: 1 });
      writeFileSync(path, prng.chance(0.5) ? mutateBytes(prng, packed) : packed);
    }
  }
}
