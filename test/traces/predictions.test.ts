/**
 * Both estimates over every shared trace: what the native replay reproduces, and the properties that
 * hold at any round trip.
 */
import { describe, expect, it } from 'vitest';
import { linkProfile } from '#pcie/link-profile';
import type { Terms } from '#perfmodel/terms';
import { termsOf, withAddedRtt } from '#perfmodel/terms';
import type { ReplayModel } from '#perfmodel/workload-model';
import { WorkloadModel } from '#perfmodel/workload-model';
import { EDGE } from '#trace/edge-list';
import { lagsWithout } from '#trace/lags';
import { readTrace } from '#trace/read-trace';
import { hasTraces, traceNames, tracePath, WHERE } from './shared-traces.ts';

/** Refused, see refusals.test.ts. */
const WITHOUT_WORK = ['cpu-only', 'rank-missing'];
const ADDED_NS = [0, 500, 2000, 3700, 5600, 10_000, 20_000];
const TERMS = termsOf(linkProfile({}));

const models = new Map<string, Promise<WorkloadModel>>();
function modelOf(path: string): Promise<WorkloadModel> {
  const known = models.get(path);
  if (known !== undefined) return known;
  const reading = readTrace(path).then((timeline) => new WorkloadModel(timeline));
  models.set(path, reading);
  return reading;
}

const traces = ['kineto', 'nsys', 'nvprof', 'tensorflow'].flatMap((kind) =>
  traceNames(kind)
    .filter((name) => !WITHOUT_WORK.some((other) => name.startsWith(other)))
    .map((name): [string, string] => [`${kind}/${name}`, tracePath(kind, name)]),
);

function sweep(f: (terms: Terms) => number): number[] {
  return ADDED_NS.map((addedRttNs) => f(withAddedRtt(TERMS, addedRttNs)));
}

/** Each slope is at least the one before, to rounding of sums of up to a minute in ns. */
function expectConvex(values: readonly number[]): void {
  let before = -1e-6;
  for (let index = 1; index < values.length; index += 1) {
    const rise = (values[index] ?? Number.NaN) - (values[index - 1] ?? Number.NaN);
    const slope = rise / ((ADDED_NS[index] ?? 0) - (ADDED_NS[index - 1] ?? 0));
    expect(slope).toBeGreaterThanOrEqual(before - 1e-6);
    before = slope;
  }
}

function residualNs(replay: ReplayModel, withoutBits: number): number {
  const lags = lagsWithout(replay.graph, withoutBits);
  return lags.startsNs + lags.waitEndsNs;
}

describe.skipIf(!hasTraces)(`estimates over the shared traces (${WHERE})`, () => {
  it.each(traces)(
    '%s: monotone, convex, the replay below the additive estimate',
    async (_, path) => {
      const model = await modelOf(path);
      const additive = sweep((terms) => model.additive(terms).addedNs);
      expectConvex(additive);
      const { replay } = model;
      if (replay === null) {
        expect(model.replayReason).toBeDefined();
        return;
      }
      // At most 1 % is asked for. What is left is rounding.
      expect(Math.abs(replay.nativeSpanNs / model.spanNs - 1)).toBeLessThan(1e-9);
      const added = sweep((terms) => replay.replay.run(terms) - replay.nativeSpanNs);
      expectConvex(added);
      for (const [index, ns] of added.entries()) {
        expect(ns).toBeLessThanOrEqual((additive[index] ?? 0) + 1e-3);
      }
    },
  );

  it.each([
    ['nsys/power-iteration-t4.sqlite', 'nsys', 'power-iteration-t4.sqlite'],
    ['kineto/sam-amg-a100-cuda-graph', 'kineto', 'sam-amg-a100-cuda-graph.json.gz'],
    ['kineto/resnet-ddp-v100', 'kineto', 'resnet-ddp-v100-ns-timestamps.pt.trace.json.gz'],
    ['kineto/alexnet-a100', 'kineto', 'alexnet-a100.json.gz'],
  ])('%s: the residual rises when synchronisation is left out', async (_, kind, name) => {
    const { replay } = await modelOf(tracePath(kind, name));
    if (replay === null) throw new Error('no replay');
    expect(residualNs(replay, EDGE.sync)).toBeGreaterThan(2 * residualNs(replay, 0));
  });
});
