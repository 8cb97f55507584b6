import { mkdtempSync, rmSync } from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { expect, it } from 'vitest';
import { DxpuError } from '#base/errors';
import { fc } from '#testkit/properties';
import {
  batchOf,
  bindingRecord,
  boxRecord,
  boxSlotRecord,
  inventoryBatch,
  logRecord,
  NO_COUNTS,
  requestRecord,
} from '#testkit/store-records';
import type { Batch, Counters } from '../domain/batch.ts';
import { MemoryStore } from './memory-store.ts';
import { SqliteStore } from './sqlite-store.ts';
import type { Store } from './store.ts';

const SLOTS = 3;
const slot = fc.constantFrom(0, 1, 2, 0, 1, 2, 0, 1, 2, SLOTS); // The last is one too many.
const number = fc.integer({ min: 1, max: 4 });
const text = fc.oneof(fc.constantFrom('', 'r1', 'r2'), fc.string({ unit: 'binary', maxLength: 4 }));

/** What a batch does, with generations and positions counted from what the store has. */
const change = fc.record({
  binds: fc.array(
    fc.record({
      number,
      boxSlot: slot,
      hostSlot: slot,
      rise: fc.constantFrom(1, 1, 1, 1, 1, 1, 2, 0, -1),
    }),
    { maxLength: 3 },
  ),
  removes: fc.array(number, { maxLength: 2 }),
  entries: fc.array(fc.constantFrom(1, 1, 1, 1, 1, 1, 1, 1, 0, 2), { maxLength: 3 }),
  requests: fc.array(fc.record({ requestId: text, atMs: fc.nat(20) }), { maxLength: 2 }),
  forget: fc.option(fc.nat(20), { nil: undefined }),
  texts: text,
  lies: fc.constantFrom(0, 0, 0, 0, 0, 0, 0, 0, -1, 1),
});

function batchFrom(step: Step, at: Counters): Batch {
  let generation = at.generation;
  const bindings = step.binds.map(({ number: id, boxSlot, hostSlot, rise }) => {
    generation = Math.max(1, generation + rise);
    return bindingRecord(id, { boxSlot, hostSlot, generation, model: step.texts });
  });
  let position = at.position;
  const log = step.entries.map((by) => logRecord((position += by), bindings[0]));
  return batchOf({
    bindings,
    removedBindings: step.removes.map((id) => `b${id}`),
    boxes: [boxRecord(`box ${step.texts}`)],
    boxSlots: [boxSlotRecord(`box ${step.texts}`, 0)],
    requests: step.requests.map((one) => requestRecord(one.requestId, { atMs: one.atMs })),
    forgetRequestsBeforeMs: step.forget,
    log,
    counters: {
      generation: Math.max(at.generation, ...bindings.map((one) => one.generation)) + step.lies,
      binding: at.binding,
      position,
    },
  });
}
type Step = typeof change extends fc.Arbitrary<infer T> ? T : never;

/** Regression: the memory store judged a generation that a later record of the batch replaces. */
const REPLACED: Step = {
  binds: ([1, 1, -1] as const).map((rise) => ({ number: 1, boxSlot: 0, hostSlot: 0, rise })),
  removes: [],
  entries: [],
  requests: [],
  forget: undefined,
  texts: '',
  lies: -1,
};

function outcome(store: Store, batch: Batch): string {
  try {
    store.commit(batch);
    return 'done';
  } catch (error) {
    return DxpuError.from(error).code;
  }
}

it('both stores take and refuse the same, and hold the same, across reopening', async () => {
  const counts = { done: 0, aborted: 0 };
  await fc.assert(
    fc.asyncProperty(fc.array(change, { maxLength: 12 }), async (steps) => {
      const folder = mkdtempSync(path.join(os.tmpdir(), 'dxpu-store-'));
      let sqlite = await SqliteStore.open(folder, { version: '0.1.0' });
      try {
        const memory = new MemoryStore();
        for (const store of [memory, sqlite]) store.commit(inventoryBatch(SLOTS));
        expect(memory.load().counters).toEqual(NO_COUNTS);
        for (const step of steps) {
          const batch = batchFrom(step, memory.load().counters);
          const expected = outcome(memory, batch);
          expect(outcome(sqlite, batch)).toBe(expected);
          expect(sqlite.load()).toEqual(memory.load());
          counts[expected as 'done' | 'aborted']++;
        }
        sqlite.close();
        sqlite = await SqliteStore.open(folder, { version: '0.1.0' });
        expect(sqlite.load()).toEqual(memory.load());
        expect(sqlite.log(0, 100)).toEqual(memory.log(0, 100));
        expect(sqlite.log(0, 100, 'b1')).toEqual(memory.log(0, 100, 'b1'));
        // single-owner, said without either store.
        const { bindings } = memory.load();
        for (const key of ['boxSlot', 'hostSlot', 'generation'] as const) {
          expect(new Set(bindings.map((one) => one[key])).size).toBe(bindings.length);
        }
      } finally {
        sqlite.close();
        rmSync(folder, { recursive: true });
      }
    }),
    { numRuns: 100, examples: [[[REPLACED]]] },
  );
  // Both kinds were tried.
  expect(counts.done).toBeGreaterThan(100);
  expect(counts.aborted).toBeGreaterThan(100);
});
