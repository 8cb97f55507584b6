/** Records and batches as stores take them, with everything a test does not care about filled in. */
import { type Batch, type Counters, EMPTY_BATCH } from '#manager/domain/batch';
import type {
  BindingRecord,
  BoxRecord,
  BoxSlotRecord,
  HostRecord,
  HostSlotRecord,
  LogRecord,
  RequestRecord,
} from '#manager/domain/records';

export const NO_COUNTS: Counters = { generation: 0, binding: 0, position: 0 };

export function batchOf(part: Partial<Batch> & { readonly counters: Counters }): Batch {
  return { ...EMPTY_BATCH, ...part };
}

export function boxRecord(id: string): BoxRecord {
  return {
    id,
    instance: `${id}-1`,
    version: '0.1.0',
    boxKind: 'pcie',
    zone: '',
    endpoints: [{ path: 'p', address: '127.0.0.1:7001' }],
    seenMs: 1,
  };
}

export function boxSlotRecord(box: string, slot: number): BoxSlotRecord {
  return {
    box,
    slot,
    node: {
      uuid: `${box}-${slot}`,
      model: 'accel',
      memoryBytes: 2 ** 34,
      nvlinkGroup: '',
      bars: [
        { index: 0, sizeBytes: 2 ** 12, prefetchable: false, is64: false },
        { index: 2, sizeBytes: 2 ** 34, prefetchable: true, is64: true },
      ],
    },
    present: true,
    quarantine: '',
  };
}

export function hostRecord(id: string): HostRecord {
  return { id, instance: `${id}-1`, version: '0.1.0', reach: [], seenMs: 1 };
}

export function hostSlotRecord(host: string, slot: number): HostSlotRecord {
  return {
    host,
    slot,
    secondaryBus: slot + 1,
    nonPrefetchable: { base: 0xe000_0000, limit: 0xe00f_ffff },
    prefetchable: { base: 2 ** 38, limit: 2 ** 38 + 2 ** 34 - 1 },
  };
}

/** Binding `b${number}` of slot `number` of box `b1` to slot `number` of host `h1`. */
export function bindingRecord(number: number, part: Partial<BindingRecord> = {}): BindingRecord {
  return {
    id: `b${number}`,
    state: 'reserved',
    goal: 'attached',
    force: false,
    retries: true,
    host: 'h1',
    hostSlot: number,
    box: 'b1',
    boxSlot: number,
    uuid: `b1-${number}`,
    model: 'accel',
    path: 'p',
    generation: number,
    failure: undefined,
    attempts: 0,
    attachment: undefined,
    requestedBy: 'user/alice',
    requestId: `r${number}`,
    createdMs: 1,
    changedMs: 1,
    ...part,
  };
}

export function logRecord(position: number, binding?: BindingRecord): LogRecord {
  return {
    position,
    atMs: position,
    actor: 'user/alice',
    requestId: '',
    subjectKind: binding === undefined ? 'pool' : 'binding',
    subject: binding?.id ?? 'pool',
    action: 'changed',
    message: 'it changed',
    binding,
  };
}

export function requestRecord(requestId: string, part: Partial<RequestRecord> = {}): RequestRecord {
  return {
    caller: 'user/alice',
    requestId,
    fingerprint: 'f',
    bindings: [],
    atMs: 1,
    ...part,
  };
}

/** A box `b1` and a host `h1` of so many slots, as their first batch. */
export function inventoryBatch(slots: number): Batch {
  const numbers = Array.from({ length: slots }, (_, slot) => slot);
  return batchOf({
    boxes: [boxRecord('b1')],
    boxSlots: numbers.map((slot) => boxSlotRecord('b1', slot)),
    hosts: [hostRecord('h1')],
    hostSlots: numbers.map((slot) => hostSlotRecord('h1', slot)),
    paths: [{ host: 'h1', box: 'b1', path: 'p', rttNs: 1500.5, bitsPerSecond: 1e11 }],
    counters: NO_COUNTS,
  });
}
