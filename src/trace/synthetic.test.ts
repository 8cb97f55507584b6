import { describe, expect, it } from 'vitest';
import { pieces } from '#testkit/pieces';
import { readKineto } from './kineto.ts';
import {
  isSyntheticName,
  SYNTHETIC_NAMES,
  type SyntheticName,
  syntheticAbout,
  syntheticTrace,
} from './synthetic.ts';
import { syntheticKineto } from './synthetic-kineto.ts';
import { hostWaits, WORK_KIND } from './timeline.ts';

describe('syntheticTrace', () => {
  it.each(SYNTHETIC_NAMES)('%s is the same for a seed, and sound', (name) => {
    const timeline = syntheticTrace(name, 7);
    expect(timeline).toEqual(syntheticTrace(name, 7));
    expect(timeline.work.startNs).not.toEqual(syntheticTrace(name, 8).work.startNs);
    expect([timeline.format, timeline.warnings]).toEqual(['synthetic', []]);
    expect(isSyntheticName(name) && syntheticAbout(name)).toMatch(/\w/);
    const { calls, work } = timeline;
    for (let row = 0; row < work.count; row += 1) {
      const call = work.call[row]!;
      expect(call).toBeGreaterThanOrEqual(0);
      // No work before its launch, and none while other work of its stream runs.
      expect(work.startNs[row]!).toBeGreaterThan(calls.startNs[call]!);
      if (row > 0 && work.stream[row] === work.stream[row - 1]) {
        const before = work.startNs[row - 1]! + work.durationNs[row - 1]!;
        expect(work.startNs[row]!).toBeGreaterThanOrEqual(before);
      }
    }
  });

  /** Host waits, graph launches and bytes copied each way, by the loops that make them. */
  it.each<[SyntheticName, number, number, number, number, number]>([
    // 4 steps: one DtoH of 4 bytes and one synchronise each; 38,535,168 + 2048 bytes up.
    ['training', 4, 8, 0, 4 * 38_537_216, 4 * 4],
    // 24 requests: 16 KiB up; 4000 bytes back and a synchronise.
    ['inference', 24, 48, 0, 24 * 16_384, 24 * 4000],
    // 32 tokens: one graph each; a pinned copy back does not wait, the synchronise does.
    ['graph-decode', 32, 32, 32 * 320, 32 * 4096, 32 * 512],
    // 16 batches of two blocking copies.
    ['copy-loader', 16, 32, 0, 16 * 48e6, 16 * 12e6],
  ])('%s has what it says', (name, iterations, waits, graphKernels, up, down) => {
    const timeline = syntheticTrace(name, 1);
    const { work } = timeline;
    const bytes = (kind: number): number =>
      work.bytes.reduce((sum, size, row) => sum + (work.kind[row] === kind ? size : 0), 0);
    expect(timeline.iterations.length).toBe(iterations);
    expect(hostWaits(timeline).reduce((sum, wait) => sum + wait, 0)).toBe(waits);
    expect(work.flags.filter((flags) => (flags & 4) !== 0).length).toBe(graphKernels);
    expect([bytes(WORK_KIND.htod), bytes(WORK_KIND.dtoh)]).toEqual([up, down]);
  });
});

describe('syntheticKineto', () => {
  it('writes a trace of the wanted size, in pieces, the same for a seed', async () => {
    const text = [...syntheticKineto(2e6, 3)].join('');
    expect(text).toBe([...syntheticKineto(2e6, 3)].join(''));
    expect(text.length).toBeGreaterThan(2e6);
    expect(text.length).toBeLessThan(2.4e6);
    const { traceEvents } = JSON.parse(text) as {
      readonly traceEvents: readonly { readonly cat?: string; readonly ph: string }[];
    };
    const count = (cat: string): number => traceEvents.filter((event) => event.cat === cat).length;
    const timeline = await readKineto(pieces(text, 100_000), { file: 'x' });
    expect(timeline.warnings).toEqual([]);
    expect(timeline.calls.count).toBe(count('cuda_runtime'));
    expect(timeline.work.count).toBe(count('kernel') + count('gpu_memcpy') + count('gpu_memset'));
    expect(timeline.iterations.length).toBe(count('user_annotation'));
  });

  it('says the same as the timeline made directly', async () => {
    // One step is the smallest file; the first step of the timeline has the same random numbers.
    const read = await readKineto(pieces([...syntheticKineto(1, 5)].join('')), { file: 'x' });
    const direct = syntheticTrace('training', 5);
    const firstEnd = direct.iterations[0]!.endNs;
    const inFirst = (_: number, call: number): boolean => direct.calls.startNs[call]! < firstEnd;
    expect(read.calls.startNs).toEqual(direct.calls.startNs.filter(inFirst));
    expect(read.calls.durationNs).toEqual(direct.calls.durationNs.filter(inFirst));
  });
});
