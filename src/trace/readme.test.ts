import { readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { readTrace } from './read-trace.ts';
import { hostWaits } from './timeline.ts';

const place = { pid: 1, tid: 1 };
const TRACE = [
  {
    ph: 'X',
    cat: 'cuda_runtime',
    name: 'cudaLaunchKernel',
    ...place,
    ts: 10,
    dur: 4,
    args: { correlation: 1 },
  },
  {
    ph: 'X',
    cat: 'kernel',
    name: 'saxpy',
    pid: 0,
    tid: 7,
    ts: 20,
    dur: 5,
    args: { correlation: 1, stream: 7 },
  },
  {
    ph: 'X',
    cat: 'cuda_runtime',
    name: 'cudaDeviceSynchronize',
    ...place,
    ts: 15,
    dur: 12,
    args: {},
  },
  { ph: 'X', cat: 'kernel', name: 'lost', pid: 0, tid: 7, ts: 30, dur: -1, args: { stream: 7 } },
];

it('the example of README.md runs', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'dxpu-readme-'));
  const file = join(folder, 'trace');
  await writeFile(file, JSON.stringify({ traceEvents: TRACE }));
  const lines: string[] = [];
  const console = { log: (line: string) => lines.push(line) };
  try {
    // README example
    const timeline = await readTrace(file);
    const waits = hostWaits(timeline).filter((flag) => flag === 1).length;
    console.log(`${timeline.submissions} submissions, ${waits} waits, ${timeline.spanNs} ns`);
    for (const { message } of timeline.warnings) console.log(message);
    // end
  } finally {
    await rm(folder, { recursive: true });
  }
  // From 10 µs to the end of the wait at 27 µs.
  expect(lines).toEqual([
    '1 submissions, 1 waits, 17000 ns',
    '1 events of negative duration were dropped',
  ]);
  const readme = readFileSync(new URL('./README.md', import.meta.url), 'utf8');
  const source = readFileSync(new URL('./readme.test.ts', import.meta.url), 'utf8');
  const run = /\/\/ README example\n([\s\S]*?)\n *\/\/ end/.exec(source)?.[1] ?? '';
  for (const line of run.split('\n')) expect(readme).toContain(line.trim());
});
