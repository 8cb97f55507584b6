/** Turns, commits that fail, and watching, over a memory store in virtual time. */
import { beforeEach, describe, expect, it } from 'vitest';
import { DxpuError } from '#base/errors';
import { VirtualClock } from '#base/virtual-clock';
import type { Nanos } from '#base/units';
import { TinyPool } from '#testkit/tiny-pool';
import type { AgentHello, AgentOrder, AgentReport } from '#proto/agent-messages';
import type { Batch, Snapshot } from '../domain/batch.ts';
import type { Caller, Command } from '../domain/commands.ts';
import { MemoryStore } from '../store/memory-store.ts';
import { ManagerShell } from './manager-shell.ts';
import type { WatchedEntries } from './shell.ts';

const alice: Caller = { name: 'user/alice' };
const hello: AgentHello = { kind: 'host', id: 'h1', instance: 'i', version: '1', reach: [] };
const report = (refused: string): AgentReport => ({
  kind: 'box',
  applied: 0,
  whole: true,
  slots: [],
  refused,
});
const retry = (requestId: string): Command => ({ kind: 'retry', requestId, bindings: [] });

let clock: VirtualClock;
let store: MemoryStore & { commits: number };
let pools: TinyPool[];
let fatal: DxpuError[];
let logged: string[];
let shell: ManagerShell;

class CountingStore extends MemoryStore {
  commits = 0;
  override commit(batch: Batch): void {
    super.commit(batch);
    this.commits += 1;
  }
}

function startShell(): ManagerShell {
  const say = (_facts: object, message: string): unknown => logged.push(message);
  return new ManagerShell({
    store,
    clock,
    makePool: (start) => {
      const pool = new TinyPool(start);
      pools.push(pool);
      return pool;
    },
    log: { info: say, warn: say, error: say },
    wallMs: () => 1000,
    onFatal: (error) => fatal.push(error),
  });
}

beforeEach(() => {
  clock = new VirtualClock();
  store = new CountingStore();
  pools = [];
  fatal = [];
  logged = [];
  shell = startShell();
});

/** The newest core. */
const pool = (): TinyPool => pools.at(-1)!;

/** Runs what is due now, and lets promises settle. */
async function turn(): Promise<void> {
  clock.runUntil(clock.now());
  await new Promise((resolve) => setImmediate(resolve));
}

/** How a promise stands, without waiting. */
function watchPromise<T>(promise: Promise<T>): { value?: T; error?: unknown } {
  const seen: { value?: T; error?: unknown } = {};
  promise.then(
    (value) => (seen.value = value),
    (error: unknown) => (seen.error = error),
  );
  return seen;
}

function agent(): { orders: AgentOrder[]; ends: DxpuError[] } & Parameters<
  ManagerShell['openSession']
>[1] {
  const orders: AgentOrder[] = [];
  const ends: DxpuError[] = [];
  return {
    orders,
    ends,
    order: (order) => orders.push(order),
    end: (error) => ends.push(error),
  };
}

describe('a turn', () => {
  it('commits all its calls at once, then answers them', async () => {
    const calls = ['a', 'b', 'c'].map((id) => watchPromise(shell.command(alice, retry(id))));
    await new Promise((resolve) => setImmediate(resolve));
    expect(calls).toEqual([{}, {}, {}]);
    expect(store.commits).toBe(0);
    await turn();
    expect(calls.map((one) => one.value?.ok)).toEqual([true, true, true]);
    expect(store.commits).toBe(1);
    expect(store.log(0, 10).map((one) => one.requestId)).toEqual(['a', 'b', 'c']);
  });

  it('a read waits for the commit of what it may have seen', async () => {
    await turn();
    const before = watchPromise(shell.read((now) => now.status().position));
    await new Promise((resolve) => setImmediate(resolve));
    expect(before.value).toBe(0);
    void shell.command(alice, retry('a'));
    const during = watchPromise(
      shell.read((now) => [now.status().position, store.log(0, 10).length]),
    );
    await new Promise((resolve) => setImmediate(resolve));
    expect(during).toEqual({});
    await turn();
    expect(during.value).toEqual([1, 1]);
  });

  it("what a query throws is its caller's alone", async () => {
    const wrong = new DxpuError('invalid_argument', 'no such thing');
    const failing = watchPromise(
      shell.read(() => {
        throw wrong;
      }),
    );
    await turn();
    expect(failing.error).toBe(wrong);
    expect(fatal).toEqual([]);
  });

  it('a deadline of the core is a turn of its own', async () => {
    pool().deadlineNs = 5e9;
    void shell.command(alice, retry('a'));
    await turn();
    clock.runUntil(4.9e9 as Nanos);
    expect(store.commits).toBe(1);
    clock.runUntil(5e9 as Nanos);
    expect(store.log(0, 10).map((one) => one.requestId)).toEqual(['a', 'tick']);
  });
});

describe('sessions', () => {
  it('orders go to their stream once durable', async () => {
    const one = agent();
    shell.openSession(hello, one);
    expect(one.orders).toEqual([]);
    await turn();
    expect(one.orders.map(({ revision }) => revision)).toEqual([1]);
  });

  it('a second one of an identity ends with already_exists, the first goes on', async () => {
    const one = agent();
    const two = agent();
    const first = shell.openSession(hello, one);
    shell.openSession(hello, two);
    await turn();
    expect(two.ends.map(({ code }) => code)).toEqual(['already_exists']);
    expect(one.ends).toEqual([]);
    first.close();
    const three = agent();
    shell.openSession(hello, three);
    await turn();
    expect(three.orders.length).toBe(1);
  });

  it('one that breaks the contract ends with failed_precondition, and the core is told once', async () => {
    const one = agent();
    const session = shell.openSession(hello, one);
    await turn();
    session.report(report('lie'));
    await turn();
    await turn();
    session.report(report(''));
    session.close();
    await turn();
    expect(one.ends.map(({ code }) => code)).toEqual(['failed_precondition']);
    expect(pool().calls).toEqual(['connected 1', 'report 1', 'disconnected 1']);
  });
});

describe('a commit that fails', () => {
  it('fails every call of the turn, ends sessions, and a new core begins from the store', async () => {
    const one = agent();
    shell.openSession(hello, one);
    void shell.command(alice, retry('kept'));
    await turn();
    store.failNextCommit('resource_exhausted');
    const calls = ['a', 'b'].map((id) => watchPromise(shell.command(alice, retry(id))));
    const read = watchPromise(shell.read((now) => now.status().position));
    await turn();
    for (const call of calls) expect(call.error).toMatchObject({ code: 'resource_exhausted' });
    expect(one.ends.map(({ code }) => code)).toEqual(['unavailable']);
    expect(one.ends[0]?.message).toContain('could not write to its store');
    expect(pools.length).toBe(2);
    expect(pool().start.snapshot).toMatchObject({ counters: { position: 1 } } as Partial<Snapshot>);
    // The read was of a state that never was: it is answered from the store's.
    expect(read.value).toBe(1);
    const again = watchPromise(shell.command(alice, retry('a')));
    await turn();
    expect(again.value).toMatchObject({ ok: true });
    expect(store.log(0, 10).map((entry) => entry.requestId)).toEqual(['kept', 'a']);
  });

  it('and a load that fails too is the end', async () => {
    store.failNextCommit('unavailable');
    store.load = () => {
      throw new DxpuError('data_loss', 'the file is torn');
    };
    const call = watchPromise(shell.command(alice, retry('a')));
    await turn();
    expect(call.error).toMatchObject({ code: 'unavailable' });
    expect(fatal).toMatchObject([{ code: 'data_loss' }]);
    expect(fatal[0]?.message).toContain('the store cannot be read any more');
    await expect(shell.command(alice, retry('b'))).rejects.toMatchObject({ code: 'data_loss' });
    await expect(shell.read(() => 0)).rejects.toMatchObject({ code: 'data_loss' });
    expect(() => shell.openSession(hello, agent())).toThrow('the file is torn');
  });

  it('refuses for a while when loading took long, so that it does nothing but load', async () => {
    store.failNextCommit('resource_exhausted');
    const load = store.load.bind(store);
    const clockNow = clock.now.bind(clock);
    let slept = 0;
    clock.now = () => (clockNow() + slept) as Nanos;
    store.load = () => {
      slept = 1e9;
      return load();
    };
    void shell.command(alice, retry('a')).catch(() => {});
    clock.step();
    // Loading took 1 s of the clock: for 2 s from its end nothing is tried.
    await expect(shell.command(alice, retry('b'))).rejects.toMatchObject({
      code: 'resource_exhausted',
    });
    slept = 3e9;
    const later = watchPromise(shell.command(alice, retry('c')));
    clock.step();
    await new Promise((resolve) => setImmediate(resolve));
    clock.step();
    await new Promise((resolve) => setImmediate(resolve));
    expect(later.value).toMatchObject({ ok: true });
  });
});

it('an exception of the core is the end: nothing of its turn is committed', async () => {
  const one = agent();
  const session = shell.openSession(hello, one);
  await turn();
  const call = watchPromise(shell.command(alice, retry('a')));
  session.report(report('bug'));
  await turn();
  expect(store.commits).toBe(0);
  expect(call.error).toMatchObject({ code: 'internal' });
  expect(one.ends.map(({ code }) => code)).toEqual(['unavailable']);
  expect(fatal).toMatchObject([{ code: 'internal' }]);
});

it('stop commits what is pending and answers it', async () => {
  const call = watchPromise(shell.command(alice, retry('a')));
  const one = agent();
  shell.openSession(hello, one);
  shell.stop('asked for');
  await turn();
  expect(call.value).toMatchObject({ ok: true });
  expect(store.log(0, 10).length).toBe(1);
  expect(one.ends.at(-1)).toMatchObject({ code: 'unavailable' });
  expect(one.ends.at(-1)?.message).toContain('asked for');
  await expect(shell.command(alice, retry('b'))).rejects.toMatchObject({ code: 'unavailable' });
});

describe('watching', () => {
  const entries = async (many: number): Promise<void> => {
    for (let index = 0; index < many; index++) pool().entry('manager', `r${index}`);
    void shell.command(alice, retry('last'));
    await turn();
  };
  async function collect(
    watch: AsyncIterable<WatchedEntries>,
    until: (seen: WatchedEntries[]) => boolean = () => false,
  ): Promise<WatchedEntries[]> {
    const seen: WatchedEntries[] = [];
    for await (const one of watch) {
      seen.push(one);
      if (until(seen)) break;
    }
    return seen;
  }
  const positions = (seen: WatchedEntries[]): number[] =>
    seen.flatMap((one) => one.entries.map(({ position }) => position));
  const signal = new AbortController().signal;

  it('gives the whole log and ends', async () => {
    // 5,000 and one entries: more than are kept, so that the store and the tail both take part.
    await entries(5000);
    const seen = await collect(shell.watch({ after: 0, follow: false, signal }));
    expect(positions(seen)).toEqual(Array.from({ length: 5001 }, (_, index) => index + 1));
    expect(seen.filter((one) => one.caughtUp).length).toBe(1);
    expect(seen.at(-1)).toMatchObject({ position: 5001, caughtUp: true });
  });

  it('goes on behind a position, after a restart too', async () => {
    await entries(10);
    shell.stop('restart');
    shell = startShell();
    await entries(10);
    const seen = await collect(shell.watch({ after: 7, follow: false, signal }));
    // 2 × (10 + 1) entries.
    expect(positions(seen)).toEqual(Array.from({ length: 15 }, (_, index) => index + 8));
  });

  it('goes on behind any position, wherever the newest entries begin to be kept', async () => {
    await entries(5000);
    // They are 2,048 of 5,001, kept from 2,954 on: all around it, and each end.
    for (const after of [0, ...Array.from({ length: 9 }, (_, index) => 2948 + index), 5000, 5001]) {
      const seen = await collect(shell.watch({ after, follow: false, signal }));
      const expected = Array.from({ length: 5001 - after }, (_, index) => after + 1 + index);
      expect(positions(seen)).toEqual(expected);
    }
  });

  it('an empty log is caught up with at once', async () => {
    const seen = await collect(shell.watch({ after: 0, follow: false, signal }));
    expect(seen).toEqual([{ entries: [], position: 0, caughtUp: true }]);
  });

  it('refuses a position that is not there yet', async () => {
    await entries(1);
    await expect(collect(shell.watch({ after: 3, follow: false, signal }))).rejects.toMatchObject({
      code: 'out_of_range',
      details: { after: 3, position: 2 },
    });
  });

  it('follows what comes, and one that is slow misses nothing', async () => {
    await entries(3);
    const fast = collect(
      shell.watch({ after: 0, follow: true, signal }),
      (seen) => seen.at(-1)!.position >= 10_004,
    );
    const slow = shell.watch({ after: 0, follow: true, signal })[Symbol.asyncIterator]();
    const first = await slow.next();
    // 4 + 10,000: far more than the tail keeps.
    for (let round = 0; round < 10; round++) await entries(999);
    expect(positions(await fast)).toEqual(Array.from({ length: 10_004 }, (_, index) => index + 1));
    const seen = [first.value!];
    while (seen.at(-1)!.position < 10_004) seen.push((await slow.next()).value!);
    expect(positions(seen)).toEqual(Array.from({ length: 10_004 }, (_, index) => index + 1));
    await slow.return?.();
  });

  it('ends with its signal, and with an error when the manager stops', async () => {
    const given = new AbortController();
    const mine = collect(shell.watch({ after: 0, follow: true, signal: given.signal }));
    const others = collect(shell.watch({ after: 0, follow: true, signal }));
    const failed = expect(others).rejects.toMatchObject({ code: 'unavailable' });
    await turn();
    given.abort();
    expect((await mine).length).toBe(1);
    shell.stop('asked for');
    await failed;
  });

  it('of one binding sees its entries alone, and knows how far it is', async () => {
    await entries(3);
    const seen = await collect(shell.watch({ after: 0, follow: false, binding: 'b1', signal }));
    expect(seen).toEqual([{ entries: [], position: 4, caughtUp: true }]);
  });
});
