import { describe, expect, it } from 'vitest';
import { CorePool, demandOf } from '#testkit/core-pool';

const BIND = { kind: 'bind', requestId: 'r', retries: true, demand: demandOf({}) } as const;

describe('a request', () => {
  it('that is repeated acts once and answers with what is now', () => {
    const pool = CorePool.ready();
    const first = pool.ask(BIND);
    pool.run();
    const again = pool.ask(BIND);
    expect(first).toMatchObject({ ok: true, repeated: false, bindings: [{ id: 'b1' }] });
    expect(again).toMatchObject({
      ok: true,
      repeated: true,
      bindings: [{ id: 'b1', state: 'attached' }],
    });
    expect(pool.core.status().bindings).toBe(1);
  });

  it('that is repeated before it is durable is answered once it is', () => {
    const pool = CorePool.ready();
    pool.core.command(pool.now, { name: 'user/alice' }, BIND, 100);
    pool.core.command(pool.now, { name: 'user/alice' }, BIND, 101);
    expect(pool.answers.size).toBe(0);
    pool.turn();
    expect(pool.answers.get(100)).toMatchObject({ repeated: false, bindings: [{ id: 'b1' }] });
    expect(pool.answers.get(101)).toMatchObject({ repeated: true, bindings: [{ id: 'b1' }] });
  });

  it('that is repeated after a restart still acts once', () => {
    const pool = CorePool.ready();
    pool.ask(BIND);
    pool.run();
    pool.restart();
    expect(pool.ask(BIND)).toMatchObject({ ok: true, repeated: true, bindings: [{ id: 'b1' }] });
    pool.ask({ kind: 'unbind', requestId: 'u', bindings: ['b1'], force: false });
    for (const proxy of [pool.box, pool.host]) proxy.connect();
    pool.run();
    expect(pool.state('b1')).toBe('free');
    // What it made is gone, and is left out.
    expect(pool.ask(BIND)).toMatchObject({ ok: true, repeated: true, bindings: [] });
  });

  it.each([
    ['another demand', { ...BIND, demand: demandOf({ gpus: 2 }) }],
    ['no retries', { ...BIND, retries: false }],
    ['another command', { kind: 'retry', requestId: 'r', bindings: ['b1'] } as const],
  ])('with the same id for %s is refused, also after a restart', (_what, other) => {
    const pool = CorePool.ready();
    pool.ask(BIND);
    expect(pool.ask(other)).toMatchObject({ ok: false, error: { code: 'already_exists' } });
    pool.restart();
    expect(pool.ask(other)).toMatchObject({ ok: false, error: { code: 'already_exists' } });
    expect(pool.core.status().bindings).toBe(1);
  });

  it('of one caller is not that of another', () => {
    const pool = CorePool.ready();
    pool.ask(BIND, 'user/alice');
    expect(pool.ask(BIND, 'user/bob')).toMatchObject({ repeated: false, bindings: [{ id: 'b2' }] });
  });

  it('that was refused is not remembered: it may be met the next time', () => {
    const pool = CorePool.ready();
    pool.bound({ gpus: 2 });
    expect(pool.ask(BIND)).toMatchObject({ ok: false, refusal: { ok: false } });
    pool.run();
    pool.unbind(['b1']);
    pool.run();
    expect(pool.ask(BIND)).toMatchObject({ ok: true, repeated: false, bindings: [{ id: 'b3' }] });
  });

  it('without an id is refused', () => {
    const answer = CorePool.ready().ask({ ...BIND, requestId: '' });
    expect(answer).toMatchObject({ ok: false, error: { code: 'invalid_argument' } });
  });
});

describe('bind', () => {
  it('is all or nothing', () => {
    const pool = CorePool.ready();
    expect(pool.bind({ gpus: 3 })).toMatchObject({ ok: false });
    expect(pool.store.load().bindings).toEqual([]);
    expect(pool.bind({ gpus: 2 })).toMatchObject({ ok: true, bindings: [{}, {}] });
    expect(pool.store.load().bindings.map(({ state }) => state)).toEqual(['reserved', 'reserved']);
  });

  it('gives no slot away twice in one turn', () => {
    const pool = CorePool.ready();
    for (let ticket = 100; ticket < 105; ticket++) {
      const command = { ...BIND, requestId: `t${ticket}` };
      pool.core.command(pool.now, { name: 'user/alice' }, command, ticket);
    }
    pool.turn();
    const answers = [...pool.answers.values()];
    expect(answers.map(({ ok }) => ok)).toEqual([true, true, false, false, false]);
    const slots = pool.store.load().bindings.map(({ boxSlot }) => boxSlot);
    expect(new Set(slots)).toEqual(new Set([0, 1]));
    expect(slots).toHaveLength(2);
  });

  it('refuses what cannot be meant, and names it', () => {
    const answer = CorePool.ready().bind({ gpus: 0 });
    expect(answer).toMatchObject({ ok: false, error: { code: 'invalid_argument' } });
  });

  it('plans nothing on what is not confirmed: a box that has just come', () => {
    const pool = new CorePool();
    pool.addHost('h1', 2).connect();
    pool.addBox('b1', 2).connect();
    pool.turn();
    // Its report says that all is clean, but the first order is not known to be in force.
    expect(pool.core.status().gpusFree).toBe(0);
    pool.run();
    expect(pool.core.status().gpusFree).toBe(2);
  });

  it('is told nobody before its batch is durable', () => {
    const pool = CorePool.ready();
    const ordered = pool.box.orders.length;
    pool.core.command(pool.now, { name: 'user/alice' }, BIND, 100);
    const batch = pool.core.takeBatch();
    expect(batch?.bindings).toMatchObject([{ id: 'b1', state: 'reserved' }]);
    expect(pool.answers.size).toBe(0);
    pool.store.commit(batch as NonNullable<typeof batch>);
    pool.core.committed(pool.now);
    expect(pool.answers.get(100)).toMatchObject({ ok: true });
    expect(pool.box.orders.length).toBe(ordered);
    pool.run();
    expect(pool.box.orders.length).toBe(ordered + 1);
  });
});

describe('unbind and retry', () => {
  it('name bindings that are there, or change none', () => {
    const pool = CorePool.ready();
    const [id] = pool.bound();
    pool.run();
    expect(pool.unbind([id as string, 'b99'])).toMatchObject({
      ok: false,
      error: { code: 'not_found', details: { binding: 'b99' } },
    });
    expect(pool.stored('b1')?.goal).toBe('attached');
    expect(pool.unbind([])).toMatchObject({ ok: false, error: { code: 'invalid_argument' } });
  });

  it('may come twice: giving back what is given back already is done', () => {
    const pool = CorePool.ready();
    pool.bound();
    pool.run();
    pool.host.letsGo = false;
    pool.unbind(['b1', 'b1']);
    pool.run();
    expect(pool.unbind(['b1'])).toMatchObject({ ok: true, bindings: [{ state: 'draining' }] });
    pool.unbind(['b1'], true);
    pool.run();
    expect(pool.state('b1')).toBe('free');
  });

  it('with force does not wait for a host that is not there, and keeps its virtual slot back', () => {
    const pool = CorePool.ready();
    pool.bound();
    pool.run();
    pool.host.disconnect();
    pool.unbind(['b1'], true);
    pool.run();
    expect(pool.state('b1')).toBe('free');
    expect(pool.core.status().gpusFree).toBe(2);
    pool.host.connect();
    // It shows the old row still: nobody gets the slot before that is gone.
    pool.turn();
    expect(pool.bind({ gpus: 2 })).toMatchObject({ ok: false });
    pool.run();
    expect(pool.bind({ gpus: 2 })).toMatchObject({ ok: true });
  });

  it('refuse to try again what is given back', () => {
    const pool = CorePool.ready();
    pool.bound();
    pool.run();
    pool.host.letsGo = false;
    pool.unbind(['b1']);
    expect(pool.retry(['b1'])).toMatchObject({ ok: false, error: { code: 'failed_precondition' } });
  });

  it('leave alone what has not failed', () => {
    const pool = CorePool.ready();
    pool.bound();
    pool.run();
    const before = pool.stored('b1');
    expect(pool.retry(['b1'])).toMatchObject({ ok: true, bindings: [{ state: 'attached' }] });
    expect(pool.stored('b1')).toEqual(before);
  });

  it('wait from one attempt to the next, twice as long each time, but not when asked', () => {
    const pool = CorePool.ready();
    pool.host.isBlind = true;
    pool.bound();
    pool.run();
    const attempts = (): number => pool.stored('b1')?.attempts ?? 0;
    // 60 s for the function to be found, then 1 s, 2 s, 4 s of waiting.
    for (const [index, waitMs] of [1_000, 2_000, 4_000].entries()) {
      pool.pass(60_000);
      expect([pool.state('b1'), attempts()]).toEqual(['failed', index + 1]);
      pool.pass(waitMs - 1);
      expect(pool.state('b1')).toBe('failed');
      pool.pass(1);
      expect(pool.state('b1')).toBe('attaching');
    }
    pool.pass(60_000);
    expect(pool.state('b1')).toBe('failed');
    pool.host.isBlind = false;
    pool.retry(['b1']);
    pool.run();
    expect(pool.state('b1')).toBe('attached');
  });

  it('without retries stay failed', () => {
    const pool = CorePool.ready();
    pool.bound({ retries: false });
    pool.run();
    pool.box.contain(0);
    pool.run();
    pool.pass(600_000);
    expect(pool.state('b1')).toBe('failed');
    expect(pool.core.binding('b1')?.willRetry).toBe(false);
  });
});

it('the log names who asked, for each mutation', () => {
  const pool = CorePool.ready();
  pool.bound({ requestId: 'q1' });
  pool.run();
  pool.ask({ kind: 'retry', requestId: 'q2', bindings: ['b1'] }, 'user/bob');
  pool.ask({ kind: 'unbind', requestId: 'q3', bindings: ['b1'], force: true }, 'user/eve');
  const asked = pool.log.filter(({ actor }) => actor.startsWith('user/'));
  expect(asked.map(({ actor, requestId, action }) => `${actor} ${requestId} ${action}`)).toEqual([
    'user/alice q1 reserved',
    'user/bob q2 retry',
    'user/eve q3 unbind',
  ]);
  expect(pool.log.map(({ position }) => position)).toEqual(pool.log.map((_, index) => index + 1));
});
