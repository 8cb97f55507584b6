import { mkdtempSync, rmSync } from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  batchOf,
  bindingRecord,
  boxRecord,
  boxSlotRecord,
  hostRecord,
  hostSlotRecord,
  inventoryBatch,
  logRecord,
  NO_COUNTS,
  requestRecord,
} from '#testkit/store-records';
import type { Batch } from '../domain/batch.ts';
import type { BindingRecord } from '../domain/records.ts';
import { MemoryStore } from './memory-store.ts';
import { SqliteStore } from './sqlite-store.ts';
import type { Store } from './store.ts';

/** What each kind of store must keep; `again` is the store as the next manager finds it. */
interface Subject {
  store: Store;
  again(): Promise<Store>;
  end(): void;
}

const SUBJECTS: Record<string, () => Promise<Subject>> = {
  MemoryStore: () => {
    const store = new MemoryStore();
    return Promise.resolve({ store, again: () => Promise.resolve(store), end: () => {} });
  },
  SqliteStore: async () => {
    const folder = mkdtempSync(path.join(os.tmpdir(), 'dxpu-store-'));
    const opened = () => SqliteStore.open(folder, { version: '0.1.0' });
    const subject = {
      store: await opened(),
      again: async () => {
        subject.store.close();
        subject.store = await opened();
        return subject.store;
      },
      end: () => {
        subject.store.close();
        rmSync(folder, { recursive: true });
      },
    };
    return subject;
  },
};

describe.each(Object.entries(SUBJECTS))('%s', (_, make) => {
  let subject: Subject;
  let store: Store;
  beforeEach(async () => {
    subject = await make();
    store = subject.store;
  });
  afterEach(() => subject.end());

  /** Binding 1 and the log entry of it, on the inventory. */
  const commitBinding = (part: Partial<BindingRecord> = {}): BindingRecord => {
    const binding = bindingRecord(1, part);
    store.commit(inventoryBatch(4));
    store.commit(
      batchOf({
        bindings: [binding],
        log: [logRecord(1, binding)],
        counters: { generation: binding.generation, binding: 1, position: 1 },
      }),
    );
    return binding;
  };

  const refuses = (batch: Batch): void => {
    const before = store.load();
    expect(() => store.commit(batch)).toThrow(expect.objectContaining({ code: 'aborted' }));
    expect(store.load()).toEqual(before);
    expect(store.log(before.counters.position, 10)).toEqual([]);
  };

  it('begins empty', () => {
    expect(store.load()).toEqual({
      bindings: [],
      boxes: [],
      boxSlots: [],
      hosts: [],
      hostSlots: [],
      paths: [],
      requests: [],
      counters: NO_COUNTS,
    });
    expect(store.log(0, 10)).toEqual([]);
  });

  it('gives back what was committed, to the next manager too', async () => {
    const inventory = inventoryBatch(2);
    store.commit(inventory);
    const binding = bindingRecord(1, {
      state: 'failed',
      failure: { reason: 'no-space', message: 'window\u0000 "too" small', during: 'attaching' },
      attachment: {
        bdf: 0x0100,
        bars: [{ index: 2, address: 2 ** 52, sizeBytes: 2 ** 34 }],
      },
      requestedBy: 'user/😀',
    });
    const request = requestRecord('r1', { bindings: ['b1', 'b2'] });
    const entry = logRecord(1, binding);
    store.commit(
      batchOf({
        bindings: [binding],
        requests: [request],
        log: [entry],
        counters: { generation: 1, binding: 1, position: 1 },
      }),
    );
    const expected = {
      bindings: [binding],
      boxes: inventory.boxes,
      boxSlots: inventory.boxSlots,
      hosts: inventory.hosts,
      hostSlots: inventory.hostSlots,
      paths: inventory.paths,
      requests: [request],
      counters: { generation: 1, binding: 1, position: 1 },
    };
    expect(store.load()).toEqual(expected);
    const next = await subject.again();
    expect(next.load()).toEqual(expected);
    expect(next.log(0, 10)).toEqual([entry]);
  });

  it('replaces by key, in its place, and removes', () => {
    commitBinding();
    store.commit(
      batchOf({
        boxes: [{ ...boxRecord('b1'), instance: 'b1-2' }],
        boxSlots: [{ ...boxSlotRecord('b1', 0), quarantine: 'does not come back from reset' }],
        hosts: [{ ...hostRecord('h1'), reach: ['north'] }],
        hostSlots: [{ ...hostSlotRecord('h1', 0), secondaryBus: 77 }],
        paths: [{ host: 'h1', box: 'b1', path: 'p', rttNs: 0, bitsPerSecond: 0 }],
        bindings: [bindingRecord(1, { state: 'programming' })],
        counters: { generation: 1, binding: 1, position: 1 },
      }),
    );
    const loaded = store.load();
    expect(loaded.boxes.map((one) => one.instance)).toEqual(['b1-2']);
    expect(loaded.boxSlots.map((one) => one.quarantine)).toEqual([
      'does not come back from reset',
      '',
      '',
      '',
    ]);
    expect(loaded.hosts.map((one) => one.reach)).toEqual([['north']]);
    expect(loaded.hostSlots.map((one) => one.secondaryBus)).toEqual([77, 2, 3, 4]);
    expect(loaded.paths.map((one) => one.rttNs)).toEqual([0]);
    expect(loaded.bindings.map((one) => one.state)).toEqual(['programming']);
    store.commit(
      batchOf({
        removedBindings: ['b1'],
        counters: { generation: 1, binding: 1, position: 1 },
      }),
    );
    expect(store.load().bindings).toEqual([]);
  });

  it('the last write of a key wins', () => {
    store.commit(inventoryBatch(2));
    store.commit(
      batchOf({
        bindings: [bindingRecord(1), bindingRecord(1, { state: 'programming' })],
        counters: { generation: 1, binding: 1, position: 0 },
      }),
    );
    expect(store.load().bindings).toEqual([bindingRecord(1, { state: 'programming' })]);
  });

  it('gives a slot to the next in the commit that frees it', () => {
    commitBinding();
    const next = bindingRecord(2, { boxSlot: 1, hostSlot: 1 });
    store.commit(
      batchOf({
        removedBindings: ['b1'],
        bindings: [next],
        counters: { generation: 2, binding: 2, position: 1 },
      }),
    );
    expect(store.load().bindings).toEqual([next]);
  });

  it('refuses a second owner of a box slot, with the whole batch', () => {
    commitBinding();
    refuses(
      batchOf({
        boxes: [boxRecord('b2')],
        bindings: [bindingRecord(2), bindingRecord(3, { boxSlot: 1 })],
        requests: [requestRecord('r2')],
        log: [logRecord(2)],
        counters: { generation: 3, binding: 3, position: 2 },
      }),
    );
  });

  it('refuses a second owner of a virtual slot', () => {
    commitBinding();
    refuses(
      batchOf({
        bindings: [bindingRecord(2, { hostSlot: 1 })],
        counters: { generation: 2, binding: 2, position: 1 },
      }),
    );
  });

  it('refuses two owners within one batch', () => {
    store.commit(inventoryBatch(4));
    refuses(
      batchOf({
        bindings: [bindingRecord(1), bindingRecord(2, { boxSlot: 1 })],
        counters: { generation: 2, binding: 2, position: 0 },
      }),
    );
  });

  it('refuses a generation that another has, or that was given out before', () => {
    commitBinding();
    const counters = { generation: 2, binding: 2, position: 1 };
    refuses(batchOf({ bindings: [bindingRecord(2, { generation: 1 })], counters }));
    store.commit(batchOf({ removedBindings: ['b1'], counters }));
    refuses(batchOf({ bindings: [bindingRecord(3, { generation: 1 })], counters }));
    refuses(batchOf({ bindings: [bindingRecord(3, { generation: 2 })], counters }));
    const third = bindingRecord(3);
    store.commit(batchOf({ bindings: [third], counters: { ...counters, generation: 3 } }));
    refuses(
      batchOf({
        bindings: [{ ...third, generation: 2 }],
        counters: { ...counters, generation: 3 },
      }),
    );
    const again = { ...third, generation: 4 };
    store.commit(batchOf({ bindings: [again], counters: { ...counters, generation: 4 } }));
    expect(store.load().bindings).toEqual([again]);
  });

  it('refuses a binding of slots nobody has reported', () => {
    store.commit(inventoryBatch(1));
    const counters = { generation: 9, binding: 9, position: 0 };
    refuses(batchOf({ bindings: [bindingRecord(9, { hostSlot: 0 })], counters }));
    refuses(batchOf({ bindings: [bindingRecord(9, { boxSlot: 0 })], counters }));
    refuses(batchOf({ boxSlots: [boxSlotRecord('b9', 0)], counters }));
    refuses(batchOf({ hostSlots: [hostSlotRecord('h9', 0)], counters }));
    const far = { host: 'h9', box: 'b1', path: 'p', rttNs: 0, bitsPerSecond: 0 };
    refuses(batchOf({ paths: [far], counters }));
    store.commit(batchOf({ paths: [{ ...far, host: 'h1', box: 'b9' }], counters }));
  });

  it('refuses a log position that is taken, and a gap', () => {
    commitBinding();
    const counters = { generation: 1, binding: 1, position: 1 };
    refuses(batchOf({ log: [logRecord(1)], counters }));
    refuses(batchOf({ log: [logRecord(3)], counters: { ...counters, position: 3 } }));
    refuses(batchOf({ log: [logRecord(2), logRecord(2)], counters: { ...counters, position: 2 } }));
  });

  it('refuses counters that go back or tell less than was given out', () => {
    commitBinding({ generation: 5 });
    const counters = { generation: 5, binding: 1, position: 1 };
    refuses(batchOf({ counters: { ...counters, generation: 4 } }));
    refuses(batchOf({ counters: { ...counters, binding: 0 } }));
    refuses(batchOf({ counters: { ...counters, position: 0 } }));
    refuses(batchOf({ counters: { ...counters, position: 2 } }));
    refuses(batchOf({ bindings: [bindingRecord(2, { generation: 6 })], counters }));
    store.commit(batchOf({ counters: { ...counters, generation: 2 ** 52 } }));
    expect(store.load().counters.generation).toBe(2 ** 52);
  });

  it('forgets requests that are older, and those alone', () => {
    store.commit(
      batchOf({
        requests: [requestRecord('a', { atMs: 10 }), requestRecord('b', { atMs: 10.5 })],
        counters: NO_COUNTS,
      }),
    );
    store.commit(
      batchOf({
        requests: [requestRecord('c', { atMs: 3 })],
        forgetRequestsBeforeMs: 10.5,
        counters: NO_COUNTS,
      }),
    );
    expect(store.load().requests.map((one) => one.requestId)).toEqual(['b', 'c']);
  });

  it('keeps the requests of two callers apart', () => {
    store.commit(
      batchOf({
        requests: [requestRecord('a'), requestRecord('a', { caller: 'user/bob' })],
        counters: NO_COUNTS,
      }),
    );
    expect(store.load().requests.map((one) => one.caller)).toEqual(['user/alice', 'user/bob']);
  });

  it('reads the log from a position, so much of it, and of one binding', () => {
    const first = commitBinding();
    const gone = { ...first, state: 'free' as const };
    store.commit(
      batchOf({
        log: [logRecord(2), { ...logRecord(3), binding: gone }, logRecord(4)],
        counters: { generation: 1, binding: 1, position: 4 },
      }),
    );
    // An entry that names a binding without showing it.
    const named = { ...logRecord(5), subjectKind: 'binding' as const, subject: 'b1' };
    store.commit(batchOf({ log: [named], counters: { generation: 1, binding: 1, position: 5 } }));
    const positions = (...args: Parameters<Store['log']>): number[] =>
      store.log(...args).map((entry) => entry.position);
    expect(positions(0, 10)).toEqual([1, 2, 3, 4, 5]);
    expect(positions(2, 2)).toEqual([3, 4]);
    expect(positions(5, 10)).toEqual([]);
    expect(positions(9, 10)).toEqual([]);
    expect(positions(0, 0)).toEqual([]);
    expect(positions(0, 10, 'b1')).toEqual([1, 3, 5]);
    expect(positions(1, 1, 'b1')).toEqual([3]);
    expect(positions(0, 10, 'b2')).toEqual([]);
    expect(store.log(2, 1)).toEqual([{ ...logRecord(3), binding: gone }]);
  });

  it('shares nothing with who gave it', () => {
    const instance = { ...boxRecord('b1') };
    store.commit(batchOf({ boxes: [instance], counters: NO_COUNTS }));
    instance.instance = 'changed';
    expect(store.load().boxes).toEqual([boxRecord('b1')]);
  });

  it('tells names with odd characters apart', async () => {
    const names = [
      'a',
      'A',
      'a ',
      'ä',
      'a\u0308',
      "a'--",
      'a\u0000',
      'a\u0000b',
      '%',
      '_',
      '\\',
      '😀',
      '',
    ];
    store.commit(
      batchOf({
        boxes: names.map(boxRecord),
        boxSlots: names.map((name) => boxSlotRecord(name, 0)),
        requests: names.map((name) => requestRecord(name)),
        counters: NO_COUNTS,
      }),
    );
    const loaded = (await subject.again()).load();
    expect(loaded.boxes.map((one) => one.id)).toEqual(names);
    expect(loaded.boxSlots.map((one) => one.box)).toEqual(names);
    expect(loaded.requests.map((one) => one.requestId)).toEqual(names);
  });
});

it('a commit that was to fail leaves nothing, and the store goes on', () => {
  const store = new MemoryStore();
  store.failNextCommit('resource_exhausted');
  expect(() => store.commit(inventoryBatch(2))).toThrow(
    expect.objectContaining({ code: 'resource_exhausted' }),
  );
  expect(store.load().boxes).toEqual([]);
  store.commit(inventoryBatch(2));
  expect(store.load().boxes).toHaveLength(1);
});
