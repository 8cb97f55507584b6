import { describe, expect, it } from 'vitest';
import { linkProfile, namedLinkProfile } from '#pcie/link-profile';
import type { Scene, SceneCall, SceneWork } from '#testkit/trace-scene';
import { sceneTimeline } from '#testkit/trace-scene';
import { sumOfCauses } from './additive.ts';
import { overheadCurve, predict } from './predict.ts';
import { prediction } from './prediction.ts';
import { WorkloadModel } from './workload-model.ts';

const LINK = linkProfile({});
const ADDED = 5600;

/** `steps` times `kernels` launches of 8 µs, each a kernel of 4 µs, and a wait that ends 3 µs after. */
function loop(steps: number, kernels: number): Scene {
  const calls: SceneCall[] = [];
  const work: SceneWork[] = [];
  const syncs: { id: number; stream: string }[] = [];
  const iterations: [string, number, number][] = [];
  let at = 0;
  let id = 0;
  for (let step = 0; step < steps; step += 1) {
    const from = at;
    for (let kernel = 0; kernel < kernels; kernel += 1) {
      id += 1;
      calls.push(['cudaLaunchKernel', at, 5000, id]);
      work.push({ at: at + 6000, ns: 4000, id });
      at += 8000;
    }
    id += 1;
    calls.push(['cudaStreamSynchronize', at, 5000, id]);
    syncs.push({ id, stream: 's' });
    at += 7000;
    iterations.push([`ProfilerStep#${step}`, from, at]);
  }
  return { threads: { a: calls }, streams: { s: work }, syncs, iterations };
}

/** Of one step of `loop` with five kernels: 47 µs, of which the last gap of 2 µs is not in the span. */
const STEP_NS = 47_000;

describe('predict', () => {
  const timeline = sceneTimeline(loop(10, 5));
  const [answer] = predict(timeline, [LINK], { file: 'loop.json', perIteration: true });
  if (answer === undefined) throw new Error('no answer');

  it('keeps to the schema', () => {
    expect(() => prediction.parse(answer)).not.toThrow();
    expect(prediction.parse(structuredClone(answer))).toEqual(answer);
    expect(JSON.parse(JSON.stringify(answer))).toEqual(answer);
  });

  it('says what the trace holds', () => {
    expect(answer.trace).toMatchObject({
      file: 'loop.json',
      spanNs: 10 * STEP_NS - 2000,
      threads: 1,
      streams: 1,
      hostCalls: 60,
      kernels: 50,
      kernelsAtMost10us: 50,
      graphLaunches: 0,
      submissions: 50,
      hostWaits: 10,
      iterations: 10,
    });
    // 50 kernels of 4 µs between 6 µs and 9 × 47 + 4 × 8 + 10 = 465 µs.
    expect(answer.trace.gpuBusyPct).toBeCloseTo((100 * 200) / 459, 9);
    expect(answer.trace.submissionsPerS).toBeCloseTo(50 / 468e-6, 3);
  });

  it('adds up both estimates', () => {
    const span = 10 * STEP_NS - 2000;
    // 50 submissions of 1.5 and 10 waits of half a round trip.
    expect(answer.additive.addedNs).toBe((75 + 5) * ADDED);
    expect(answer.additive.overheadPct).toBeCloseTo((100 * 80 * ADDED) / span, 9);
    // The launches of a step are 8 µs apart, so its kernels are late once: 1.5, and 0.5 for the wait.
    expect(answer.replay).toMatchObject({ nativeSpanNs: span, violations: 0, selfErrorPct: 0 });
    expect(answer.replay?.addedNs).toBeCloseTo(20 * ADDED, 6);
    expect(answer.replay?.confidence).toBe('high');
    expect(answer.replay?.rangePct[0]).toBe(answer.replay?.rangePct[1]);
  });

  it('names the causes, which sum to what was added', () => {
    expect(sumOfCauses(answer.additive.causes)).toBe(answer.additive.addedNs);
    expect(answer.causes).toEqual(answer.replay?.causes);
    expect(answer.causes.doorbellNs).toBeCloseTo(5 * ADDED, 6);
    expect(answer.causes.fetchNs).toBeCloseTo(10 * ADDED, 6);
    expect(answer.causes.waitNs).toBeCloseTo(5 * ADDED, 6);
  });

  it('solves the budgets', () => {
    const span = 10 * STEP_NS - 2000;
    expect(answer.budgets.map(({ overheadPct }) => overheadPct)).toEqual([1, 5, 10, 20]);
    for (const { overheadPct, additiveMaxRttNs, replayMaxRttNs } of answer.budgets) {
      const allowed = (overheadPct / 100) * span;
      expect(additiveMaxRttNs).toBeCloseTo(1200 + allowed / 80, 3);
      expect(replayMaxRttNs).toBeCloseTo(1200 + allowed / 20, 3);
    }
  });

  it('advises, the best first, each change measured', () => {
    const saved = answer.advice.map(({ savesPct }) => savesPct);
    expect(saved).toEqual(saved.toSorted((a, b) => b - a));
    const of = (change: string) => answer.advice.find((entry) => entry.change === change);
    const span = 10 * STEP_NS - 2000;
    // Half the round trip costs half.
    expect(of('nearer-path')?.replayOverheadPct).toBeCloseTo((100 * 10 * ADDED) / span, 6);
    // One graph a step: the first launch of it pays, whose kernel then ends before the last begins.
    expect(of('graphs')?.text).toContain('40 submissions fewer');
    expect(of('graphs')?.additiveOverheadPct).toBeCloseTo((100 * 20 * ADDED) / span, 6);
    expect(of('graphs')?.replayOverheadPct).toBeCloseTo((100 * 5 * ADDED) / span, 6);
    expect(of('fetch-ahead')?.additiveOverheadPct).toBeCloseTo((100 * 30 * ADDED) / span, 6);
    // There are no copies, so nothing helps them.
    for (const change of ['more-tags', 'larger-reads', 'pinned-copies', 'faster-network']) {
      expect(of(change)).toBeUndefined();
    }
  });

  it('takes the marked iterations together and one by one', () => {
    expect(answer.iterations).toMatchObject({
      label: 'ProfilerStep#0 to ProfilerStep#9',
      startNs: 0,
      endNs: 10 * STEP_NS,
      submissions: 50,
      hostWaits: 10,
    });
    expect(answer.iterations?.replay?.addedNs).toBeCloseTo(20 * ADDED, 6);
    expect(answer.perIteration).toHaveLength(10);
    for (const one of answer.perIteration ?? []) {
      expect(one).toMatchObject({ nativeSpanNs: STEP_NS - 2000, submissions: 5, hostWaits: 1 });
      expect(one.additive.addedNs).toBe(8 * ADDED);
      expect(one.replay?.addedNs).toBeCloseTo(2 * ADDED, 6);
    }
  });

  it('answers for each link, in order, and the same every time', () => {
    const links = [namedLinkProfile('dxpu-4.9us'), namedLinkProfile('native'), LINK];
    const answers = predict(timeline, links, { file: 'loop.json', perIteration: true });
    expect(answers.map(({ link }) => link.name)).toEqual(['dxpu-4.9us', 'native', 'dxpu-6.8us']);
    expect(answers[2]).toEqual(answer);
    expect(answers[1]?.additive.addedNs).toBe(0);
    expect(answers[1]?.replay?.addedNs).toBe(0);
    expect(answers[1]?.link.networkGbps).toBeNull();
  });

  it('adds the budget asked for', () => {
    const [other] = predict(timeline, [LINK], { file: 'x', budgetPct: 30 });
    expect(other?.budgets.map(({ overheadPct }) => overheadPct)).toEqual([1, 5, 10, 20, 30]);
    expect(other?.verdict).toMatchObject({ budgetPct: 30, within: 'yes' });
    expect(answer.verdict.within).toBe('no');
    expect(() => predict(timeline, [LINK], { file: 'x', budgetPct: 0 })).toThrow('budgetPct is 0');
    expect(() => predict(timeline, [LINK], { file: 'x', budgetPct: Number.NaN })).toThrow('NaN');
  });
});

describe('traces that lack something', () => {
  it('without host calls the additive estimate stands alone', () => {
    const [answer] = predict(
      sceneTimeline({
        threads: {},
        streams: {
          s: [
            { at: 0, ns: 100_000 },
            { at: 100_000, ns: 5000 },
          ],
        },
      }),
      [LINK],
      { file: 'gpu-only' },
    );
    expect(prediction.safeParse(answer).success).toBe(true);
    expect(answer?.replay).toBeNull();
    expect(answer?.replayReason).toContain('no host calls');
    expect(answer?.additive.addedNs).toBe(2 * 1.5 * ADDED);
    expect(answer?.causes).toEqual(answer?.additive.causes);
    expect(answer?.budgets[2]).toMatchObject({ replayMaxRttNs: null, replayReason: 'no-replay' });
    expect(answer?.budgets[2]?.additiveMaxRttNs).toBeCloseTo(1200 + 10_500 / 3, 6);
    expect(answer?.verdict.within).toBe('unsure');
  });

  it.each<[string, Scene]>([
    ['nothing at all', { threads: {}, streams: {} }],
    [
      'no span',
      {
        threads: { a: [['cudaLaunchKernel', 0, 0, 1]] },
        streams: { s: [{ at: 0, ns: 0, id: 1 }] },
      },
    ],
    ['no work', { threads: { a: [['cudaDeviceSynchronize', 0, 1000]] }, streams: {} }],
    [
      'nothing joined',
      {
        threads: { a: [['cudaLaunchKernel', 0, 1000, 1]] },
        streams: { s: [{ at: 0, ns: 5000, id: 2 }] },
      },
    ],
  ])('%s: the answer is whole, without NaN', (_, scene) => {
    const [answer] = predict(sceneTimeline(scene), [LINK], { file: 'x' });
    expect(prediction.safeParse(answer).success).toBe(true);
    expect(JSON.stringify(answer)).not.toContain('NaN');
    expect(JSON.parse(JSON.stringify(answer))).toEqual(answer);
    if (answer?.trace.spanNs === 0) {
      expect(answer.additive.overheadPct).toBeNull();
      expect(answer.budgets[0]?.additiveReason).toBe('no-span');
    }
  });

  it('without costs the round trip is unlimited; a trace from a faster link may be beyond a budget at once', () => {
    const free = sceneTimeline({
      threads: { a: [['cudaMalloc', 0, 1000]] },
      streams: {},
    });
    const [one] = predict(free, [LINK], { file: 'x' });
    expect(one?.budgets[0]).toMatchObject({ additiveMaxRttNs: null, additiveReason: 'unlimited' });
    const fast = sceneTimeline({
      threads: { a: [['cudaMemcpy', 0, 20_000, 1]] },
      streams: { s: [{ kind: 'htod', at: 2000, ns: 10_000, id: 1, bytes: 1_000_000 }] },
    });
    // 100 GB/s recorded, 12 GB/s on the link: 83 µs against 10 at no added round trip at all.
    const [other] = predict(fast, [LINK], { file: 'x' });
    expect(other?.budgets[3]).toMatchObject({
      additiveReason: 'unreachable',
      replayReason: 'unreachable',
    });
  });
});

describe('warnings', () => {
  it('count what neither estimate sees', () => {
    const timeline = sceneTimeline({
      threads: {
        a: [
          ['cudaMallocManaged', 0, 1000],
          ['cudaHostGetDevicePointer', 1000, 1000],
          ['cudaStreamCreateWithFlags', 2000, 1000],
          ['cudaFree', 3000, 1000],
          ['cudaLaunchKernel', 4000, 1000, 1],
          ...Array.from(
            { length: 100 },
            (_, index): SceneCall => ['cudaEventQuery', 6000 + index, 1],
          ),
        ],
      },
      streams: {
        s: [
          { at: 5000, ns: 1000, id: 1, name: 'ncclDevKernel_AllReduce_Sum_f32_RING_LL' },
          { kind: 'ptop', at: 6000, ns: 10, bytes: 1 },
          { kind: 'htod', at: 6010, ns: 10 },
          { kind: 'copy', at: 6020, ns: 10 },
        ],
      },
    });
    const [answer] = predict(timeline, [LINK], { file: 'x' });
    const counts = new Map(answer?.warnings.map(({ code, count }) => [code, count]));
    expect(Object.fromEntries(counts)).toMatchObject({
      'managed-memory': 1,
      'zero-copy': 1,
      'mmio-reads': 1,
      'implicit-sync': 2,
      polling: 100,
      collectives: 1,
      'peer-copies': 1,
      'unsized-copies': 1,
      'unknown-copies': 1,
      'no-launch': 3,
      diluted: 1,
    });
  });
});

describe('overheadCurve', () => {
  it('is the same from a timeline and from its model, and 0 at the native round trip', () => {
    const timeline = sceneTimeline(loop(3, 5));
    const rtts = [0, 1200, 4000, 6800];
    const curve = overheadCurve(timeline, LINK, rtts);
    expect(overheadCurve(new WorkloadModel(timeline), LINK, rtts)).toEqual(curve);
    expect(curve.slice(0, 2)).toEqual([
      { rttNs: 0, additiveOverheadPct: 0, replayOverheadPct: 0 },
      { rttNs: 1200, additiveOverheadPct: 0, replayOverheadPct: 0 },
    ]);
    const span = 3 * STEP_NS - 2000;
    expect(curve[3]?.additiveOverheadPct).toBeCloseTo((100 * 24 * ADDED) / span, 9);
    expect(curve[3]?.replayOverheadPct).toBeCloseTo((100 * 6 * ADDED) / span, 9);
  });
});
