/**
 * The kinds of records there are. Each has a table of its own wherever records are kept: in the journal
 * of a turn, in a batch, in a snapshot, in a store.
 */
import type {
  BindingRecord,
  BoxRecord,
  BoxSlotRecord,
  HostRecord,
  HostSlotRecord,
  PathRecord,
  RequestRecord,
} from './records.ts';

export interface RecordKinds {
  boxes: BoxRecord;
  boxSlots: BoxSlotRecord;
  hosts: HostRecord;
  hostSlots: HostSlotRecord;
  paths: PathRecord;
  bindings: BindingRecord;
  requests: RequestRecord;
}
export type RecordKind = keyof RecordKinds;

/** Each kind behind those its records refer to. */
export const RECORD_KINDS: readonly RecordKind[] = [
  'boxes',
  'boxSlots',
  'hosts',
  'hostSlots',
  'paths',
  'bindings',
  'requests',
];

export type RecordLists = { readonly [K in RecordKind]: readonly RecordKinds[K][] };
/** By key. */
export type RecordTables = { readonly [K in RecordKind]: Map<string, RecordKinds[K]> };

const KEYS: { readonly [K in RecordKind]: (record: RecordKinds[K]) => string } = {
  boxes: ({ id }) => id,
  boxSlots: ({ box, slot }) => slotKey(box, slot),
  hosts: ({ id }) => id,
  hostSlots: ({ host, slot }) => slotKey(host, slot),
  paths: ({ host, box, path }) => JSON.stringify([host, box, path]),
  bindings: ({ id }) => id,
  requests: ({ caller, requestId }) => requestKey(caller, requestId),
};

/** Two records of one kind with the same key are the same thing at different times. */
export function keyOf<K extends RecordKind>(kind: K, record: RecordKinds[K]): string {
  return KEYS[kind](record);
}

/** Of slot `slot` of a box or a host. */
export function slotKey(owner: string, slot: number): string {
  return `${slot} ${owner}`;
}

export function requestKey(caller: string, requestId: string): string {
  return JSON.stringify([caller, requestId]);
}

export function emptyTables(): RecordTables {
  return {
    boxes: new Map(),
    boxSlots: new Map(),
    hosts: new Map(),
    hostSlots: new Map(),
    paths: new Map(),
    bindings: new Map(),
    requests: new Map(),
  };
}

/** A list for each kind. */
export function recordLists(
  listOf: <K extends RecordKind>(kind: K) => readonly RecordKinds[K][],
): RecordLists {
  return {
    boxes: listOf('boxes'),
    boxSlots: listOf('boxSlots'),
    hosts: listOf('hosts'),
    hostSlots: listOf('hostSlots'),
    paths: listOf('paths'),
    bindings: listOf('bindings'),
    requests: listOf('requests'),
  };
}
