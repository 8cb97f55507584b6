/** Rank and refusals by example. */
import { expect, it } from 'vitest';
import { bar, windowOf } from '#testkit/small-pool';
import type { Demand, Plan, Refusal } from './demand.ts';
import { explain } from './explain.ts';
import type { HostSlotFacts, NodeFacts, PathFacts } from './facts.ts';
import { plan } from './plan.ts';
import { PoolIndex } from './pool-index.ts';

const GIB = 2 ** 30;

function slots(count: number): HostSlotFacts[] {
  return Array.from({ length: count }, (_, slot) => ({
    slot,
    free: true,
    nonPrefetchable: windowOf(0xe000_0000, 16 * slot, 16 * slot + 16),
    prefetchable: windowOf(2 ** 40, 1024 * slot, 1024 * slot + 1024),
  }));
}

/** Boxes as `{ id: groups }`: a letter a GPU node, its NVLink group, `-` for none, `x` for one bound. */
function pool(boxes: Record<string, string>, paths: Record<string, number> = {}): PoolIndex {
  const index = new PoolIndex();
  const all: PathFacts[] = [];
  for (const [id, groups] of Object.entries(boxes)) {
    index.setBox({ id, kind: /[a-w]/.test(groups) ? 'nvswitch' : 'pcie', reachable: true });
    for (const [slot, group] of groups.split('').entries()) index.setNode(node(id, slot, group));
    all.push({ box: id, path: 'p', up: true, rttNs: paths[id] ?? 1000 });
  }
  index.setHost({ id: 'h1', reachable: true, slots: slots(16), paths: all });
  return index;
}

function node(box: string, slot: number, group: string, part: Partial<NodeFacts> = {}): NodeFacts {
  return {
    box,
    slot,
    uuid: `GPU-${box}-${slot}`,
    model: 'A100',
    memoryBytes: 40 * GIB,
    nvlinkGroup: /[a-w]/.test(group) ? group : '',
    bars: [bar(16, 'low'), bar(512, 'high')],
    state: group === 'x' ? 'bound' : 'free',
    ...part,
  };
}

function demand(gpus: number, part: Partial<Demand> = {}): Demand {
  return {
    gpus,
    host: 'h1',
    model: undefined,
    memoryBytes: undefined,
    sameBox: false,
    nvlink: false,
    boxKind: undefined,
    maxRttNs: undefined,
    ...part,
  };
}

function picked(answer: Plan | Refusal): string[] {
  return answer.ok ? answer.picks.map((pick) => `${pick.box}/${pick.slot}`) : [answer.summary];
}

it('best fit: the box with the fewest left', () => {
  const index = pool({ b1: '----', b2: '--', b3: '---' });
  expect(picked(plan(index, demand(1)))).toEqual(['b2/0']);
  expect(picked(plan(index, demand(3)))).toEqual(['b3/0', 'b3/1', 'b3/2']);
});

it('one box when one has enough, though it is not asked for', () => {
  const index = pool({ b1: '-', b2: '-', b3: '-----' });
  expect(picked(plan(index, demand(2)))).toEqual(['b3/0', 'b3/1']);
});

it('few boxes, and for what is missing the one that fits best', () => {
  // 4 + 3 is enough for 6: the largest first, then 2 of a box of 2 rather than of one of 3.
  const index = pool({ b1: '--', b2: '---', b3: '----', b4: '-' });
  expect(picked(plan(index, demand(6)))).toEqual(['b3/0', 'b3/1', 'b3/2', 'b3/3', 'b1/0', 'b1/1']);
  expect(picked(plan(index, demand(7)))).toEqual('b3/0 b3/1 b3/2 b3/3 b2/0 b2/1 b2/2'.split(' '));
});

it('NVLink groups stay whole', () => {
  // What is in no group first; then a group that is used up; then the smallest that is enough.
  expect(picked(plan(pool({ b1: 'aa--' }), demand(2)))).toEqual(['b1/2', 'b1/3']);
  expect(picked(plan(pool({ b1: 'aabbb-' }), demand(3)))).toEqual(['b1/2', 'b1/3', 'b1/4']);
  expect(picked(plan(pool({ b1: 'aaabb' }), demand(1)))).toEqual(['b1/3']);
  // Of two boxes with as many free, the one where no group is broken up.
  expect(picked(plan(pool({ b1: 'aaaa', b2: 'aabb' }), demand(2)))).toEqual(['b2/0', 'b2/1']);
  expect(picked(plan(pool({ b1: 'aaaa', b2: '----' }), demand(2)))).toEqual(['b2/0', 'b2/1']);
});

it('with nvlink the group with the fewest left', () => {
  const index = pool({ b1: 'aaaabb', b2: 'aaa', b3: '---' });
  expect(picked(plan(index, demand(2, { nvlink: true })))).toEqual(['b1/4', 'b1/5']);
  expect(picked(plan(index, demand(3, { nvlink: true })))).toEqual(['b2/0', 'b2/1', 'b2/2']);
  expect(picked(plan(index, demand(4, { nvlink: true })))).toEqual([
    'b1/0',
    'b1/1',
    'b1/2',
    'b1/3',
  ]);
});

it('with nvlink a group that is used up is worth a box with more free', () => {
  const index = pool({ b1: 'aaa', b2: 'aaaabb' });
  expect(picked(plan(index, demand(2, { nvlink: true })))).toEqual(['b2/4', 'b2/5']);
});

it('lower round trip, then ids; what was not measured comes last', () => {
  expect(picked(plan(pool({ b1: '-', b2: '-' }, { b1: 2000, b2: 1500 }), demand(1)))).toEqual([
    'b2/0',
  ]);
  expect(picked(plan(pool({ b1: '-', b2: '-' }, { b1: 0, b2: 9000 }), demand(1)))).toEqual([
    'b2/0',
  ]);
  expect(picked(plan(pool({ b2: '-', b10: '-' }), demand(1)))).toEqual(['b10/0']);
});

it('the best path of each box, and none beyond the limit', () => {
  const index = pool({ b1: '-' });
  index.setPath('h1', { box: 'b1', path: 'q', up: true, rttNs: 800 });
  index.setPath('h1', { box: 'b1', path: 'a', up: true, rttNs: 0 });
  index.setPath('h1', { box: 'b1', path: 'b', up: false, rttNs: 1 });
  const answer = plan(index, demand(1));
  expect(answer.ok && answer.picks).toMatchObject([{ path: 'q', rttNs: 800, hostSlot: 0 }]);
  expect(plan(index, demand(1, { maxRttNs: 800 })).ok).toBe(true);
  expect(plan(index, demand(1, { maxRttNs: 799 })).ok).toBe(false);
});

it('the smaller memory first, where both would do', () => {
  const index = pool({ b1: '---' });
  index.setNode(node('b1', 0, '-', { memoryBytes: 80 * GIB }));
  expect(picked(plan(index, demand(2)))).toEqual(['b1/1', 'b1/2']);
});

it('a plan names the GPU node, its slot on the host and the path', () => {
  const answer = plan(pool({ b1: 'x-' }), demand(1));
  expect(answer).toEqual({
    ok: true,
    demand: demand(1),
    picks: [
      {
        box: 'b1',
        slot: 1,
        uuid: 'GPU-b1-1',
        model: 'A100',
        hostSlot: 0,
        path: 'p',
        rttNs: 1000,
      },
    ],
  });
});

it.each<[string, PoolIndex, Demand, string]>([
  [
    'too few',
    pool({ b1: 'xxx', b2: '-----xxx' }),
    demand(8, { model: 'A100' }),
    '8 GPU nodes of model "A100" are asked for, 5 are free for host h1: ask for at most 5, or wait until others give theirs back',
  ],
  [
    'unknown model',
    pool({ b1: '-' }),
    demand(1, { model: 'A10O' }),
    '1 GPU node of model "A10O" is asked for, the models of this pool are "A100": did you mean "A100"?',
  ],
  [
    'a model unlike any',
    pool({ b1: '-' }),
    demand(1, { model: 'Radeon' }),
    '1 GPU node of model "Radeon" is asked for, the models of this pool are "A100": ask for one of these',
  ],
  [
    'unknown host',
    pool({ b1: '-' }),
    demand(1, { host: 'h7' }),
    'there is no host "h7" in the pool: start its agent, or name a host that the pool lists',
  ],
  [
    'fragmented',
    pool({ b1: '---', b2: '--' }),
    demand(4, { sameBox: true }),
    '4 GPU nodes of one box are asked for, the most that one box has free for host h1 is 3: ask for at most 3, or not for one box',
  ],
  [
    'no groups',
    pool({ b1: '---' }),
    demand(2, { nvlink: true }),
    '2 GPU nodes of one NVLink group are asked for, of those free for host h1 none is in a group: leave out nvlink',
  ],
  [
    'too far',
    pool({ b1: '---' }, { b1: 7200 }),
    demand(2, { maxRttNs: 5000 }),
    '2 GPU nodes within 5 µs are asked for, 0 are free for host h1: allow a longer round trip',
  ],
  [
    // It said to wait, for nodes that are as far away.
    'as many bound as too far: what the demand can do is sure to help',
    pool({ b1: '-x' }, { b1: 7200 }),
    demand(1, { maxRttNs: 5000 }),
    '1 GPU node within 5 µs is asked for, 0 are free for host h1: allow a longer round trip',
  ],
  [
    'no slot',
    pool({ b1: '-'.repeat(20) }),
    demand(17),
    '17 GPU nodes are asked for, host h1 has 16 of its 16 virtual slots free: ask for at most 16, give back what it no longer uses, or reserve more slots when it starts',
  ],
  [
    'nothing',
    pool({}),
    demand(1),
    '1 GPU node is asked for, the pool has no GPU nodes: start a box',
  ],
])('a refusal in one sentence: %s', (_, index, asked, summary) => {
  const answer = plan(index, asked);
  expect(!answer.ok && answer.summary).toBe(summary);
});

it('reasons with counts name what was asked and what there is', () => {
  const index = pool({ b1: 'xx--', b2: '----', b3: '--' }, { b2: 7200 });
  index.setNode(node('b1', 2, '-', { model: 'H100' }));
  index.setNode(node('b1', 3, '-', { model: 'A100', memoryBytes: 20 * GIB }));
  index.setPath('h1', { box: 'b3', path: 'p', up: false, rttNs: 1000 });
  index.setBox({ id: 'b4', kind: 'pcie', reachable: true });
  index.setNode(node('b4', 0, '-', { state: 'quarantined' }));
  index.setNode(node('b4', 1, '-'));
  const asked = demand(2, { model: 'A100', memoryBytes: 40 * GIB, maxRttNs: 5000 });
  const answer = plan(index, asked);
  expect(!answer.ok && answer.reasons).toEqual([
    {
      reason: 'round-trip',
      count: 4,
      message:
        'a round trip of at most 5 µs is asked for, 4 free GPU nodes are farther from host h1, the nearest 7.2 µs',
    },
    { reason: 'bound', count: 2, message: '2 GPU nodes are bound' },
    {
      reason: 'path-down',
      count: 2,
      message: '2 free GPU nodes are in boxes to which every path of host h1 is down',
    },
    { reason: 'too-few', count: 2, message: '2 GPU nodes are asked for, 0 would do' },
    { reason: 'quarantined', count: 1, message: '1 GPU node is quarantined' },
    {
      reason: 'model',
      count: 1,
      message: 'model "A100" is asked for, 1 free GPU node is of other models: "H100" (1)',
    },
    {
      reason: 'memory',
      count: 1,
      message: '40 GiB of memory each is asked for, 1 free GPU node has less: at most 20 GiB',
    },
    {
      reason: 'no-path',
      count: 1,
      message: '1 free GPU node is in boxes to which host h1 has no path',
    },
  ]);
  // Every one of the 12 GPU nodes is in the list, and nothing else but the 2 that are missing.
  expect(!answer.ok && answer.reasons.reduce((sum, { count }) => sum + count, 0)).toBe(12 + 2);
});

it('the nearest of those too far is one that was measured', () => {
  const limit = demand(1, { maxRttNs: 5000 });
  const some = plan(pool({ b1: '-', b2: '--' }, { b1: 7200, b2: 0 }), limit);
  expect(!some.ok && some.reasons[0]?.message).toBe(
    'a round trip of at most 5 µs is asked for, 3 free GPU nodes are farther from host h1, the nearest 7.2 µs',
  );
  const none = plan(pool({ b1: '--' }, { b1: 0 }), limit);
  expect(!none.ok && none.reasons[0]?.message).toBe(
    'a round trip of at most 5 µs is asked for, 2 free GPU nodes are farther from host h1, or the way was not measured',
  );
});

it('a window too small names BARs and windows', () => {
  const index = pool({ b1: '-' });
  index.setNode(node('b1', 0, '-', { bars: [bar(16, 'low'), bar(2048, 'high')] }));
  const answer = plan(index, demand(1));
  expect(!answer.ok && answer.reasons[0]).toEqual({
    reason: 'window',
    count: 1,
    message:
      '1 free GPU node fits no free virtual slot of host h1: BARs of 2 GiB prefetchable and 16 MiB below 4 GiB are needed, the largest windows are 1 GiB and 16 MiB',
  });
  expect(!answer.ok && answer.summary).toContain('reserve larger windows');
});

// It said to reserve larger windows: the largest were of 0 bytes.
it('a VM that has not started has no windows, which is no matter of their size', () => {
  const index = pool({ b1: '-' });
  const none = { base: 1, limit: 0 };
  for (const one of slots(16)) {
    index.setHostSlot('h1', { ...one, nonPrefetchable: none, prefetchable: none });
  }
  const answer = plan(index, demand(1));
  expect(!answer.ok && answer.reasons[0]?.message).toBe(
    '1 free GPU node fits no free virtual slot of host h1: they have no windows before the guest of its VM has set them up',
  );
  expect(!answer.ok && answer.summary).toContain(
    'start its VM: dxpu status --process host-h1 says what it waits for',
  );
});

it('windows that take too few at the same time', () => {
  const index = pool({ b1: '--' });
  for (const one of slots(16)) index.setHostSlot('h1', { ...one, free: one.slot < 2 });
  const small = { ...slots(1)[0]!, prefetchable: windowOf(2 ** 40, 0, 256) };
  index.setHostSlot('h1', small);
  const answer = plan(index, demand(2));
  expect(!answer.ok && answer.summary).toBe(
    '2 GPU nodes are asked for, the windows of the free virtual slots of host h1 take 1 of them: ask for at most 1, or reserve larger windows',
  );
});

it('explains each GPU node, lazily', () => {
  const index = pool({ b2: 'x-', b1: 'aab' });
  index.setNode(node('b1', 1, 'a', { memoryBytes: 20 * GIB }));
  const asked = demand(2, { nvlink: true, memoryBytes: 40 * GIB });
  const reasons = [...explain(index, asked)].map(
    ({ box, slot, reason, message }) => `${box}/${slot} ${reason}: ${message}`,
  );
  expect(reasons).toEqual([
    'b1/0 fragmented: NVLink group "a" of box b1 has 1 of the 2 GPU nodes asked for',
    'b1/1 memory: it has 20 GiB, 40 GiB is asked for',
    'b1/2 fragmented: NVLink group "b" of box b1 has 1 of the 2 GPU nodes asked for',
    'b2/0 bound: it is bound',
    'b2/1 fragmented: it is in no NVLink group',
  ]);
  const some = explain(index, asked)[Symbol.iterator]();
  expect(some.next().value).toMatchObject({ box: 'b1', slot: 0 });
  index.removeBox('b1');
  expect(some.next().value).toMatchObject({ box: 'b1', slot: 1 });
  index.removeHost('h1');
  expect([...{ [Symbol.iterator]: () => some }].map((one) => one.box)).toEqual(['b1', 'b2', 'b2']);
});

it('explains boxes, not slots: too few of these are the host alone', () => {
  const index = pool({ b1: '----' });
  for (const one of slots(16)) index.setHostSlot('h1', { ...one, free: one.slot < 2 });
  const reasons = [...explain(index, demand(4, { sameBox: true }))].map(({ reason }) => reason);
  expect(reasons).toEqual([undefined, undefined, undefined, undefined]);
});

it('facts without what they belong to are a mistake of the owner', () => {
  const index = new PoolIndex();
  expect(() => index.setNode(node('b1', 0, '-'))).toThrow('box b1 was not set');
  expect(() => index.setNodeState('b1', 0, 'free')).toThrow('box b1 was not set');
  expect(() => index.setHostReachable('h1', true)).toThrow('host h1 was not set');
  index.setBox({ id: 'b1', kind: 'pcie', reachable: true });
  expect(() => index.setNodeState('b1', 3, 'free')).toThrow('slot 3 of box b1 has no GPU node');
  index.removeNode('b1', 3);
  index.removeHost('h1');
  index.removePath('h1', 'b1', 'p');
});
