import { describe, expect, it } from 'vitest';
import { nanos } from '#base/units';
import { CorePool } from '#testkit/core-pool';

describe('a manager that is started anew', () => {
  it('assumes nothing: no agent is there, nothing is free, bindings are as they were', () => {
    const pool = CorePool.ready();
    pool.bound();
    pool.run();
    const before = pool.store.load().bindings;
    pool.restart();
    expect(pool.core.status()).toMatchObject({
      boxes: 1,
      boxesConnected: 0,
      hostsConnected: 0,
      gpus: 2,
      gpusFree: 0,
      bindings: 1,
      bindingsAttached: 1,
    });
    expect(pool.core.binding('b1')?.live).toBeUndefined();
    expect(pool.core.gpus({}, '', 9).items.map(({ state }) => state)).toEqual([
      'bound',
      'unreachable',
    ]);
    // However long agents are away, what was attached stays.
    pool.pass(3_600_000);
    expect(pool.store.load().bindings).toEqual(before);
    pool.box.connect();
    pool.host.connect();
    pool.run();
    expect(pool.store.load().bindings).toEqual(before);
    expect(pool.core.binding('b1')?.live).toMatchObject({ busMaster: true, rttNs: 20_000 });
    // Nobody was told to do what was done already.
    expect(pool.box.orders.at(-1)).toMatchObject({
      revision: 1,
      whole: true,
      slots: [{ slot: 0 }],
    });
  });

  it('begins every deadline anew', () => {
    const pool = CorePool.ready();
    pool.host.isBlind = true;
    pool.bound();
    pool.run();
    pool.pass(59_999);
    expect(pool.state('b1')).toBe('attaching');
    pool.restart();
    pool.box.connect();
    pool.host.connect();
    pool.run();
    pool.pass(59_999);
    expect(pool.state('b1')).toBe('attaching');
    pool.pass(1);
    expect(pool.stored('b1')?.failure?.reason).toBe('attaching-timeout');
  });

  it('never puts back a row that it finds gone', () => {
    const pool = CorePool.ready();
    pool.bound();
    pool.run();
    pool.restart();
    // The same process: the row was given back, by orders the store has forgotten.
    Object.assign(pool.box.slot(0), { row: undefined, state: 'unused', clean: true });
    pool.box.connect();
    pool.turn();
    expect(pool.stored('b1')?.failure).toMatchObject({ reason: 'row-lost', during: 'attached' });
    expect(pool.box.orders.at(-1)).toMatchObject({ revision: 1, whole: true, slots: [] });
  });

  // Asked while no agent was there, it was acknowledged and came to nothing: one had to ask again.
  it('gives back what was asked back after a failed scrub, once the agents have confirmed', () => {
    const pool = CorePool.ready();
    pool.bound();
    pool.run();
    pool.box.scrubsInVain = true;
    pool.unbind(['b1']);
    pool.run();
    expect(pool.stored('b1')?.failure).toMatchObject({
      reason: 'quarantined',
      during: 'scrubbing',
    });
    pool.restart();
    expect(pool.unbind(['b1'])).toMatchObject({ ok: true });
    pool.restart();
    expect(pool.state('b1')).toBe('failed');
    pool.box.connect();
    pool.host.connect();
    pool.run();
    expect(pool.state('b1')).toBe('free');
    expect(pool.core.gpus({}, '', 9).items[0]).toMatchObject({ state: 'quarantined' });
  });

  it('asks for no row while detaching: it may have ordered it away before', () => {
    const pool = CorePool.ready();
    pool.bound();
    pool.run();
    pool.host.keepsRows = true;
    pool.unbind(['b1']);
    pool.run();
    // Before the restart the box keeps its row as long as the host has its own.
    expect(pool.box.slot(0).row).toBeDefined();
    pool.restart();
    pool.box.connect();
    pool.turn();
    expect(pool.box.orders.at(-1)).toMatchObject({ revision: 1, whole: true, slots: [] });
  });

  // The fault: the host's row was ordered away and, once the box had reported, ordered again.
  it("goes on asking for the host's row while programming: it may have ordered it before", () => {
    const pool = CorePool.ready();
    pool.host.isDeaf = true;
    pool.bound();
    pool.run();
    expect(pool.host.orders.at(-1)).toMatchObject({ slots: [{ slot: 0, row: { box: 'b1' } }] });
    pool.restart();
    pool.host.connect();
    pool.turn();
    expect(pool.host.orders.at(-1)).toMatchObject({
      revision: 1,
      slots: [{ slot: 0, row: { box: 'b1' }, plugged: false }],
    });
  });

  // The fault: a binding that failed to be detached was detached again with its row put back.
  it('never orders a row that was ordered away, however often detaching fails', () => {
    const pool = CorePool.ready();
    pool.bound();
    pool.run();
    pool.host.keepsRows = true;
    pool.box.keepsRows = true;
    pool.unbind(['b1']);
    pool.run();
    pool.pass(10_000);
    expect(pool.state('b1')).toBe('failed');
    const orders = pool.box.orders.length;
    pool.pass(120_000);
    expect(pool.box.orders.slice(orders - 1)).toMatchObject([
      { slots: [{ slot: 0, row: undefined }] },
    ]);
  });

  it('orders away what no binding asks for', () => {
    const pool = CorePool.ready();
    pool.restart();
    Object.assign(pool.box.slot(1), { row: { host: 'h7', generation: 1 }, state: 'ready' });
    pool.box.connect();
    pool.host.connect();
    pool.turn();
    expect(pool.core.boxes({}, '', 1).items[0]?.problem).toContain(
      'a row of host h7, generation 1',
    );
    pool.run();
    expect(pool.box.slot(1)).toMatchObject({ row: undefined, clean: true });
    expect(pool.core.boxes({}, '', 1).items[0]).toMatchObject({ problem: '', gpusFree: 2 });
  });
});

describe('a store that was restored from an older copy', () => {
  it('gives out generations above all that proxies hold', () => {
    const pool = CorePool.ready();
    pool.bound({ gpus: 2 });
    pool.run();
    const used = pool.store.load().bindings.map(({ generation }) => generation);
    // The copy is of before the bindings were made; the proxies hold them.
    const fresh = new CorePool();
    fresh.addBox('b1', 2);
    fresh.addHost('h1', 2);
    for (const [slot, state] of pool.box.slots) fresh.box.slots.set(slot, state);
    for (const [slot, state] of pool.host.slots) fresh.host.slots.set(slot, state);
    fresh.box.connect();
    fresh.turn();
    expect(fresh.store.load().counters.generation).toBe(Math.max(...used));
    expect(fresh.log.map(({ action }) => action)).toContain('generation-jump');
    fresh.host.connect();
    fresh.run();
    const ids = fresh.bound({ gpus: 2 });
    for (const id of ids) {
      expect(fresh.stored(id)?.generation).toBeGreaterThan(Math.max(...used));
    }
    fresh.run();
    expect(fresh.core.status().bindingsAttached).toBe(2);
  });

  it('tries again, under a new one, what was only being set up', () => {
    const pool = CorePool.ready();
    pool.box.isDeaf = true;
    pool.bound();
    pool.run();
    expect(pool.state('b1')).toBe('programming');
    pool.addBox('b2', 1);
    Object.assign(pool.boxes.get('b2')?.slot(0) ?? {}, {
      row: { host: 'h9', generation: 500 },
      clean: false,
    });
    pool.boxes.get('b2')?.connect();
    pool.turn();
    expect(pool.stored('b1')?.failure?.reason).toBe('row-lost');
    pool.box.isDeaf = false;
    pool.run();
    pool.pass(1_000);
    expect(pool.stored('b1')).toMatchObject({ state: 'attached', generation: 501 });
  });
});

describe('a wall clock that jumps', () => {
  const YEARS_MS = 10 * 365 * 86_400_000;

  it.each([
    ['ahead', YEARS_MS],
    ['back', -YEARS_MS],
  ])('%s breaks nothing', (_where, jumpMs) => {
    const pool = CorePool.ready();
    pool.host.isBlind = true;
    pool.bind({ requestId: 'before' });
    pool.run();
    pool.wallMs += jumpMs;
    pool.run();
    // Nothing is timed by it: the function has its minute still.
    pool.pass(59_000);
    expect(pool.state('b1')).toBe('attaching');
    pool.host.isBlind = false;
    pool.run();
    expect(pool.state('b1')).toBe('attached');
    // What was asked is remembered, over a restart too.
    pool.bound({ requestId: 'after' });
    expect(pool.bind({ requestId: 'before' })).toMatchObject({ repeated: true });
    pool.restart();
    pool.wallMs += jumpMs;
    expect(pool.bind({ requestId: 'before' })).toMatchObject({ repeated: true });
    expect(pool.bind({ requestId: 'after' })).toMatchObject({ repeated: true });
    pool.box.connect();
    pool.host.connect();
    pool.run();
    pool.unbind(['b1', 'b2']);
    pool.run();
    expect(pool.core.status()).toMatchObject({ bindings: 0, gpusFree: 2 });
    expect(pool.bind({ requestId: 'before' })).toMatchObject({ repeated: true });
    expect(pool.log.map(({ position }) => position)).toEqual(pool.log.map((_, at) => at + 1));
  });
});

describe('requests', () => {
  const WEEK_MS = 7 * 86_400_000;

  it('are remembered for a week, and then forgotten by core and store alike', () => {
    const pool = CorePool.ready();
    pool.bind({ requestId: 'old' });
    pool.run();
    pool.pass(WEEK_MS - 1);
    expect(pool.bind({ requestId: 'old' })).toMatchObject({ repeated: true });
    pool.pass(2);
    // Forgotten with the next that is remembered.
    pool.bind({ requestId: 'new' });
    const kept = pool.store.load().requests.map(({ requestId }) => requestId);
    expect(kept).toEqual(['new']);
    expect(pool.bind({ requestId: 'old' })).toMatchObject({ ok: false });
  });

  it('of before a restart are forgotten by the wall clock, but not within the first hour', () => {
    const pool = CorePool.ready();
    pool.bind({ requestId: 'old' });
    pool.run();
    pool.restart();
    pool.wallMs += 2 * WEEK_MS;
    pool.box.connect();
    pool.host.connect();
    pool.run();
    pool.bind({ requestId: 'one' });
    expect(pool.bind({ requestId: 'old' })).toMatchObject({ repeated: true });
    pool.pass(3_600_001);
    pool.unbind(['b1', 'b2']);
    expect(pool.bind({ requestId: 'old' })).toMatchObject({ ok: false });
    expect(pool.store.load().requests.map(({ requestId }) => requestId)).not.toContain('old');
  });
});

it('a core wants to be woken at once, and then by its deadlines alone', () => {
  const pool = new CorePool();
  expect(pool.core.nextDeadlineNs()).toBe(0);
  pool.core.tick(nanos(5e9));
  expect(pool.core.nextDeadlineNs()).toBe(Infinity);
});
