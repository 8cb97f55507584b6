import { describe, expect, it } from 'vitest';
import type { Scene } from '#testkit/trace-scene';
import { sceneTimeline } from '#testkit/trace-scene';
import { EDGE } from '#trace/edge-list';
import { lagsWithout } from '#trace/lags';
import { WORK_FLAG } from '#trace/timeline';
import { criticalPath } from './critical-path.ts';
import type { ReplayModel } from './workload-model.ts';
import { WorkloadModel } from './workload-model.ts';
import type { Terms } from './terms.ts';

/**
 * Round figures: 1000 ns added to a native 1000 ns. A submission pays 500 (doorbell) + 1000 (fetch),
 * a wait 500. HtoD carries 10 bytes a ns natively and 5 pooled (10,000 bytes a round trip), and pays
 * 1000 a copy; DtoH carries 10 natively and 5 pooled.
 */
const TERMS: Terms = {
  nativeRttNs: 1000,
  addedRttNs: 1000,
  fetches: 1,
  htod: { nsPerByte: 0.1, nsPerBytePerRttNs: 1e-4, nativeNsPerByte: 0.1, rtts: 1 },
  dtoh: { nsPerByte: 0.2, nsPerBytePerRttNs: 0, nativeNsPerByte: 0.1, rtts: 0 },
  peer: null,
};

function modelOf(scene: Scene): { model: WorkloadModel; replay: ReplayModel } {
  const model = new WorkloadModel(sceneTimeline(scene));
  const { replay } = model;
  if (replay === null) throw new Error(model.replayReason);
  return { model, replay };
}

/** Native span, pooled span and violations of the replay, and what the additive estimate adds. */
function outcome(scene: Scene): {
  native: number;
  pooled: number;
  additive: number;
  violations: number;
} {
  const { model, replay } = modelOf(scene);
  return {
    native: replay.nativeSpanNs,
    pooled: replay.replay.run(TERMS),
    additive: model.additive(TERMS).addedNs,
    violations: replay.graph.counts.violations,
  };
}

// In each scene work starts 2000 ns after its launch on an idle stream.
describe('schedules drawn by hand', () => {
  it('a deep queue hides the fetches', () => {
    const scene: Scene = {
      threads: {
        a: [
          ['cudaLaunchKernel', 0, 1000, 1],
          ['cudaLaunchKernel', 1000, 1000, 2],
          ['cudaLaunchKernel', 2000, 1000, 3],
        ],
      },
      streams: {
        s: [
          { at: 2000, ns: 10_000, id: 1 },
          { at: 12_000, ns: 10_000, id: 2 },
          { at: 22_000, ns: 10_000, id: 3 },
        ],
      },
    };
    // The first starts at 0 + 2000 + 1500; the others could at 4500 and 5500, but the stream is busy
    // until 13,500 and 23,500.
    expect(outcome(scene)).toEqual({
      native: 32_000,
      pooled: 33_500,
      additive: 3 * 1500,
      violations: 0,
    });
  });

  it('an empty queue exposes them', () => {
    const scene: Scene = {
      threads: {
        a: [
          ['cudaLaunchKernel', 0, 1000, 1],
          ['cudaStreamSynchronize', 1000, 3500, 2],
          ['cudaLaunchKernel', 5000, 1000, 3],
          ['cudaStreamSynchronize', 6000, 3500, 4],
        ],
      },
      streams: {
        s: [
          { at: 2000, ns: 2000, id: 1 },
          { at: 7000, ns: 2000, id: 3 },
        ],
      },
      syncs: [
        { id: 2, stream: 's' },
        { id: 4, stream: 's' },
      ],
    };
    // Kernel 3500 to 5500, the wait ends at 5500 + 500 and 500 of its own: 6500. 500 later the next
    // launch at 7000, kernel 10,500 to 12,500, wait ends at 13,500.
    expect(outcome(scene)).toEqual({
      native: 9500,
      pooled: 13_500,
      additive: 2 * 1500 + 2 * 500,
      violations: 0,
    });
  });

  it('a blocking copy to the GPU', () => {
    const scene: Scene = {
      threads: { a: [['cudaMemcpy', 0, 3500, 1]] },
      streams: { s: [{ kind: 'htod', at: 2000, ns: 1000, id: 1, bytes: 10_000 }] },
    };
    // Starts at 3500, lasts 10,000 ÷ 5 and a round trip: 3000; 500 to the host, 500 of its own.
    expect(outcome(scene)).toEqual({
      native: 3500,
      pooled: 7500,
      additive: 1500 + 1000 + 1000 + 500,
      violations: 0,
    });
  });

  it('an asynchronous copy into pageable memory makes the host wait, into pinned memory it does not', () => {
    const scene = (flags: number): Scene => ({
      threads: {
        a: [
          ['cudaMemcpyAsync', 0, 3500, 1],
          ['cudaLaunchKernel', 100_000, 1000, 2],
        ],
      },
      streams: {
        s: [
          { kind: 'dtoh', at: 2000, ns: 1000, id: 1, bytes: 10_000, flags },
          { at: 102_000, ns: 1000, id: 2 },
        ],
      },
    });
    // The copy: 3500, and 10,000 ÷ 5 long. Waiting: 5500 + 500 + 500 = 6500, 3000 later than recorded.
    // The kernel: 1500 more.
    expect(outcome(scene(WORK_FLAG.pageable)).pooled).toBe(103_000 + 3000 + 1500);
    expect(outcome(scene(WORK_FLAG.pinned)).pooled).toBe(103_000 + 1500);
    expect(outcome(scene(WORK_FLAG.pageable)).additive).toBe(2 * 1500 + 1000 + 500);
    expect(outcome(scene(WORK_FLAG.pinned)).additive).toBe(2 * 1500 + 1000);
  });

  it('a stream waits for an event of another', () => {
    const scene: Scene = {
      threads: {
        a: [
          ['cudaMemcpyAsync', 0, 1000, 1],
          ['cudaEventRecord', 1000, 500, 2],
          ['cudaStreamWaitEvent', 1500, 500, 3],
          ['cudaLaunchKernel', 2000, 1000, 4],
        ],
      },
      streams: {
        s: [{ kind: 'htod', at: 2000, ns: 10_000, id: 1, bytes: 100_000, flags: WORK_FLAG.pinned }],
        t: [{ at: 12_000, ns: 2000, id: 4 }],
      },
      syncs: [{ id: 3, stream: 't', record: 2, recordStream: 's' }],
    };
    // The copy: 3500, and 20,000 + 1000 long. The kernel at once after it: 24,500 to 26,500.
    expect(outcome(scene)).toMatchObject({ native: 14_000, pooled: 26_500, violations: 0 });
  });

  it('an event synchronise waits for what was before the record, not for what came after', () => {
    const scene: Scene = {
      threads: {
        a: [
          ['cudaLaunchKernel', 0, 1000, 1],
          ['cudaEventRecord', 1000, 500, 2],
          ['cudaLaunchKernel', 1500, 1000, 3],
          ['cudaEventSynchronize', 2500, 4000, 4],
        ],
      },
      streams: {
        s: [
          { at: 2000, ns: 4000, id: 1 },
          { at: 6000, ns: 50_000, id: 3 },
        ],
      },
      syncs: [{ id: 4, stream: 's', record: 2 }],
    };
    const { replay } = modelOf(scene);
    expect(replay.replay.run(TERMS)).toBe(57_500);
    // Kernel 3500 to 7500; 500 to the host, 500 of its own.
    expect(replay.replay.times.waitEndNs[0]).toBe(8500);
    expect(replay.graph.counts).toMatchObject({ violations: 0, inferred: 0 });
  });

  it('a graph over two streams is one submission', () => {
    const scene: Scene = {
      threads: { a: [['cudaGraphLaunch', 0, 1000, 1]] },
      streams: {
        s: [
          { at: 2000, ns: 2000, id: 1 },
          { at: 4000, ns: 1000, id: 1 },
        ],
        t: [{ at: 4500, ns: 4000, id: 1 }],
      },
    };
    // All of it 1500 later.
    expect(outcome(scene)).toEqual({ native: 8500, pooled: 10_000, additive: 1500, violations: 0 });
  });

  it('two threads, each with its own stream', () => {
    const scene: Scene = {
      threads: {
        a: [
          ['cudaLaunchKernel', 0, 1000, 1],
          ['cudaStreamSynchronize', 1000, 3500, 2],
        ],
        b: [
          ['cudaLaunchKernel', 500, 1000, 3],
          ['cudaStreamSynchronize', 1500, 7500, 4],
        ],
      },
      streams: {
        s: [{ at: 2000, ns: 2000, id: 1 }],
        t: [{ at: 2500, ns: 6000, id: 3 }],
      },
      syncs: [
        { id: 2, stream: 's' },
        { id: 4, stream: 't' },
      ],
    };
    // Thread b: kernel 4000 to 10,000, its wait ends at 11,000. Thread a is done at 6500.
    expect(outcome(scene)).toEqual({
      native: 9000,
      pooled: 11_000,
      additive: 2 * 1500 + 2 * 500,
      violations: 0,
    });
  });

  it('a wait that ends before the GPU does waits for nothing', () => {
    const scene: Scene = {
      threads: {
        a: [
          ['cudaLaunchKernel', 0, 1000, 1],
          ['cudaStreamSynchronize', 1000, 2000, 2],
          ['cudaLaunchKernel', 60_000, 1000, 3],
        ],
      },
      streams: {
        s: [
          { at: 2000, ns: 28_000, id: 1 },
          { at: 62_000, ns: 1000, id: 3 },
        ],
      },
      syncs: [{ id: 2, stream: 's' }],
    };
    // 27 µs early: no clock is so wrong. The next launch is where it was, its kernel 1500 later.
    expect(outcome(scene)).toMatchObject({ native: 63_000, pooled: 64_500, violations: 1 });
  });

  it('a wait that ends a little before the GPU does keeps that lead', () => {
    const scene: Scene = {
      threads: {
        a: [
          ['cudaLaunchKernel', 0, 1000, 1],
          ['cudaStreamSynchronize', 1000, 28_500, 2],
          ['cudaLaunchKernel', 60_000, 1000, 3],
        ],
      },
      streams: {
        s: [
          { at: 2000, ns: 28_000, id: 1 },
          { at: 62_000, ns: 1000, id: 3 },
        ],
      },
      syncs: [{ id: 2, stream: 's' }],
    };
    // Kernel until 31,500; the wait ends 500 before that, and 500 later for the way: 31,500, which is
    // 2000 more than recorded. The second kernel 1500 more.
    expect(outcome(scene)).toMatchObject({ native: 63_000, pooled: 66_500, violations: 1 });
  });

  it('a driver call inside a runtime call is the same call', () => {
    const scene: Scene = {
      threads: {
        a: [
          ['cudaLaunchKernel', 0, 1000, 1],
          ['cuLaunchKernel', 200, 500, 1],
        ],
      },
      streams: { s: [{ at: 2000, ns: 2000, id: 1 }] },
    };
    expect(outcome(scene)).toEqual({ native: 4000, pooled: 5500, additive: 1500, violations: 0 });
  });

  it('a copy recorded faster, or slower, than the link', () => {
    const scene = (ns: number): Scene => ({
      threads: { a: [['cudaMemcpyAsync', 0, 1000, 1]] },
      streams: { s: [{ kind: 'htod', at: 2000, ns, id: 1, bytes: 10_000 }] },
    });
    // 400 recorded where the link needs 1000: pooled 2000 + 1000. Additive: 2000 − 400, and 1000.
    expect(outcome(scene(400))).toMatchObject({
      native: 2400,
      pooled: 3500 + 3000,
      additive: 1500 + 1000 + 1600,
    });
    // 5000 recorded: its own slowness hides the link's; additive all the same 2000 − 1000, and 1000.
    expect(outcome(scene(5000))).toMatchObject({
      native: 7000,
      pooled: 3500 + 6000,
      additive: 1500 + 1000 + 1000,
    });
  });

  it('work that overlaps on a stream keeps the distance of the starts', () => {
    const scene: Scene = {
      threads: {
        a: [
          ['cudaLaunchKernel', 0, 500, 1],
          ['cudaLaunchKernel', 500, 500, 2],
          ['cudaLaunchKernel', 1000, 500, 3],
        ],
      },
      streams: {
        s: [
          { at: 2000, ns: 8000, id: 1 },
          { at: 5000, ns: 2000, id: 2 },
          { at: 10_000, ns: 1000, id: 3 },
        ],
      },
    };
    const { replay } = modelOf(scene);
    expect(replay.graph.counts.violations).toBe(1);
    expect(replay.replay.run(TERMS)).toBe(12_500);
    // The second 3000 after the first; the third after both, of which the first ends last.
    expect([...replay.replay.times.workStartNs]).toEqual([3500, 6500, 11_500]);
  });

  it('work without a launch starts when its stream lets it', () => {
    const scene: Scene = {
      threads: { a: [['cudaLaunchKernel', 1000, 1000, 1]] },
      streams: {
        s: [
          { at: 0, ns: 5000 },
          { at: 5000, ns: 2000, id: 1 },
        ],
      },
    };
    // The first at its offset from the beginning; the launch of the second is long there.
    expect(outcome(scene)).toEqual({
      native: 7000,
      pooled: 7000,
      additive: 2 * 1500,
      violations: 0,
    });
  });

  it('copies of one direction take turns across streams', () => {
    const copy = { kind: 'htod', bytes: 100_000, ns: 10_000, flags: WORK_FLAG.pinned } as const;
    const scene: Scene = {
      threads: {
        a: [
          ['cudaMemcpyAsync', 0, 500, 1],
          ['cudaMemcpyAsync', 500, 500, 2],
        ],
      },
      streams: { s: [{ ...copy, at: 2000, id: 1 }], t: [{ ...copy, at: 12_000, id: 2 }] },
    };
    // Each 20,000 + 1000 long: 3500 to 24,500 to 45,500.
    expect(outcome(scene)).toMatchObject({ native: 22_000, pooled: 45_500, violations: 0 });
  });

  it('a device synchronise waits for every stream of the device', () => {
    const scene: Scene = {
      threads: {
        a: [
          ['cudaLaunchKernel', 0, 500, 1],
          ['cudaMemcpyAsync', 500, 500, 2],
          ['cudaDeviceSynchronize', 1000, 11_500, 3],
        ],
      },
      streams: {
        s: [{ at: 2000, ns: 10_000, id: 1 }],
        t: [{ kind: 'htod', at: 2500, ns: 5000, id: 2, bytes: 50_000, flags: WORK_FLAG.pinned }],
      },
    };
    // Natively the kernel ends last, at 12,000. Pooled the copy does: 500 + 2000 + 1500 = 4000, and
    // 10,000 + 1000 long: 15,000; 500 for the way, 500 of its own.
    expect(outcome(scene)).toMatchObject({ native: 12_500, pooled: 16_000, violations: 0 });
  });

  it('a query is not a wait', () => {
    const scene: Scene = {
      threads: {
        a: [
          ['cudaLaunchKernel', 0, 1000, 1],
          ['cudaEventQuery', 1000, 9000],
        ],
      },
      streams: { s: [{ at: 2000, ns: 2000, id: 1 }] },
    };
    expect(outcome(scene)).toEqual({
      native: 10_000,
      pooled: 10_000,
      additive: 1500,
      violations: 0,
    });
  });
});

describe('what no record tells', () => {
  it('a stream synchronise waits for the latest completion before its end, with and without', () => {
    const scene: Scene = {
      threads: {
        a: [
          ['cudaLaunchKernel', 0, 1000, 1],
          ['cudaStreamSynchronize', 1000, 3500],
        ],
      },
      streams: { s: [{ at: 2000, ns: 2000, id: 1 }] },
    };
    const { model, replay } = modelOf(scene);
    expect(replay.graph.counts.inferred).toBe(1);
    expect(replay.replay.run(TERMS)).toBe(6500);
    // Without, the call keeps its 3500, and the kernel ends last: 3500 + 2000. Natively 4500.
    expect(model.overheadWithoutInferredPct(replay, TERMS)).toBeCloseTo((100 * 1000) / 4500, 9);
    // The model is as it was.
    expect(replay.replay.run(TERMS)).toBe(6500);
  });

  it('a thread goes on when another, after its part, falls silent', () => {
    const scene: Scene = {
      threads: {
        forward: [
          ['cudaLaunchKernel', 0, 1000, 1],
          ['cudaStreamSynchronize', 1000, 3500, 2],
          ['cudaLaunchKernel', 300_000, 1000, 5],
        ],
        backward: [
          ['cudaLaunchKernel', 100_000, 1000, 3],
          ['cudaStreamSynchronize', 101_000, 3500, 4],
        ],
      },
      streams: {
        s: [
          { at: 2000, ns: 2000, id: 1 },
          { at: 102_000, ns: 2000, id: 3 },
          { at: 302_000, ns: 2000, id: 5 },
        ],
      },
      syncs: [
        { id: 2, stream: 's' },
        { id: 4, stream: 's' },
      ],
    };
    const { replay } = modelOf(scene);
    expect(replay.graph.counts.inferred).toBe(2);
    // Two waits of 2000 more each, and the last kernel 1500: each thread hands its delay over.
    expect(replay.replay.run(TERMS)).toBe(304_000 + 2 * 2000 + 1500);
  });

  it('work late for its launch that starts when another stream is done waited for it', () => {
    const scene: Scene = {
      threads: {
        a: [
          ['cudaMemcpyAsync', 0, 500, 1],
          ['cudaLaunchKernel', 500, 500, 2],
        ],
      },
      streams: {
        s: [
          { kind: 'htod', at: 2000, ns: 100_000, id: 1, bytes: 1_000_000, flags: WORK_FLAG.pinned },
        ],
        t: [{ at: 103_000, ns: 2000, id: 2 }],
      },
    };
    // The copy: 3500, and 200,000 + 1000 long; the kernel 1000 after it, as recorded.
    const { replay } = modelOf(scene);
    expect(replay.graph.counts.inferred).toBe(1);
    expect(replay.replay.run(TERMS)).toBe(3500 + 201_000 + 1000 + 2000);
  });
});

describe('residual', () => {
  const scene: Scene = {
    threads: {
      a: [
        ['cudaLaunchKernel', 0, 1000, 1],
        ['cudaStreamSynchronize', 1000, 3500, 2],
        ['cudaLaunchKernel', 5000, 1000, 3],
        ['cudaStreamSynchronize', 6000, 5500, 4],
      ],
    },
    streams: {
      s: [
        { at: 2000, ns: 2000, id: 1 },
        { at: 9000, ns: 2000, id: 3 },
      ],
    },
    syncs: [
      { id: 2, stream: 's' },
      { id: 4, stream: 's' },
    ],
  };

  it('is what starts and wait ends lie after their latest predecessor', () => {
    const { replay } = modelOf(scene);
    // Latencies 2000 and 4000, their median (the lower of two) 2000: the second starts 2000 late. Each
    // wait ends 500 after its work.
    expect(replay.lags.startsNs).toBe(2000);
    expect(replay.lags.waitEndsNs).toBe(1000);
  });

  it('rises when the synchronisation is left out', () => {
    const { replay } = modelOf(scene);
    const without = lagsWithout(replay.graph, EDGE.sync);
    // The waits then last unexplained: 3500 and 5500.
    expect(without.waitEndsNs).toBe(9000);
    expect(without.startsNs).toBe(2000);
  });
});

describe('critical path', () => {
  it('names the causes and the slope', () => {
    const { replay } = modelOf({
      threads: { a: [['cudaMemcpy', 0, 3500, 1]] },
      streams: { s: [{ kind: 'htod', at: 2000, ns: 1000, id: 1, bytes: 10_000 }] },
    });
    replay.replay.run(TERMS);
    const path = criticalPath(replay.replay);
    expect(path.causes).toEqual({
      doorbellNs: 500,
      fetchNs: 1000,
      htodNs: 2000,
      dtohNs: 0,
      peerNs: 0,
      waitNs: 500,
    });
    // 1.5 for the submission, 1 for the copy and 10,000 ÷ 10,000 for its rate, 0.5 for the wait.
    expect(path.slope).toBeCloseTo(4, 12);
    // The 500 the wait lasts after the copy.
    expect(path.unexplainedNs).toBe(500);
  });

  it('of a deep queue is one submission', () => {
    const { replay } = modelOf({
      threads: {
        a: [
          ['cudaLaunchKernel', 0, 1000, 1],
          ['cudaLaunchKernel', 1000, 1000, 2],
        ],
      },
      streams: {
        s: [
          { at: 2000, ns: 10_000, id: 1 },
          { at: 12_000, ns: 10_000, id: 2 },
        ],
      },
    });
    replay.replay.run(TERMS);
    expect(criticalPath(replay.replay)).toMatchObject({ slope: 1.5, unexplainedNs: 0 });
  });
});
