/** Every shared Kineto trace with GPU work, counted a second way; and what data/MANIFEST.md says of traces. */
import { describe, expect, it } from 'vitest';
import { readTrace } from '#trace/read-trace';
import type { Timeline } from '#trace/timeline';
import { kinetoCounts } from './kineto-count.ts';
import { hasTraces, traceNames, tracePath, WHERE } from './shared-traces.ts';
import { countsOf } from './trace-figures.ts';

/** Refused, see refusals.test.ts. */
const WITHOUT_WORK = ['cpu-only', 'rank-missing'];

/** Each file is read once. */
const timelines = new Map<string, Promise<Timeline>>();
function read(kind: string, name: string): Promise<Timeline> {
  const path = tracePath(kind, name);
  const known = timelines.get(path);
  if (known !== undefined) return known;
  const reading = readTrace(path);
  timelines.set(path, reading);
  return reading;
}

const shortShare = (timeline: Timeline): number => {
  const { kernels, kernelsAtMost10us } = countsOf(timeline);
  return (100 * kernelsAtMost10us) / kernels;
};
/** Pieces of work of the submission that has most. */
const largestSubmission = ({ work }: Timeline): number => {
  const sizes = new Map<number, number>();
  for (const number of work.submission) sizes.set(number, (sizes.get(number) ?? 0) + 1);
  return Math.max(...sizes.values());
};

describe.skipIf(!hasTraces)(`counts of Kineto traces (${WHERE})`, () => {
  const names = traceNames('kineto').filter(
    (name) => !WITHOUT_WORK.some((other) => name.startsWith(other)),
  );
  it.each(names)('%s', async (name) => {
    expect(countsOf(await read('kineto', name))).toEqual(kinetoCounts(tracePath('kineto', name)));
  });
});

describe.skipIf(!hasTraces)(`figures of the manifest (${WHERE})`, () => {
  // Kernels, and the share of at most 10 µs in whole percent.
  it.each([
    ['kineto', 'resnet-ddp-v100-ns-timestamps.pt.trace.json.gz', 4350, 39],
    ['kineto', 'linear-rtx2080ti.json.gz', 8716, 42],
    ['kineto', 'sam-amg-a100-cuda-graph.json.gz', 2514, 66],
    ['kineto', 'bert-small-h100.json.gz', 60, 97],
    ['kineto', 'vit-h100.json.gz', 154, 75],
    ['kineto', 'recsys-rank0.json.gz', 1154, 36],
    ['kineto', 'recsys-rank1.json.gz', 1104, 38],
    ['nsys', 'power-iteration-t4.sqlite', 3689, 77],
  ])('%s/%s: %d kernels, %d percent short', async (kind, name, kernels, percent) => {
    const timeline = await read(kind, name);
    expect(countsOf(timeline).kernels).toBe(kernels);
    expect(Math.round(shortShare(timeline))).toBe(percent);
  });

  it('megatron: 690 kernels, 4.5 % short', async () => {
    const timeline = await read('kineto', 'megatron-tp8-a100-rank0.json');
    expect(countsOf(timeline).kernels).toBe(690);
    expect(shortShare(timeline)).toBeCloseTo(4.5, 1);
  });

  it('resnet50 of 2021: 62 to 64 % short, 12 HtoD copies of 116 MB', async () => {
    const timeline = await read('kineto', 'resnet50-train-v100-2021.pt.trace.json.gz');
    const { htod } = countsOf(timeline);
    expect(Math.floor(shortShare(timeline))).toBeGreaterThanOrEqual(62);
    expect(Math.floor(shortShare(timeline))).toBeLessThanOrEqual(64);
    expect([htod.count, Math.round(htod.bytes / 1e6)]).toEqual([12, 116]);
  });

  it('recommender: 24 HtoD copies of 4.9 and 63 MB', async () => {
    const copies = await Promise.all(
      [0, 1].map(async (rank) => countsOf(await read('kineto', `recsys-rank${rank}.json.gz`)).htod),
    );
    expect(copies.map(({ count, bytes }) => [count, bytes / 1e6])).toEqual([
      [24, expect.closeTo(4.9, 1)],
      [24, expect.closeTo(63.5, 1)],
    ]);
  });

  it.each([
    ['sam-amg-a100-cuda-graph.json.gz', 554],
    ['sglang-qwen3-8b-decode-graph-mi300x.json.gz', 544],
    ['vllm-decode-graph-mi300x.json.gz', 421],
  ])('%s: one graph launch with %d pieces of work', async (name, size) => {
    const timeline = await read('kineto', name);
    expect([countsOf(timeline).graphLaunches, largestSubmission(timeline)]).toEqual([1, size]);
  });

  it('copies to the host: 199 of 46 MB in sam, 89 of 2.9 MB in power-iteration', async () => {
    const sam = countsOf(await read('kineto', 'sam-amg-a100-cuda-graph.json.gz')).dtoh;
    const power = countsOf(await read('nsys', 'power-iteration-t4.sqlite')).dtoh;
    expect([sam.count, Math.round(sam.bytes / 1e6)]).toEqual([199, 46]);
    expect([power.count, power.bytes / 1e6]).toEqual([89, expect.closeTo(2.9, 1)]);
  });

  it('saxpy: 5 kernels, 10 HtoD copies of 2.6 GB, no call counted twice', async () => {
    const timeline = await read('nsys', 'saxpy-mpi-a100-old-schema.sqlite');
    const { kernels, htod, dtoh } = countsOf(timeline);
    expect([kernels, htod.count, htod.bytes / 1e9]).toEqual([5, 10, expect.closeTo(2.6, 1)]);
    const copyCalls = [...timeline.calls.name].filter((name) =>
      timeline.names[name]!.startsWith('cudaMemcpy'),
    );
    expect(copyCalls).toHaveLength(htod.count + dtoh.count);
  });

  it('nvprof on the GTX 1080 Ti: HtoD at about 0.39 GB/s', async () => {
    const { work } = await read('nvprof', 'cudasdk-vectorAdd-gtx1080ti.csv');
    // 195.3125 KB in 511.803 µs.
    expect(work.bytes[0]! / work.durationNs[0]!).toBeCloseTo((195.3125 * 1024) / 511_803, 6);
    expect(work.bytes[0]! / work.durationNs[0]!).toBeCloseTo(0.39, 2);
  });
});
