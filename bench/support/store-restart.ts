import Sqlite from 'better-sqlite3';
import * as path from 'node:path';
import { PoolCore } from '#manager/domain/pool-core';
import { EMPTY_BATCH } from '#manager/domain/batch';
import type { BindingRecord, BoxSlotRecord, HostSlotRecord } from '#manager/domain/records';
import { SqliteStore } from '#manager/store/sqlite-store';
import { figure, type Figure, type Pair } from './figures.ts';

const BOXES = 12_500;
const SLOTS = 8;
const HOSTS = 10_000;
const BINDINGS = 50_000;
const PATHS_PER_HOST = 8;
const GIB = 2 ** 30;
const BARS = [
  { index: 0, sizeBytes: 16 * 2 ** 20, prefetchable: false, is64: false },
  { index: 1, sizeBytes: 32 * GIB, prefetchable: true, is64: true },
  { index: 3, sizeBytes: 32 * 2 ** 20, prefetchable: true, is64: true },
];

/** Seconds from an unopened store to a core that takes calls: 100,000 GPU nodes, 50,000 bindings. */
export async function restartFigure(folder: string, blocks: number): Promise<Figure> {
  await fill(folder);
  const pairs: Pair[] = [];
  for (let block = -1; block < blocks; block++) {
    const began = performance.now();
    const store = await SqliteStore.open(folder, { version: 'bench' });
    const core = new PoolCore({ sink: NOWHERE, snapshot: store.load(), wallMs: Date.now });
    const value = (performance.now() - began) / 1000;
    const { gpus, bindings } = core.status();
    if (gpus !== BOXES * SLOTS || bindings !== BINDINGS) throw new Error('the pool is not whole');
    store.close();
    const baseline = readEverything(folder) / 1000;
    if (block >= 0) pairs.push({ value, baseline });
  }
  return figure('restart, 100,000 GPU nodes, 50,000 bindings', 's', pairs, 'printed');
}

const NOWHERE = { answer: () => {}, order: () => {}, endSession: () => {}, logged: () => {} };

/** The raw side: ms to read and parse the same records and do nothing with them. */
function readEverything(folder: string): number {
  const began = performance.now();
  const db = new Sqlite(path.join(folder, 'pool.db'), { readonly: true });
  let parsed = 0;
  for (const table of ['box', 'box_slot', 'host', 'host_slot', 'path', 'binding', 'request']) {
    const records = db.prepare<[], string>(`SELECT record FROM ${table}`).pluck().all();
    for (const record of records) if (JSON.parse(record) !== null) parsed++;
  }
  db.close();
  if (parsed < BINDINGS) throw new Error('the file is not whole');
  return performance.now() - began;
}

async function fill(folder: string): Promise<void> {
  const store = await SqliteStore.open(folder, { version: 'bench' });
  const times = <T>(count: number, make: (index: number) => T): T[] =>
    Array.from({ length: count }, (_, index) => make(index));
  store.commit({
    ...EMPTY_BATCH,
    boxes: times(BOXES, (box) => ({
      id: `box${box}`,
      instance: `i${box}`,
      version: 'bench',
      boxKind: 'pcie',
      zone: `z${box >> 3}`,
      endpoints: [{ path: 'p', address: '127.0.0.1:1' }],
      seenMs: 1,
    })),
    boxSlots: times(BOXES * SLOTS, slotOfBox),
    hosts: times(HOSTS, (host) => ({
      id: `host${host}`,
      instance: `i${host}`,
      version: 'bench',
      reach: [],
      seenMs: 1,
    })),
    hostSlots: times(HOSTS * SLOTS, slotOfHost),
    paths: times(HOSTS * PATHS_PER_HOST, (path) => {
      const host = Math.floor(path / PATHS_PER_HOST);
      const box = `box${(host + (path % PATHS_PER_HOST)) % BOXES}`;
      return { host: `host${host}`, box, path: 'p', rttNs: 2000, bitsPerSecond: 1e11 };
    }),
  });
  const bindings = times(BINDINGS, bindingOf);
  const counted = { generation: BINDINGS, binding: BINDINGS };
  store.commit({
    ...EMPTY_BATCH,
    bindings,
    requests: bindings.map((one) => ({
      caller: one.requestedBy,
      requestId: one.requestId,
      fingerprint: 'f',
      bindings: [one.id],
      atMs: Date.now(),
    })),
    log: bindings.map((binding, index) => ({
      position: index + 1,
      atMs: 1,
      actor: 'manager',
      requestId: '',
      subjectKind: 'binding',
      subject: binding.id,
      action: 'attached',
      message: '',
      binding,
    })),
    counters: { ...counted, position: BINDINGS },
  });
  store.close();
}

function slotOfBox(index: number): BoxSlotRecord {
  const [box, slot] = [Math.floor(index / SLOTS), index % SLOTS];
  const node = {
    uuid: `GPU-${box}-${slot}`,
    model: 'accel',
    memoryBytes: 24 * GIB,
    nvlinkGroup: '',
    bars: BARS,
  };
  return { box: `box${box}`, slot, node, present: true, quarantine: '' };
}

function slotOfHost(index: number): HostSlotRecord {
  const [host, slot] = [Math.floor(index / SLOTS), index % SLOTS];
  const nonPrefetchable = 0xc000_0000 + slot * 32 * 2 ** 20;
  const prefetchable = 2 ** 40 + slot * 64 * GIB;
  return {
    host: `host${host}`,
    slot,
    secondaryBus: slot + 1,
    nonPrefetchable: { base: nonPrefetchable, limit: nonPrefetchable + 32 * 2 ** 20 - 1 },
    prefetchable: { base: prefetchable, limit: prefetchable + 64 * GIB - 1 },
  };
}

/** Every second GPU node is bound, five to a host. */
function bindingOf(index: number): BindingRecord {
  const node = slotOfBox(index * 2);
  const slot = slotOfHost((index % HOSTS) * SLOTS + Math.floor(index / HOSTS));
  return {
    id: `b${index + 1}`,
    state: 'attached',
    goal: 'attached',
    force: false,
    retries: true,
    host: slot.host,
    hostSlot: slot.slot,
    box: node.box,
    boxSlot: node.slot,
    uuid: node.node.uuid,
    model: node.node.model,
    path: 'p',
    generation: index + 1,
    failure: undefined,
    attempts: 0,
    attachment: {
      bdf: slot.secondaryBus << 8,
      bars: [
        { index: 0, address: slot.nonPrefetchable.base, sizeBytes: 16 * 2 ** 20 },
        { index: 1, address: slot.prefetchable.base, sizeBytes: 32 * GIB },
        { index: 3, address: slot.prefetchable.base + 32 * GIB, sizeBytes: 32 * 2 ** 20 },
      ],
    },
    requestedBy: 'user/bench',
    requestId: `r${index}`,
    createdMs: 1,
    changedMs: 1,
  };
}
