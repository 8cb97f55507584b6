/** Every shared list of nvprof, and the timeline of TensorFlow, counted by splitting and `JSON.parse`. */
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { readTrace } from '#trace/read-trace';
import { hasTraces, traceNames, tracePath, WHERE } from './shared-traces.ts';
import { countsOf } from './trace-figures.ts';
import type { Copies, TraceCounts } from './trace-figures.ts';

const US: Readonly<Record<string, number>> = { s: 1e6, ms: 1e3, us: 1, ns: 1e-3 };
const SHIFT: Readonly<Record<string, number>> = { B: 0, KB: 10, MB: 20, GB: 30 };

/** Columns count from both ends of a line, as names alone hold commas in quotes. */
function splitCounts(path: string): TraceCounts {
  const lines = readFileSync(path, 'utf8')
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('=='));
  const header = lines[0]!.split(',').map((name) => name.replaceAll('"', ''));
  const units = lines[1]!.split(',');
  const rows = lines.slice(2).map((line) => {
    const cells = line.split(',');
    return {
      name: line.slice(line.lastIndexOf(',"') + 2, -1),
      durationUs: Number(cells[header.indexOf('Duration')]) * US[units[1]!]!,
      bytes: Number(cells[header.indexOf('Size')]) * 2 ** (SHIFT[units[11]!] ?? 0),
    };
  });
  const kernels = rows.filter(({ name }) => !name.startsWith('[CUDA'));
  const copies = (kind: string): Copies => {
    const found = rows.filter(({ name }) => name === `[CUDA memcpy ${kind}]`);
    return {
      count: found.length,
      bytes: found.reduce((sum, { bytes }) => sum + Math.round(bytes), 0),
    };
  };
  return {
    kernels: kernels.length,
    kernelsAtMost10us: kernels.filter(({ durationUs }) => durationUs <= 10).length,
    memsets: rows.filter(({ name }) => name === '[CUDA memset]').length,
    graphLaunches: 0,
    submissions: rows.length,
    hostWaits: 0,
    queries: 0,
    htod: copies('HtoD'),
    dtoh: copies('DtoH'),
    dtod: copies('DtoD'),
  };
}

describe.skipIf(!hasTraces)(`counts of nvprof lists (${WHERE})`, () => {
  it.each(traceNames('nvprof'))('%s', async (name) => {
    const path = tracePath('nvprof', name);
    expect(countsOf(await readTrace(path))).toEqual(splitCounts(path));
  });
});

describe.skipIf(!hasTraces)(`timelines of TensorFlow (${WHERE})`, () => {
  it('stream:all, which repeats stream:12, and memcpy are left out', async () => {
    const path = tracePath('tensorflow', 'tf1-timeline-gpu.json');
    const { traceEvents } = JSON.parse(readFileSync(path, 'utf8')) as {
      traceEvents: { ph: string; pid: number; name: string; dur: number; args: { name: string } }[];
    };
    const single = new Set(
      traceEvents
        .filter(({ ph, args }) => ph === 'M' && /stream:\d+ Compute/.test(args.name))
        .map(({ pid }) => pid),
    );
    const work = traceEvents.filter(({ ph, pid }) => ph === 'X' && single.has(pid));
    const timeline = await readTrace(path);
    const kernels = work.filter(({ name }) => !name.startsWith('MEMCPY'));
    expect(countsOf(timeline)).toMatchObject({
      kernels: kernels.length,
      kernelsAtMost10us: kernels.filter(({ dur }) => dur <= 10).length,
      submissions: work.length,
      htod: { count: work.filter(({ name }) => name === 'MEMCPYHtoD').length, bytes: 0 },
      dtoh: { count: work.filter(({ name }) => name === 'MEMCPYDtoH').length, bytes: 0 },
    });
    expect(timeline.streams.map(({ stream }) => stream).toSorted()).toEqual(['12', '13', '14']);
  });
});
