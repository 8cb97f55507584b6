// Commits batches to the store of a folder until it is killed, and prints the position after each.
// Each batch is a few entries of the log with one request id, the last of which says how many there
// are, and the bindings they show: what the store holds must at any time be what its log tells.
//   node store-writer.mjs FOLDER SEED

import { writeSync } from 'node:fs';
import { Prng } from '#base/prng';
import { EMPTY_BATCH } from '#manager/domain/batch';
import { SqliteStore } from '#manager/store/sqlite-store';

const SLOTS = 16;
const [folder = '', seed = '1'] = process.argv.slice(2);

const store = await SqliteStore.open(folder, { version: '0.1.0' });
const start = store.load();
/** @type {Map<number, import('#manager/domain/records').BindingRecord>} by slot */
const bindings = new Map(start.bindings.map((one) => [one.boxSlot, one]));
let { generation, position } = start.counters;
const prng = new Prng(Number(seed));

/** @param {Partial<import('#manager/domain/batch').Batch>} part */
function commit(part) {
  store.commit({
    ...EMPTY_BATCH,
    counters: { generation, binding: generation, position },
    ...part,
  });
  // Past Node's buffers at once: what was printed was acknowledged.
  writeSync(1, `${position}\n`);
}

if (start.boxes.length === 0) {
  const numbers = Array.from({ length: SLOTS }, (_, slot) => slot);
  const window = { base: 1, limit: 0 };
  const node = { uuid: '', model: '', memoryBytes: 0, nvlinkGroup: '', bars: [] };
  commit({
    boxes: [
      { id: 'x', instance: '', version: '', boxKind: 'pcie', zone: '', endpoints: [], seenMs: 0 },
    ],
    boxSlots: numbers.map((slot) => ({ box: 'x', slot, node, present: true, quarantine: '' })),
    hosts: [{ id: 'h', instance: '', version: '', reach: [], seenMs: 0 }],
    hostSlots: numbers.map((slot) => ({
      host: 'h',
      slot,
      secondaryBus: 0,
      nonPrefetchable: window,
      prefetchable: window,
    })),
  });
}

for (;;) {
  const requestId = `after ${position}`;
  const size = 1 + prng.below(12);
  /** @type {import('#manager/domain/records').LogRecord[]} */
  const log = [];
  /** @type {Set<number>} */
  const touched = new Set();
  const removedBindings = [];
  while (touched.size < size) touched.add(prng.below(SLOTS));
  for (const slot of touched) {
    const before = bindings.get(slot);
    const free = before !== undefined && prng.below(2) === 0;
    generation++;
    /** @type {import('#manager/domain/records').BindingRecord} */
    const now = before ?? {
      id: `b${generation}`,
      state: 'reserved',
      goal: 'attached',
      force: false,
      retries: true,
      host: 'h',
      hostSlot: slot,
      box: 'x',
      boxSlot: slot,
      uuid: 'u',
      // Long enough that a batch takes many pages.
      model: 'm'.repeat(prng.below(3000)),
      path: 'p',
      generation,
      failure: undefined,
      attempts: 0,
      attachment: undefined,
      requestedBy: 'user/u',
      requestId,
      createdMs: 0,
      changedMs: 0,
    };
    const next = { ...now, generation, changedMs: position };
    if (free) {
      bindings.delete(slot);
      removedBindings.push(next.id);
    } else bindings.set(slot, next);
    log.push({
      position: ++position,
      atMs: 0,
      actor: 'manager',
      requestId,
      subjectKind: 'binding',
      subject: next.id,
      action: free ? 'freed' : 'kept',
      message: log.length + 1 === size ? `all ${size}` : '',
      binding: free ? { ...next, state: 'free' } : next,
    });
  }
  const changed = [...touched].map((slot) => bindings.get(slot)).filter((one) => one !== undefined);
  commit({ bindings: changed, removedBindings, log });
}
