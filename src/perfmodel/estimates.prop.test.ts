import { describe, expect, it } from 'vitest';
import { linkProfile } from '#pcie/link-profile';
import { fc } from '#testkit/properties';
import { EDGE } from '#trace/edge-list';
import { lagsWithout } from '#trace/lags';
import { TimelineBuilder } from '#trace/timeline-builder';
import type { Timeline } from '#trace/timeline';
import { WORK_KIND } from '#trace/timeline';
import { criticalPath } from './critical-path.ts';
import type { TermOptions } from './terms.ts';
import { termsOf, withAddedRtt } from './terms.ts';
import { WorkloadModel } from './workload-model.ts';

const CALLS = [
  'cudaLaunchKernel',
  'cudaGraphLaunch',
  'cudaMemcpy',
  'cudaMemcpyAsync',
  'cudaMemsetAsync',
  'cudaStreamSynchronize',
  'cudaDeviceSynchronize',
  'cudaEventSynchronize',
  'cudaStreamWaitEvent',
  'cudaEventRecord',
  'cudaEventQuery',
  'cudaMalloc',
] as const;
const SYNCS: readonly string[] = [
  'cudaStreamSynchronize',
  'cudaEventSynchronize',
  'cudaStreamWaitEvent',
];

/** Coarse times, so that many are equal; work may start before its launch, overlap, or have none. */
const time = fc.integer({ min: 0, max: 30 }).map((step) => step * 5000);
const call = fc.record({
  name: fc.constantFrom(...CALLS),
  thread: fc.integer({ min: 0, max: 2 }),
  at: time,
  ns: fc.integer({ min: 0, max: 4 }).map((step) => step * 5000),
  /** Work it launches: where and how long after its start. */
  work: fc.array(
    fc.record({
      stream: fc.integer({ min: 0, max: 2 }),
      after: fc.integer({ min: -1, max: 6 }).map((step) => step * 5000),
      ns: fc.integer({ min: 0, max: 6 }).map((step) => step * 2500),
      bytes: fc.constantFrom(0, 1000, 40_000, 2_000_000),
    }),
    { maxLength: 2 },
  ),
  toldStream: fc.integer({ min: -1, max: 2 }),
  toldRecord: fc.integer({ min: 0, max: 12 }),
});
const KINDS = Object.values(WORK_KIND);

const timelines = fc
  .record({
    calls: fc.array(call, { minLength: 1, maxLength: 14 }),
    kinds: fc.infiniteStream(fc.constantFrom(...KINDS)),
    flags: fc.infiniteStream(fc.integer({ min: 0, max: 2 })),
    unlaunched: fc.array(fc.tuple(fc.integer({ min: 0, max: 3 }), time), { maxLength: 3 }),
  })
  .map(({ calls, kinds, flags, unlaunched }): Timeline => {
    const builder = new TimelineBuilder('synthetic');
    const streams = [0, 1, 2, 3].map((stream) => builder.stream(stream === 3 ? 1 : 0, `${stream}`));
    for (const [index, { name, thread, at, ns, work, toldStream, toldRecord }] of calls.entries()) {
      const id = index + 1;
      builder.addCall(builder.thread('1', `${thread}`), builder.name(name), at, ns, id);
      for (const piece of work) {
        const kind = kinds.next().value ?? WORK_KIND.kernel;
        const flag = flags.next().value ?? 0;
        const startNs = Math.max(0, at + piece.after);
        const stream = streams[piece.stream] ?? 0;
        builder.addWork(stream, kind, builder.name('k'), startNs, piece.ns, id, piece.bytes, flag);
      }
      if (!SYNCS.includes(name)) continue;
      const stream = toldStream < 0 ? -1 : (streams[toldStream] ?? -1);
      builder.addSync({ correlation: id, stream, recordCorrelation: toldRecord });
    }
    for (const [stream, at] of unlaunched) {
      const where = streams[stream] ?? 0;
      builder.addWork(where, WORK_KIND.kernel, builder.name('k'), at, 5000, 0, 0, 0);
    }
    return builder.finish();
  });

const OPTIONS: TermOptions = { peers: 'spread' };
const TERMS = termsOf(linkProfile({ networkGbps: 50 }), OPTIONS);
const addedRtt = fc.oneof(
  fc.integer({ min: 0, max: 50_000 }),
  fc.integer({ min: 0, max: 10_000_000 }),
);
/** Sums of some dozens of figures of up to 1e9 in doubles. */
const NEAR = 1e-3;

describe('on any timeline', () => {
  it('the native replay is what was recorded; no figure is NaN', () => {
    fc.assert(
      fc.property(timelines, (timeline) => {
        const model = new WorkloadModel(timeline);
        if (model.replay === null) return;
        for (const bits of [0, EDGE.inferred, EDGE.sync, EDGE.inferred | EDGE.sync]) {
          model.replay.replay.lags = lagsWithout(model.replay.graph, bits);
          expect(model.replay.replay.run(null)).toBeCloseTo(timeline.spanNs, 3);
        }
      }),
      { numRuns: 150 },
    );
  });

  it('both spans rise, are convex, and the replay never adds more than the additive estimate', () => {
    fc.assert(
      fc.property(timelines, fc.tuple(addedRtt, addedRtt), fc.boolean(), (timeline, pair, all) => {
        const model = new WorkloadModel(timeline);
        const [low = 0, high = 0] = [...pair].toSorted((a, b) => a - b);
        const middle = (low + high) / 2;
        const additive = [low, middle, high].map(
          (added) => model.additive(withAddedRtt(TERMS, added)).addedNs,
        );
        expectConvex(additive);
        const { replay } = model;
        if (replay === null) return;
        if (!all) replay.replay.lags = lagsWithout(replay.graph, EDGE.inferred);
        const spans = [low, middle, high].map((added) =>
          replay.replay.run(withAddedRtt(TERMS, added)),
        );
        expectConvex(spans);
        for (const [index, span] of spans.entries()) {
          const added = span - replay.nativeSpanNs;
          expect(added).toBeGreaterThanOrEqual(-NEAR);
          expect(added).toBeLessThanOrEqual((additive[index] ?? 0) + NEAR);
        }
      }),
      { numRuns: 200 },
    );
  });

  it('the critical path gives a tangent, and causes of at least what was added', () => {
    fc.assert(
      fc.property(timelines, addedRtt, addedRtt, (timeline, here, there) => {
        const { replay } = new WorkloadModel(timeline);
        if (replay === null) return;
        const span = replay.replay.run(withAddedRtt(TERMS, here));
        const path = criticalPath(replay.replay);
        const causes = Object.values(path.causes).reduce((sum, ns) => sum + ns, 0);
        expect(causes).toBeGreaterThanOrEqual(span - replay.nativeSpanNs - NEAR);
        expect(path.unexplainedNs).toBeLessThanOrEqual(span + NEAR);
        const other = replay.replay.run(withAddedRtt(TERMS, there));
        expect(other).toBeGreaterThanOrEqual(span + path.slope * (there - here) - NEAR);
      }),
      { numRuns: 200 },
    );
  });
});

function expectConvex([low = 0, middle = 0, high = 0]: readonly number[]): void {
  for (const value of [low, middle, high]) expect(Number.isFinite(value)).toBe(true);
  expect(middle).toBeGreaterThanOrEqual(low - NEAR);
  expect(high).toBeGreaterThanOrEqual(middle - NEAR);
  expect(2 * middle).toBeLessThanOrEqual(low + high + NEAR);
}
