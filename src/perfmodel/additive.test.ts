import { describe, expect, it } from 'vitest';
import { linkProfile } from '#pcie/link-profile';
import type { Scene } from '#testkit/trace-scene';
import { sceneTimeline } from '#testkit/trace-scene';
import { WORK_FLAG } from '#trace/timeline';
import type { TermOptions } from './terms.ts';
import { copyRates, termsOf, withAddedRtt } from './terms.ts';
import { WorkloadModel } from './workload-model.ts';

/** Native round trip 1000 ns, added 4000 ns, 100 tags of 128 bytes, a network of 400 Gb/s. */
const LINK = linkProfile({
  name: 'round',
  nativeRttNs: 1000,
  addedRttNs: 4000,
  tags: 100,
  networkGbps: 400,
});
const ADDED = 4000;

function causesOf(scene: Scene, options: TermOptions = {}): Record<string, number> {
  const model = new WorkloadModel(sceneTimeline(scene));
  return { ...model.additive(termsOf(LINK, options)).causes };
}

const NONE = { doorbellNs: 0, fetchNs: 0, htodNs: 0, dtohNs: 0, peerNs: 0, waitNs: 0 };
const SUBMISSION = { doorbellNs: ADDED / 2, fetchNs: ADDED };

/** The PCIe link at MPS 128, gen 3 x16: 111.699 Gb/s; completions 128 of 148, writes 128 of 152 bytes. */
const PCIE_GBYTES_PER_S = (126.0308 * (1 - 16 / 144 - 4 / 1538)) / 8;
const WRITE = (PCIE_GBYTES_PER_S * 128) / 152;

describe('terms', () => {
  it('are the rates of the issue, worked by hand', () => {
    const rates = copyRates(termsOf(LINK));
    // Reads: 100 × 128 ÷ 1000 = 12.8 natively, more than the link's 12.076; ÷ 5000 = 2.56 pooled.
    expect(rates.nativeReadGbytesPerS).toBeCloseTo((PCIE_GBYTES_PER_S * 128) / 148, 4);
    expect(rates.pooledReadGbytesPerS).toBeCloseTo(2.56, 12);
    expect(rates.nativeWriteGbytesPerS).toBeCloseTo(WRITE, 4);
    expect(rates.pooledWriteGbytesPerS).toBeCloseTo(WRITE, 4);
  });

  it('share the network, not the link', () => {
    // 50 GB/s × 128 ÷ (128 + 64) ÷ 8 = 4.1667 for each of eight; the reads are slower anyway.
    const rates = copyRates(termsOf(LINK, { sharing: 8 }));
    expect(rates.pooledWriteGbytesPerS).toBeCloseTo(50 / 12, 9);
    expect(rates.pooledReadGbytesPerS).toBeCloseTo(2.56, 12);
    expect(rates.nativeWriteGbytesPerS).toBeCloseTo(WRITE, 4);
    expect(copyRates(termsOf(LINK, { sharing: 16 })).pooledReadGbytesPerS).toBeCloseTo(50 / 24, 9);
  });

  it.each<[TermOptions, string]>([
    [{ fetches: -1 }, 'fetches is -1: must be a whole number from 0'],
    [{ fetches: 0.5 }, 'fetches is 0.5'],
    [{ sharing: 0 }, 'sharing is 0: must be a whole number from 1'],
    [{ sharing: Number.NaN }, 'sharing is NaN'],
  ])('refuse %j', (options, message) => {
    expect(() => termsOf(LINK, options)).toThrow(message);
  });
});

describe('the additive estimate, one kind of event each', () => {
  it('a kernel', () => {
    const scene: Scene = {
      threads: { a: [['cudaLaunchKernel', 0, 1000, 1]] },
      streams: { s: [{ at: 2000, ns: 3000, id: 1 }] },
    };
    expect(causesOf(scene)).toEqual({ ...NONE, ...SUBMISSION });
    expect(causesOf(scene, { fetches: 3 })).toEqual({ ...NONE, ...SUBMISSION, fetchNs: 3 * ADDED });
    expect(causesOf(scene, { fetches: 0 })).toEqual({ ...NONE, doorbellNs: ADDED / 2 });
  });

  it('a memset, a copy within the device, and work without a launch', () => {
    const scene: Scene = {
      threads: { a: [['cudaMemsetAsync', 0, 1000, 1]] },
      streams: {
        s: [
          { kind: 'memset', at: 2000, ns: 1000, id: 1, bytes: 4096 },
          { kind: 'dtod', at: 3000, ns: 1000, bytes: 1_000_000 },
          { at: 4000, ns: 1000, id: 99 },
        ],
      },
    };
    expect(causesOf(scene)).toEqual({ ...NONE, doorbellNs: 1.5 * ADDED, fetchNs: 3 * ADDED });
  });

  it('a graph of a hundred kernels is one submission', () => {
    const kernels = Array.from({ length: 100 }, (_, index) => ({
      at: 2000 + 10 * index,
      ns: 10,
      id: 1,
    }));
    const scene: Scene = {
      threads: { a: [['cudaGraphLaunch', 0, 1000, 1]] },
      streams: { s: kernels },
    };
    expect(causesOf(scene)).toEqual({ ...NONE, ...SUBMISSION });
  });

  it('an HtoD copy', () => {
    const scene = (ns: number): Scene => ({
      threads: { a: [['cudaMemcpyAsync', 0, 1000, 1]] },
      streams: { s: [{ kind: 'htod', at: 2000, ns, id: 1, bytes: 1_280_000 }] },
    });
    // 1,280,000 ÷ 2.56 = 500,000 pooled. Natively the link needs 1,280,000 ÷ 12.0756 = 106,000.
    const native = 1_280_000 / ((PCIE_GBYTES_PER_S * 128) / 148);
    expect(causesOf(scene(200_000))['htodNs']).toBeCloseTo(ADDED + 500_000 - native, -1);
    // From a faster link: not flattered.
    expect(causesOf(scene(50_000))['htodNs']).toBeCloseTo(ADDED + 450_000, 6);
    expect(causesOf(scene(50_000))).toMatchObject({ ...SUBMISSION, dtohNs: 0, waitNs: 0 });
  });

  it('a DtoH copy pays for the network alone, and no round trip', () => {
    const scene: Scene = {
      threads: { a: [['cudaMemcpyAsync', 0, 1000, 1]] },
      streams: {
        s: [{ kind: 'dtoh', at: 2000, ns: 1000, id: 1, bytes: 1_000_000, flags: WORK_FLAG.pinned }],
      },
    };
    expect(causesOf(scene)['dtohNs']).toBeCloseTo(1_000_000 / WRITE - 1000, 0);
    // 4.1667 GB/s each of eight: 240,000.
    expect(causesOf(scene, { sharing: 8 })['dtohNs']).toBeCloseTo(239_000, 6);
    expect(causesOf(scene)).toMatchObject({ ...SUBMISSION, htodNs: 0, waitNs: 0 });
  });

  it('a copy without a size', () => {
    const scene: Scene = {
      threads: { a: [['hipMemcpyAsync', 0, 1000, 1]] },
      streams: { s: [{ kind: 'htod', at: 2000, ns: 1000, id: 1 }] },
    };
    expect(causesOf(scene)).toEqual({ ...NONE, ...SUBMISSION, htodNs: ADDED });
  });

  it.each([
    'cudaDeviceSynchronize',
    'cuCtxSynchronize',
    'hipStreamSynchronize',
    'cudaEventSynchronize',
    'cudaMemcpy',
  ])('%s is a host wait', (name) => {
    const scene: Scene = {
      threads: { a: [[name, 0, 1000, 1]] },
      streams: { s: [{ at: 0, ns: 1 }] },
    };
    expect(causesOf(scene)).toEqual({ ...NONE, ...SUBMISSION, waitNs: ADDED / 2 });
  });

  it.each(['cudaEventQuery', 'cudaStreamQuery', 'cudaStreamWaitEvent', 'cudaMalloc'])(
    '%s is none',
    (name) => {
      const scene: Scene = {
        threads: { a: [[name, 0, 1000, 1]] },
        streams: { s: [{ at: 0, ns: 1 }] },
      };
      expect(causesOf(scene)['waitNs']).toBe(0);
    },
  );

  it('a copy between GPUs, in one box and across boxes', () => {
    const scene: Scene = {
      threads: { a: [['cudaMemcpyPeerAsync', 0, 1000, 1]] },
      streams: { s: [{ kind: 'ptop', at: 2000, ns: 1000, id: 1, bytes: 1_000_000 }] },
    };
    expect(causesOf(scene)['peerNs']).toBe(0);
    const spread = causesOf(scene, { peers: 'spread', sharing: 8 })['peerNs'];
    // 240,000 at a share of the network, 1000 of it recorded, and half a round trip for the way.
    expect(spread).toBeCloseTo(239_000 + ADDED / 2, 6);
  });

  it('has the slope of its pieces', () => {
    const model = new WorkloadModel(
      sceneTimeline({
        threads: { a: [['cudaMemcpy', 0, 5000, 1]] },
        streams: { s: [{ kind: 'htod', at: 2000, ns: 2000, id: 1, bytes: 12_800 }] },
      }),
    );
    // 0.5 + 1 a submission, 1 a copy, 0.5 a wait; and 12,800 bytes ÷ (100 × 128) where tags limit:
    // from a round trip of 12,800 ÷ 12.0756 = 1060 on, which is 60 added.
    const slopeAt = (added: number): number =>
      model.additive(withAddedRtt(termsOf(LINK), added)).slope;
    expect(slopeAt(30)).toBeCloseTo(3, 12);
    expect(slopeAt(100)).toBeCloseTo(4, 12);
  });
});
