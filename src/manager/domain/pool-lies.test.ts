/** Proxies that claim what is not so: it is told as theirs, and nothing else changes. */
import { describe, expect, it } from 'vitest';
import type { BoxSlotReport } from '#proto/agent-messages';
import { CorePool } from '#testkit/core-pool';
import { nodeOf } from '#testkit/core-pool-box';
import { functionOf, portOf } from '#testkit/core-pool-host';

/** Two boxes, two hosts; b1 of box b1 is attached to h1. */
function pair(): CorePool {
  const pool = CorePool.ready();
  pool.bound();
  pool.run();
  pool.addBox('b2', 1).connect();
  pool.addHost('h2', 2).connect();
  pool.run();
  // Until the hosts have heard of the box.
  pool.pass(1_000);
  pool.run();
  expect(pool.state('b1')).toBe('attached');
  return pool;
}

const refusals = (pool: CorePool): string[] =>
  pool.log
    .filter(({ action }) => action === 'refused')
    .map((entry) => `${entry.actor}: ${entry.message}`);

function boxSlot(change: Partial<BoxSlotReport>): BoxSlotReport {
  return {
    slot: 0,
    node: undefined,
    state: 'unused',
    clean: true,
    row: undefined,
    reason: '',
    ...change,
  };
}

describe('a GPU node that is claimed by two boxes', () => {
  it('stays where it was first seen', () => {
    const pool = pair();
    const second = pool.boxes.get('b2');
    Object.assign(second?.slot(0) ?? {}, { node: nodeOf('b1-gpu0') });
    second?.say(false);
    pool.run();
    expect(pool.state('b1')).toBe('attached');
    expect(refusals(pool)).toEqual([
      'box/b2: slot 0: claims GPU b1-gpu0, which is in slot 0 of box b1',
    ]);
    expect(pool.core.gpus({ uuid: 'b1-gpu0' }, '', 10).items).toMatchObject([{ binding: 'b1' }]);
    expect(pool.core.boxes({ id: 'b2' }, '', 1).items[0]?.problem).toContain('claims GPU b1-gpu0');
    // Said once, however often it is claimed.
    second?.say(true);
    pool.run();
    expect(refusals(pool)).toHaveLength(1);
  });

  it("is the other box's once the first has said that it is gone", () => {
    const pool = pair();
    const second = pool.boxes.get('b2');
    Object.assign(second?.slot(0) ?? {}, { node: nodeOf('b1-gpu1') });
    second?.say(false);
    pool.turn();
    pool.box.slot(1).node = undefined;
    pool.box.say(false);
    pool.run();
    const found = pool.core.gpus({ uuid: 'b1-gpu1' }, '', 10).items;
    expect(found).toMatchObject([{ record: { box: 'b2', slot: 0 }, state: 'free' }]);
    expect(pool.core.boxes({ id: 'b2' }, '', 1).items[0]?.problem).toBe('');
  });

  it('may move within a box, in one report', () => {
    const pool = CorePool.ready();
    const [first, second] = [pool.box.slot(0), pool.box.slot(1)];
    [first.node, second.node] = [second.node, first.node];
    pool.box.say(false);
    pool.run();
    expect(refusals(pool)).toEqual([]);
    const found = pool.core.gpus({ uuid: 'b1-gpu0' }, '', 10).items;
    expect(found).toMatchObject([{ record: { slot: 1 }, state: 'free' }]);
  });
});

describe('a host', () => {
  it('that claims windows over each other keeps those it had, and gets nothing more there', () => {
    const pool = pair();
    const host = pool.hosts.get('h2');
    const slots = [...(host?.slots ?? [])].map(([slot, state]) => ({
      slot,
      ...state,
      ...portOf(0),
      secondaryBus: slot + 1,
    }));
    host?.sayThis({ slots });
    pool.run();
    expect(refusals(pool)).toEqual([
      expect.stringMatching(/^host\/h2: slot 1: its window .* overlaps that of slot 0$/),
    ]);
    expect(pool.core.hosts({ id: 'h2' }, '', 1).items[0]?.slots[1]).toMatchObject(portOf(1));
    expect(pool.bind({ host: 'h2', gpus: 2 })).toMatchObject({ ok: false });
    host?.say(true);
    pool.run();
    expect(pool.bind({ host: 'h2', gpus: 2 })).toMatchObject({ ok: true });
  });

  it('that claims a BAR outside its windows is not attached', () => {
    const pool = CorePool.ready();
    pool.host.isBlind = true;
    pool.bound();
    pool.run();
    const found = functionOf(0);
    const [first, ...rest] = found.bars;
    const bars = [{ ...(first as (typeof found.bars)[number]), address: 0x1000 }, ...rest];
    pool.host.slot(0).function = { ...found, bars };
    pool.run();
    expect(pool.state('b1')).toBe('attaching');
    expect(refusals(pool)).toEqual([
      'host/h1: slot 0: BAR 0 at 0x1000 is outside the windows of its port',
    ]);
    pool.host.slot(0).function = found;
    pool.run();
    expect(pool.state('b1')).toBe('attached');
    expect(pool.core.hosts({ id: 'h1' }, '', 1).items[0]?.problem).toBe('');
  });

  it("that claims another host's row owns nothing by it", () => {
    const pool = pair();
    const other = pool.hosts.get('h2');
    const { generation = 0 } = pool.stored('b1') ?? {};
    Object.assign(other?.slot(0) ?? {}, {
      row: { box: 'b1', boxSlot: 0, generation },
      state: 'ready',
    });
    other?.say(false);
    pool.turn();
    expect(pool.stored('b1')).toMatchObject({ host: 'h1', state: 'attached' });
    expect(refusals(pool)).toEqual([
      `host/h2: slot 0: holds a row of box b1, slot 0, generation ${generation}, that no binding asks for`,
    ]);
  });

  it('claims no paths to boxes that are not there', () => {
    const pool = CorePool.ready();
    const path = { path: 'lan', up: true, rttNs: 1, bitsPerSecond: 1, problem: '' };
    pool.host.sayThis({ paths: [{ ...path, box: 'nowhere' }] });
    pool.run();
    expect(pool.core.paths({}, '', 10).items.map(({ box }) => box)).toEqual(['b1']);
    expect(refusals(pool)).toEqual([
      'host/h1: claims a path lan to box nowhere, which is not known',
    ]);
  });
});

describe('a box that claims a row for another host', () => {
  it('changes no owner: the binding has failed, and comes back', () => {
    const pool = pair();
    pool.box.slot(0).row = { host: 'h2', generation: pool.stored('b1')?.generation ?? 0 };
    pool.box.say(false);
    pool.turn();
    expect(pool.stored('b1')).toMatchObject({ host: 'h1', failure: { reason: 'row-lost' } });
    expect(refusals(pool)[0]).toMatch(/^box\/b1: slot 0: holds a row of host h2/);
    pool.run();
    pool.pass(1_000);
    expect(pool.stored('b1')).toMatchObject({ host: 'h1', state: 'attached' });
  });

  it('has no bound row of a slot that nobody owns: nobody gets it meanwhile', () => {
    const pool = CorePool.ready();
    const row = { host: 'h9', generation: 1 };
    pool.bound();
    pool.run();
    pool.box.slot(1).row = row;
    pool.box.isDeaf = true;
    pool.box.say(false);
    pool.turn();
    expect(pool.core.gpus({ uuid: 'b1-gpu1' }, '', 1).items[0]).toMatchObject({
      state: 'scrubbing',
      reason: 'its slot holds generation 1, which nobody asks for',
    });
    expect(pool.bind()).toMatchObject({ ok: false });
  });
});

describe('a stream is ended, and nothing of the report counts, when it', () => {
  it.each([
    [
      'shows a generation that was never given out',
      {
        slots: [boxSlot({ node: nodeOf('x'), row: { host: 'h1', generation: 77 }, clean: false })],
      },
      'generation 77 was never given out',
    ],
    ['says an order is in force that was not sent', { applied: 99 }, 'order 99 cannot be in force'],
    ['takes back that an order is in force', { applied: 0 }, 'order 0 cannot be in force after'],
    ['names a slot twice', { slots: [boxSlot({}), boxSlot({})] }, 'slot 0 is reported twice'],
    ['names no slot there can be', { slots: [boxSlot({ slot: 65_536 })] }, 'no slot 65536'],
    [
      'names no generation there can be',
      { slots: [boxSlot({ row: { host: 'h1', generation: 0 } })] },
      '0 is no generation',
    ],
  ])('%s', (_what, report, text) => {
    const pool = pair();
    const before = pool.store.load();
    const { session } = pool.box;
    pool.box.sayThis(report);
    pool.turn();
    expect(pool.ended.get(session ?? 0)).toMatchObject({
      code: 'failed_precondition',
      message: expect.stringContaining(text),
    });
    expect(refusals(pool)).toEqual([expect.stringContaining('box/b1: ')]);
    expect(refusals(pool)[0]).toContain(text);
    const after = pool.store.load();
    expect(after.bindings).toEqual(before.bindings);
    expect(after.boxSlots).toEqual(before.boxSlots);
    expect(after.counters.generation).toBe(before.counters.generation);
    expect(pool.core.boxes({ id: 'b1' }, '', 1).items[0]?.connected).toBe(false);
    // What was on its way from the ended stream counts no more.
    pool.report(session ?? 0, { kind: 'box', applied: 1, whole: true, slots: [], refused: '' });
    pool.turn();
    expect(pool.store.load()).toEqual(after);
  });

  it('does not begin with everything, or reports for another kind', () => {
    const pool = new CorePool();
    const box = pool.addBox('b1', 1);
    const first = pool.open(box, box.hello);
    pool.report(first, { kind: 'box', applied: 0, whole: false, slots: [], refused: '' });
    pool.turn();
    expect(pool.ended.get(first)?.message).toContain('must be a whole one');
    const second = pool.open(box, box.hello);
    pool.report(second, {
      kind: 'host',
      applied: 0,
      whole: true,
      slots: [],
      paths: [],
      refused: '',
    });
    pool.turn();
    expect(pool.ended.get(second)?.message).toContain('a box sent the report of a host');
    expect(pool.core.status().boxes).toBe(0);
  });

  it('is a second one of a living identity: the first goes on', () => {
    const pool = pair();
    const { session: first } = pool.box;
    const second = pool.open(pool.box, pool.box.hello);
    pool.turn();
    expect(pool.ended.get(second)).toMatchObject({
      code: 'already_exists',
      message: expect.stringContaining('box/b1: a second live stream of box b1'),
    });
    expect(pool.ended.has(first ?? 0)).toBe(false);
    expect(refusals(pool)[0]).toContain('box/b1: a second live stream');
    pool.run();
    expect(pool.core.boxes({ id: 'b1' }, '', 1).items[0]?.connected).toBe(true);
    expect(pool.state('b1')).toBe('attached');
  });
});

it('what one proxy can write into the log has an end', () => {
  const pool = CorePool.ready();
  for (let count = 0; count < 1_200; count++) {
    pool.host.sayThis({
      paths: [{ box: `x${count}`, path: 'p', up: true, rttNs: 1, bitsPerSecond: 1, problem: '' }],
    });
  }
  pool.turn();
  expect(refusals(pool)).toHaveLength(1_000);
  expect(refusals(pool).at(-1)).toContain('the last that is written down');
});

// Regression: a box that swaps its GPU nodes as fast as it can filled the disk with a log that cannot
// be shortened.
it('GPU nodes that come and go for ever are written down ten thousand times', () => {
  const pool = pair();
  const liar = pool.boxes.get('b2');
  const before = pool.log.length;
  for (let turn = 0; turn < 6000; turn++) {
    Object.assign(liar?.slot(0) ?? {}, { node: nodeOf(`made-up-${turn}`) });
    liar?.say(false);
    pool.run();
  }
  const about = pool.log.slice(before).filter(({ subjectKind }) => subjectKind === 'gpu');
  // One entry was there before: the node that `pair` found.
  expect(about).toHaveLength(9_999);
  expect(about.at(-1)?.message).toContain('the last that is written down of this box');
  expect(pool.core.gpus({ uuid: 'made-up-5999' }, '', 1).items).toHaveLength(1);
});
