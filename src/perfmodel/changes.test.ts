import { describe, expect, it } from 'vitest';
import type { Scene, SceneCall } from '#testkit/trace-scene';
import { sceneTimeline } from '#testkit/trace-scene';
import { WORK_FLAG } from '#trace/timeline';
import { asGraphs, withFewerWaits, withPrefetchedCopies } from './changes.ts';
import { WorkloadModel } from './workload-model.ts';

function modelOf(scene: Scene): WorkloadModel {
  return new WorkloadModel(sceneTimeline(scene));
}

/** A launch each 10 µs, correlation ids from 1, of a kernel of the given length each. */
function launches(lengthsNs: readonly number[]): {
  calls: SceneCall[];
  work: { at: number; ns: number; id: number }[];
} {
  return {
    calls: lengthsNs.map(
      (_, index): SceneCall => ['cudaLaunchKernel', 10_000 * index, 5000, index + 1],
    ),
    work: lengthsNs.map((ns, index) => ({ at: 10_000 * index + 6000, ns, id: index + 1 })),
  };
}

describe('asGraphs', () => {
  it('takes runs of four and more short kernels, each run one submission', () => {
    const { calls, work } = launches([1000, 1000, 1000, 1000, 30_000, 1000, 1000, 1000]);
    const spared = asGraphs(modelOf({ threads: { a: calls }, streams: { s: work } }));
    // The first four; the long kernel ends the run; three after it are too few.
    expect(spared.count).toBe(3);
    expect(spared.payers.submissions).toBe(5);
    expect([...(spared.change.freeLaunches ?? [])]).toEqual([0, 1, 1, 1, 0, 0, 0, 0]);
  });

  it('is stopped by a wait, but not by a query', () => {
    const { calls, work } = launches([1000, 1000, 1000, 1000, 1000, 1000]);
    const between = (name: string): number =>
      asGraphs(modelOf({ threads: { a: [...calls, [name, 26_000, 100]] }, streams: { s: work } }))
        .count;
    expect(between('cudaStreamSynchronize')).toBe(0);
    expect(between('cudaEventQuery')).toBe(5);
  });
});

describe('withPrefetchedCopies', () => {
  it('spares copies to the GPU all, copies into pageable memory their wait', () => {
    const model = modelOf({
      threads: {
        a: [
          ['cudaMemcpy', 0, 4000, 1],
          ['cudaMemcpyAsync', 5000, 4000, 2],
          ['cudaMemcpyAsync', 10_000, 4000, 3],
          ['cudaLaunchKernel', 15_000, 1000, 4],
        ],
      },
      streams: {
        s: [
          { kind: 'htod', at: 2000, ns: 1000, id: 1, bytes: 10_000 },
          { kind: 'dtoh', at: 7000, ns: 1000, id: 2, bytes: 10_000, flags: WORK_FLAG.pageable },
          { kind: 'dtoh', at: 12_000, ns: 1000, id: 3, bytes: 10_000, flags: WORK_FLAG.pinned },
          { at: 17_000, ns: 1000, id: 4 },
        ],
      },
    });
    expect(model.payers).toMatchObject({ submissions: 4, hostWaits: 2 });
    const { payers, change, count } = withPrefetchedCopies(model);
    expect(payers.htod).toHaveLength(0);
    expect(payers.dtoh).toHaveLength(2);
    expect(payers).toMatchObject({ submissions: 3, hostWaits: 0 });
    expect(change.isHtodHidden).toBe(true);
    expect(count).toBe(3);
  });
});

describe('withFewerWaits', () => {
  const calls: SceneCall[] = [0, 1, 2, 3, 4, 5].map((step) => [
    'cudaDeviceSynchronize',
    10_000 * step,
    1000,
  ]);

  it('keeps the last of each iteration', () => {
    const spared = withFewerWaits(
      modelOf({
        threads: { a: calls },
        streams: { s: [{ at: 0, ns: 1 }] },
        iterations: [
          ['one', 0, 30_000],
          ['two', 30_000, 60_000],
        ],
      }),
    );
    expect(spared.count).toBe(4);
    expect(spared.payers.hostWaits).toBe(2);
  });

  it('leaves out every second one where none is marked', () => {
    const spared = withFewerWaits(
      modelOf({ threads: { a: calls }, streams: { s: [{ at: 0, ns: 1 }] } }),
    );
    expect(spared.count).toBe(3);
  });
});
