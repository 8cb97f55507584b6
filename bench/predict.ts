/**
 * Reading a trace, and the whole prediction from it, against reading its file and one whole `JSON.parse`
 * of it, and the memory that takes. The trace is made up: training, as the PyTorch profiler writes it.
 * Each side is a process of its own; runs of them alternate.
 *
 *     npm run bench -- predict [--output json] [--size 300MB] [--blocks 5] [--file TRACE]
 *
 * `JSON.parse` takes no text beyond half a GB; for larger sizes the baseline is touching each byte once.
 */
import { closeSync, mkdtempSync, openSync, rmSync, statSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import * as path from 'node:path';
import { parseArgs } from 'node:util';
import { syntheticKineto } from '#trace/synthetic-kineto';
import { type Figure, figure, type Pair, printFigures } from './support/figures.ts';
import type { Side, SideResult } from './support/predict-side.ts';
import { sideResult } from './support/side-process.ts';

const SEED = 1;
/** The longest string of V8 on 64-bit machines has 2^29 - 24 characters. */
const MAX_PARSED_BYTES = 2 ** 29 - 24;
const MB = 1e6;
/** What is promised: 200 MB and 64 bytes for each event kept. */
const memoryLimit = (events: number): number => 200 * MB + 64 * events;

const { values: options } = parseArgs({
  options: {
    output: { type: 'string', default: 'text' },
    size: { type: 'string', default: '300MB' },
    blocks: { type: 'string', default: '5' },
    file: { type: 'string' },
  },
});

function note(text: string): void {
  process.stderr.write(`${text}\n`);
}

function bytesOf(size: string): number {
  const match = /^(\d+(?:\.\d+)?)(MB|GB)$/i.exec(size);
  if (match === null) {
    note(`--size ${size}: give it in MB or GB, such as 300MB or 2GB`);
    process.exit(2);
  }
  return Number(match[1]) * (match[2]?.toUpperCase() === 'GB' ? 1e9 : MB);
}

function write(file: string, bytes: number): void {
  const descriptor = openSync(file, 'w');
  try {
    for (const piece of syntheticKineto(bytes, SEED)) writeSync(descriptor, piece);
  } finally {
    closeSync(descriptor);
  }
}

const run = (side: Side, file: string): SideResult =>
  sideResult('predict-side', [side, file], ['--max-old-space-size=8192']);

const seconds = ({ ms, cpuNs, peakRssBytes }: SideResult): string =>
  `${(ms / 1e3).toFixed(2)} s, CPU ${(cpuNs / 1e9).toFixed(2)} s, peak ${(peakRssBytes / MB).toFixed(0)} MB`;

function measure(file: string, blocks: number): Figure[] {
  const bytes = statSync(file).size;
  const canParse = bytes < MAX_PARSED_BYTES;
  const baseline: Side = canParse ? 'parse' : 'read';
  const against = canParse ? 'reading and one JSON.parse' : 'touching each byte';
  const name = `${(bytes / MB).toFixed(0)} MB`;
  const times: Record<'ingest' | 'predict', Pair[]> = { ingest: [], predict: [] };
  const memory: Record<'ingest' | 'predict', Pair[]> = { ingest: [], predict: [] };
  for (let block = 1; block <= blocks; block += 1) {
    const base = run(baseline, file);
    note(`block ${block} of ${blocks}: ${baseline} ${seconds(base)}`);
    for (const side of ['ingest', 'predict'] as const) {
      const result = run(side, file);
      note(`  ${side} ${seconds(result)}, ${result.events} events kept`);
      times[side].push({
        value: result.ms,
        baseline: base.ms,
        cpu: { value: result.cpuNs, baseline: base.cpuNs },
      });
      memory[side].push({
        value: result.peakRssBytes / MB,
        baseline: memoryLimit(result.events) / MB,
      });
    }
  }
  const limit = 'against 200 MB + 64 B an event kept';
  const goal = (text: string): string | undefined => (canParse ? text : undefined);
  return [
    figure(`ingest of ${name} against ${against}`, 'ms', times.ingest, goal('ratio ≤ 1.0')),
    figure(`whole predict against ${against}`, 'ms', times.predict, goal('ratio ≤ 3')),
    figure(`peak memory of ingest ${limit}`, 'MB', memory.ingest, 'ratio ≤ 1.0'),
    figure(`peak memory of predict ${limit}`, 'MB', memory.predict, 'ratio ≤ 1.0'),
  ];
}

const folder = mkdtempSync(path.join(tmpdir(), 'dxpu-bench-'));
try {
  const file = options.file ?? path.join(folder, 'trace.json');
  if (options.file === undefined) {
    note(`writing a trace of ${options.size}`);
    write(file, bytesOf(options.size));
  }
  const figures = measure(file, Math.max(1, Number(options.blocks)));
  printFigures('predict', figures, options.output === 'json');
} finally {
  rmSync(folder, { recursive: true, force: true });
}
