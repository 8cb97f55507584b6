import { expect, it } from 'vitest';
import { fc } from '#testkit/properties';
import { sceneTimeline } from '#testkit/trace-scene';
import { EDGE, EdgeList } from './edge-list.ts';
import { addHandOvers } from './hand-overs.ts';
import { wholeLanes } from './lanes.ts';
import type { Timeline } from './timeline.ts';

const SILENCE_NS = 50_000;
type Calls = readonly (readonly [gapNs: number, durationNs: number])[];

function timelineOf(threads: readonly Calls[]): Timeline {
  let id = 0;
  const scene = threads.map((calls, thread) => {
    let at = 0;
    const list = calls.map(([gapNs, durationNs]) => {
      id += 1;
      const call = ['cudaLaunchKernel', at + gapNs, durationNs, id] as const;
      at += gapNs + durationNs;
      return call;
    });
    return [`t${thread}`, list] as const;
  });
  return sceneTimeline({
    threads: Object.fromEntries(scene),
    streams: { s: [{ at: 1e9, ns: 1, id: 1 }] },
  });
}

function handOvers(timeline: Timeline): [number, number][] {
  const list = new EdgeList();
  addHandOvers(timeline, wholeLanes(timeline), list);
  const { target, source, flags } = list.finish();
  expect(flags.every((flag) => flag === EDGE.inferred)).toBe(true);
  return Array.from(target, (call, edge) => [call, source[edge]!]);
}

/** As it is defined: every other thread is asked. */
function byAsking({ calls, threads }: Timeline): [number, number][] {
  const lanes = threads.map((_, thread) =>
    [...calls.thread.keys()].filter((call) => calls.thread[call] === thread),
  );
  const start = (call: number | undefined): number =>
    call === undefined ? Infinity : calls.startNs[call]!;
  const end = (call: number): number => calls.startNs[call]! + calls.durationNs[call]!;
  const edges: [number, number][] = [];
  for (const own of lanes) {
    for (const [at, call] of own.entries()) {
      const sinceNs = at === 0 ? -Infinity : end(own[at - 1]!);
      const untilNs = start(call);
      if (untilNs - sinceNs < SILENCE_NS) continue;
      let latest = -1;
      for (const other of lanes) {
        const last = other.findLast((one) => start(one) < untilNs);
        if (other === own || last === undefined || end(last) > untilNs) continue;
        if (start(other[other.indexOf(last) + 1]) - end(last) < SILENCE_NS) continue;
        if (end(last) > (latest < 0 ? sinceNs : end(latest))) latest = last;
      }
      if (latest >= 0) edges.push([call, latest]);
    }
  }
  return edges.toSorted(([a], [b]) => a - b);
}

it('hand-overs are those found by asking every thread', () => {
  // Few different times, so that many fall together.
  const call = fc.tuple(
    fc.constantFrom(0, 10_000, 50_000, 60_000, 100_000),
    fc.constantFrom(0, 10_000, 50_000),
  );
  const threads = fc.array(fc.array(call, { minLength: 1, maxLength: 6 }), {
    minLength: 1,
    maxLength: 6,
  });
  fc.assert(
    fc.property(threads, (some) => {
      const timeline = timelineOf(some);
      expect(handOvers(timeline)).toEqual(byAsking(timeline));
    }),
  );
});

// Every thread was asked for each silence of every other: minutes.
it('hand-overs of very many threads are found, each from the one before', () => {
  const count = 60_000;
  const timeline = timelineOf(
    Array.from({ length: count }, (_, thread): Calls => [[thread * 1000, 500]]),
  );
  expect(handOvers(timeline)).toHaveLength(count - 1);
});
