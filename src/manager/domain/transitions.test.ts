/**
 * Every row of the table is taken in a scenario made from the row itself: the binding is brought to
 * `from`, then what the row is about is made to happen. A row that is added is tested so too, or names
 * here what is missing to reach it. Then every failure is left, both ways.
 */
import { describe, expect, it } from 'vitest';
import { CorePool, demandOf } from '#testkit/core-pool';
import { nodeOf } from '#testkit/core-pool-box';
import { type BindingState, FAILURE_REASONS, type FailureReason } from './records.ts';
import { type Transition, TRANSITIONS } from './transitions.ts';

/** Brings binding b1, of slot 0 of box b1 for slot 0 of host h1, to a state, and holds it there. */
const REACH: Record<BindingState, (pool: CorePool) => void> = {
  reserved: (pool) => {
    pool.bound();
    // It would go on in the next turn.
    pool.host.disconnect();
    pool.run();
  },
  programming: (pool) => {
    pool.box.isDeaf = true;
    pool.bound();
    pool.run();
  },
  attaching: (pool) => {
    pool.host.isBlind = true;
    pool.bound();
    pool.run();
  },
  attached: (pool) => {
    pool.bound();
    pool.run();
  },
  draining: (pool) => {
    REACH.attached(pool);
    pool.host.letsGo = false;
    pool.unbind(['b1']);
    pool.run();
  },
  detaching: (pool) => {
    REACH.attached(pool);
    pool.host.keepsRows = true;
    pool.unbind(['b1']);
    pool.run();
  },
  scrubbing: (pool) => {
    REACH.attached(pool);
    pool.box.scrubsForever = true;
    pool.unbind(['b1']);
    pool.run();
  },
  failed: (pool) => {
    REACH.attached(pool);
    pool.host.disconnect();
    pool.box.contain(0);
    pool.box.say(false);
    pool.run();
  },
};

/** More than the time of any step. */
const LONG_MS = 121_000;

/** Between two attempts of a binding that has failed often. */
const LONGEST_WAIT_MS = 60_000;

const ONE = demandOf({});

/** Makes happen what a failure is about. */
const CAUSE: Record<FailureReason, (pool: CorePool, from: BindingState) => void> = {
  'node-gone': ({ box }) => {
    box.slot(0).node = undefined;
    box.say(false);
  },
  quarantined: ({ box }) => {
    Object.assign(box.slot(0), { state: 'quarantined', clean: false, reason: 'memory errors' });
    box.say(false);
  },
  'box-restarted': ({ box }) => {
    box.restart();
    box.connect();
  },
  'host-restarted': ({ host }) => {
    host.restart();
    host.connect();
  },
  'row-lost': ({ box, host }, from) => {
    if (from === 'programming') {
      // Another's row, as after a restore of the store.
      host.disconnect();
      host.slot(0).row = { box: 'b9', boxSlot: 3, generation: 1 };
      host.connect();
      return;
    }
    Object.assign(box.slot(0), { row: undefined, state: 'unused' });
    box.say(false);
  },
  'link-down': ({ box }) => {
    box.contain(0);
    box.say(false);
  },
  'order-refused': (pool, from) => {
    if (from === 'programming') {
      Object.assign(pool.box, { refuses: 'no room in the table', isDeaf: false });
      pool.run();
      return;
    }
    // The order that plugs the function in is refused, the next time it comes.
    Object.assign(pool.host, { refuses: 'no room in the table', refusesPlugs: true });
    CAUSE['host-restarted'](pool, from);
    pool.run();
    pool.pass(1_000);
  },
  'no-space': ({ host }) => {
    host.slot(0).problem = { kind: 'no-space', message: 'BAR 2 needs 16 GiB' };
    host.say(false);
  },
  'function-unusable': ({ host }) => {
    host.slot(0).problem = { kind: 'no-driver', message: 'nothing drives it' };
    host.say(false);
  },
  'box-unreachable': (pool) => {
    pool.box.disconnect();
    pool.pass(LONG_MS);
  },
  'host-unreachable': (pool) => {
    pool.host.disconnect();
    pool.pass(LONG_MS);
  },
  'programming-timeout': (pool, from) => {
    if (from === 'reserved') {
      // The box found its device dirty, and takes its time.
      Object.assign(pool.box, { scrubsForever: true });
      pool.box.slot(0).clean = false;
      pool.box.say(false);
      pool.host.connect();
      pool.run();
    }
    pool.pass(LONG_MS, false);
  },
  'attaching-timeout': (pool) => pool.pass(LONG_MS, false),
  'drain-timeout': (pool) => pool.pass(LONG_MS, false),
  'detaching-timeout': (pool) => pool.pass(LONG_MS, false),
  'scrubbing-timeout': (pool) => pool.pass(LONG_MS, false),
};

/** Steps that are no failures, and that the ways of `REACH` do not take. */
const STEPS: Record<string, (pool: CorePool) => void> = {
  'reserved>free': (pool) => {
    REACH.reserved(pool);
    pool.unbind(['b1']);
  },
  'programming>detaching': (pool) => {
    REACH.programming(pool);
    pool.unbind(['b1']);
  },
  'attaching>draining': (pool) => {
    REACH.attaching(pool);
    pool.unbind(['b1']);
  },
  'failed>programming': (pool) => {
    REACH.attached(pool);
    CAUSE['link-down'](pool, 'attached');
    pool.pass(1_000);
  },
  'failed>draining': (pool) => {
    REACH.draining(pool);
    CAUSE['drain-timeout'](pool, 'draining');
    pool.unbind(['b1']);
  },
  'failed>detaching': (pool) => {
    REACH.attached(pool);
    CAUSE['link-down'](pool, 'attached');
    pool.unbind(['b1']);
  },
  'failed>free': (pool) => {
    REACH.attached(pool);
    CAUSE.quarantined(pool, 'attached');
    pool.unbind(['b1']);
    pool.box.slot(0).row = undefined;
    pool.run();
  },
};

/** Everything is as it should be again. */
function heal(pool: CorePool): void {
  const { box, host } = pool;
  Object.assign(box, { isDeaf: false, scrubsForever: false, refuses: '' });
  Object.assign(host, {
    isDeaf: false,
    isBlind: false,
    letsGo: true,
    keepsRows: false,
    refuses: '',
  });
  for (const [number, slot] of box.slots) {
    slot.node ??= nodeOf(`b1-gpu${number}`);
    if (slot.state === 'quarantined') Object.assign(slot, { state: 'unused', row: undefined });
  }
  for (const slot of host.slots.values()) slot.problem = undefined;
  if (box.session === undefined) box.connect();
  if (host.session === undefined) host.connect();
  pool.run();
}

/** A pool in which the row was taken last of all. */
function taken(row: Transition): CorePool {
  const pool = CorePool.ready();
  if (row.reason !== undefined) {
    const { from } = row;
    REACH[from](pool);
    expect(pool.state('b1')).toBe(from);
    CAUSE[row.reason](pool, from);
  } else if (STEPS[row.name] !== undefined) {
    STEPS[row.name]?.(pool);
  } else {
    // Of the plain way there and back.
    REACH.attached(pool);
    pool.unbind(['b1']);
    pool.run();
  }
  pool.turn();
  return pool;
}

const FAILURES = TRANSITIONS.filter(({ reason }) => reason !== undefined);

it('has a name for each row, and no name twice', () => {
  const names = TRANSITIONS.map(({ name }) => name);
  expect(new Set(names).size).toBe(names.length);
  for (const { name, from, to, reason } of TRANSITIONS) {
    expect(name).toBe(reason === undefined ? `${from}>${to}` : `${from}>failed(${reason})`);
  }
});

it('knows a way to fail for each reason there is', () => {
  expect(new Set(FAILURES.map(({ reason }) => reason))).toEqual(
    new Set(Object.keys(FAILURE_REASONS)),
  );
});

describe('every row is taken', () => {
  it.each(TRANSITIONS.map((row) => [row.name, row] as const))('%s', (name, row) => {
    const pool = taken(row);
    expect(pool.steps).toContain(name);
    // What was decided is durable, and the log tells it.
    const record = pool.stored('b1');
    expect(record?.state ?? 'free').toBe(pool.state('b1'));
    expect(pool.log.some(({ subject, action }) => subject === 'b1' && action === row.to)).toBe(
      true,
    );
  });
});

describe('every failure', () => {
  const cases = FAILURES.map((row) => [row.name, row] as const);

  it.each(cases)('%s says why and owns its slots', (name, row) => {
    const pool = taken(row);
    const index = pool.steps.indexOf(name);
    const entry = pool.log.filter(({ action }) => action === 'failed').at(-1);
    expect(index).toBeGreaterThan(0);
    expect(entry?.message).toContain(`${row.reason}: `);
    if (pool.state('b1') !== 'failed') return;
    expect(pool.stored('b1')?.failure).toMatchObject({
      reason: row.reason,
      during: row.from === 'failed' ? 'attached' : row.from,
    });
    expect(pool.core.gpus({}, '', 10).items[0]).toMatchObject({ binding: 'b1' });
    expect(pool.core.dryRun({ ...ONE, gpus: 2 }).ok).toBe(false);
  });

  it.each(cases)('%s is left for what was asked, once the cause is gone', (_name, row) => {
    const pool = taken(row);
    const before = pool.stored('b1');
    heal(pool);
    pool.pass(LONGEST_WAIT_MS);
    if (before?.goal === 'attached') {
      if (!FAILURE_REASONS[row.reason as FailureReason].retries) {
        expect(pool.state('b1')).toBe('failed');
        expect(pool.core.binding('b1')?.willRetry).toBe(false);
        pool.retry(['b1']);
        pool.run();
      }
      expect(pool.state('b1')).toBe('attached');
      expect(pool.stored('b1')).toMatchObject({ attempts: 0, failure: undefined });
      expect(pool.stored('b1')?.generation).toBeGreaterThan(before.generation);
    } else {
      if (row.reason === 'drain-timeout') {
        expect(pool.state('b1')).toBe('failed');
        pool.unbind(['b1']);
        pool.run();
      }
      expect(pool.state('b1')).toBe('free');
    }
  });

  it.each(cases)('%s is left by giving it back, with and without force', (_name, row) => {
    for (const force of [false, true]) {
      const pool = taken(row);
      if (pool.state('b1') !== 'free') pool.unbind(['b1'], force);
      heal(pool);
      pool.pass(LONGEST_WAIT_MS);
      expect(pool.state('b1')).toBe('free');
      expect(pool.core.status()).toMatchObject({ gpusFree: 2, bindings: 0 });
      // The same slots go to the next.
      pool.bound({ gpus: 2 });
      pool.run();
      expect(pool.core.status()).toMatchObject({ bindingsAttached: 2 });
    }
  });
});
