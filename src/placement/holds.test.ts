/** Plans that this view's `plan` never makes, but somebody may hand in. */
import { beforeEach, expect, it } from 'vitest';
import type { Demand, Pick } from './demand.ts';
import type { HostSlotFacts } from './facts.ts';
import { holds } from './holds.ts';
import { PoolIndex } from './pool-index.ts';

const none = { base: 1, limit: 0 };
const slots: HostSlotFacts[] = [0, 1].map((slot) => ({
  slot,
  free: true,
  nonPrefetchable: none,
  prefetchable: none,
}));
const demand: Demand = {
  gpus: 2,
  host: 'h1',
  model: undefined,
  memoryBytes: undefined,
  sameBox: false,
  nvlink: false,
  boxKind: undefined,
  maxRttNs: undefined,
};
let index: PoolIndex;

/** Boxes b1 and b2: slots 0 and 1 in group g, slots 2 and 3 in none. */
beforeEach(() => {
  index = new PoolIndex();
  for (const box of ['b1', 'b2']) {
    index.setBox({ id: box, kind: 'nvswitch', reachable: true });
    for (const slot of [0, 1, 2, 3]) {
      index.setNode({
        box,
        slot,
        uuid: `${box}-${slot}`,
        model: 'A100',
        memoryBytes: 0,
        nvlinkGroup: slot < 2 ? 'g' : '',
        bars: [],
        state: 'free',
      });
    }
  }
  const paths = ['b1', 'b2'].map((box) => ({ box, path: 'p', up: true, rttNs: 5 }));
  index.setHost({ id: 'h1', reachable: true, slots, paths });
});

function pick(box: string, slot: number, hostSlot: number): Pick {
  return { box, slot, uuid: `${box}-${slot}`, model: 'A100', hostSlot, path: 'p', rttNs: 5 };
}

it.each<[boolean, string, Partial<Demand>, Pick[]]>([
  [true, 'complete', {}, [pick('b1', 0, 0), pick('b2', 0, 1)]],
  [false, 'incomplete', {}, [pick('b1', 0, 0)]],
  [false, 'more than asked', { gpus: 1 }, [pick('b1', 0, 0), pick('b1', 1, 1)]],
  [false, 'a box slot twice', {}, [pick('b1', 0, 0), pick('b1', 0, 1)]],
  [false, 'a host slot twice', {}, [pick('b1', 0, 0), pick('b1', 1, 0)]],
  [false, 'no such slot', {}, [pick('b1', 0, 0), pick('b1', 1, 2)]],
  [false, 'no such box', {}, [pick('b1', 0, 0), pick('b3', 0, 1)]],
  [false, 'another GPU node', {}, [pick('b1', 0, 0), { ...pick('b1', 1, 1), uuid: 'x' }]],
  [false, 'no such path', {}, [pick('b1', 0, 0), { ...pick('b1', 1, 1), path: 'q' }]],
  [false, 'two boxes', { sameBox: true }, [pick('b1', 0, 0), pick('b2', 0, 1)]],
  [true, 'one box', { sameBox: true }, [pick('b1', 0, 0), pick('b1', 2, 1)]],
  [false, 'groups of two boxes', { nvlink: true }, [pick('b1', 0, 0), pick('b2', 0, 1)]],
  [false, 'in no group', { nvlink: true }, [pick('b1', 2, 0), pick('b1', 3, 1)]],
  [false, 'half in a group', { nvlink: true }, [pick('b1', 0, 0), pick('b1', 2, 1)]],
  [true, 'one group', { nvlink: true }, [pick('b1', 0, 0), pick('b1', 1, 1)]],
])('%s: %s', (expected, _, part, picks) => {
  expect(holds(index, { ok: true, demand: { ...demand, ...part }, picks })).toBe(expected);
});

it('another host does not hold', () => {
  const picks = [pick('b1', 0, 0), pick('b1', 1, 1)];
  expect(holds(index, { ok: true, demand: { ...demand, host: 'h2' }, picks })).toBe(false);
});
