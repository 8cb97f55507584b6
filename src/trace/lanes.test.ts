import { describe, expect, it } from 'vitest';
import type { Scene } from '#testkit/trace-scene';
import { sceneTimeline } from '#testkit/trace-scene';
import { dependencyGraph } from './dependency-graph.ts';
import { forEachCall, forEachWork, wholeLanes, windowLanes } from './lanes.ts';
import { lagsWithout } from './lags.ts';

const timeline = sceneTimeline({
  threads: {
    a: [
      ['cudaLaunchKernel', 0, 1000, 1],
      ['cudaLaunchKernel', 10_000, 1000, 2],
      ['cudaLaunchKernel', 20_000, 1000, 3],
    ],
    b: [['cudaDeviceSynchronize', 12_000, 30_000, 4]],
  },
  streams: {
    s: [
      { at: 2000, ns: 12_000, id: 1 },
      { at: 14_000, ns: 11_000, id: 2 },
      { at: 25_000, ns: 5000, id: 3 },
    ],
    t: [{ at: 15_000, ns: 1000 }],
  },
});
const whole = wholeLanes(timeline);

function rows(startNs: number, endNs: number): { calls: number[]; work: number[] } {
  const lanes = windowLanes(timeline, whole, startNs, endNs);
  const calls: number[] = [];
  const work: number[] = [];
  forEachCall(lanes, (call) => calls.push(call));
  forEachWork(lanes, (row) => work.push(row));
  return { calls, work };
}

describe('windowLanes', () => {
  it('holds the calls that begin in it and their work, wherever that runs', () => {
    // The second launch and the wait; the work of the first still runs, and is not of the window.
    expect(rows(10_000, 20_000)).toEqual({ calls: [1, 3], work: [1, 3] });
    expect(rows(0, 10_000)).toEqual({ calls: [0], work: [0] });
    expect(rows(40_000, 50_000)).toEqual({ calls: [], work: [] });
  });

  it('knows its own extent', () => {
    expect(windowLanes(timeline, whole, 10_000, 20_000)).toMatchObject({
      startNs: 10_000,
      endNs: 42_000,
      isWhole: false,
    });
    expect(windowLanes(timeline, whole, 40_000, 50_000)).toMatchObject({ startNs: 0, endNs: 0 });
    expect(whole).toMatchObject({ startNs: 0, endNs: 42_000, isWhole: true });
  });
});

describe('dependencyGraph', () => {
  it('of a window takes work from before it as work without a launch', () => {
    const graph = dependencyGraph(timeline, windowLanes(timeline, whole, 10_000, 30_000));
    expect(graph.counts.unlaunched).toBe(1);
    expect(lagsWithout(graph, 0).workNs.every((lag) => lag >= 0)).toBe(true);
  });

  it('cuts circles among events of one time, and counts them', () => {
    // Two pieces of no length on an engine, in the order of their streams: t's, launched first, after
    // s's, which is launched when the host has seen t's done. All at one time.
    const circle = sceneTimeline({
      threads: {
        a: [
          ['cudaMemcpy', 1000, 0, 1],
          ['cudaMemcpy', 1000, 0, 2],
          ['cudaLaunchKernel', 2000, 10, 3],
        ],
      },
      streams: {
        s: [{ kind: 'htod', at: 1000, ns: 0, id: 2 }],
        t: [{ kind: 'htod', at: 1000, ns: 0, id: 1 }],
        u: [{ at: 3000, ns: 10, id: 3 }],
      },
    });
    const graph = dependencyGraph(circle, wholeLanes(circle));
    expect(graph.counts.violations).toBe(1);
    const steps = graph.runs.steps.reduce((sum, count) => sum + count, 0);
    // Three pieces of work, a launch, and two waits of two halves.
    expect(steps).toBe(8);
  });
});

describe('very many streams', () => {
  // Lanes were spread into the arguments of a call, of which there are not so many: a RangeError.
  it('are put in order', () => {
    const count = 150_000;
    const streams: Record<string, Scene['streams'][string]> = {};
    for (let stream = 0; stream < count; stream += 1)
      streams[`s${stream}`] = [{ at: 2000, ns: 1, id: 1 }];
    const many = sceneTimeline({ threads: { a: [['cudaGraphLaunch', 0, 1000, 1]] }, streams });
    const { runs, counts } = dependencyGraph(many, wholeLanes(many));
    expect(runs.count).toBe(count + 1);
    expect(counts.violations).toBe(0);
  });
});
