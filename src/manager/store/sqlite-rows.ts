/** Records as rows and back: columns for keys and what is asked for, JSON for the rest. */
import type {
  BindingRecord,
  BoxRecord,
  BoxSlotRecord,
  HostRecord,
  HostSlotRecord,
  LogRecord,
  PathRecord,
  RequestRecord,
} from '../domain/records.ts';
import { bindingOf } from './log-subject.ts';

type BindingColumn = 'id' | 'state' | 'generation' | 'host' | 'hostSlot' | 'box' | 'boxSlot';

export type Cell = string | number | null;

/** Rows come as arrays, in the order of the statement's columns. */
export type BindingRow = [
  id: string,
  state: string,
  generation: number,
  host: string,
  hostSlot: number,
  box: string,
  boxSlot: number,
  record: string,
];
export type KeyedRow = [id: string, record: string];
export type SlotRow = [id: string, slot: number, record: string];
export type PathRow = [
  host: string,
  box: string,
  path: string,
  rttNs: number,
  bitsPerSecond: number,
];
export type RequestRow = [
  caller: string,
  requestId: string,
  fingerprint: string,
  bindings: string,
  atMs: number,
];
export type LogRow = [
  position: number,
  atMs: number,
  actor: string,
  requestId: string,
  subjectKind: string,
  subject: string,
  action: string,
  message: string,
  binding: string | null,
];

export function rowOfBinding(binding: BindingRecord): BindingRow {
  const { id, state, generation, host, hostSlot, box, boxSlot, ...rest } = binding;
  return [id, state, generation, host, hostSlot, box, boxSlot, JSON.stringify(rest)];
}

export function bindingOfRow(row: BindingRow): BindingRecord {
  const [id, state, generation, host, hostSlot, box, boxSlot, record] = row;
  return {
    id,
    state: state as BindingRecord['state'],
    generation,
    host,
    hostSlot,
    box,
    boxSlot,
    // JSON has no `undefined`: what is missing is that.
    failure: undefined,
    attachment: undefined,
    ...(JSON.parse(record) as Omit<BindingRecord, BindingColumn | 'failure' | 'attachment'>),
  };
}

export function rowOfBox({ id, ...rest }: BoxRecord): KeyedRow {
  return [id, JSON.stringify(rest)];
}

export function boxOfRow([id, record]: KeyedRow): BoxRecord {
  return { id, ...(JSON.parse(record) as Omit<BoxRecord, 'id'>) };
}

export function rowOfBoxSlot({ box, slot, ...rest }: BoxSlotRecord): SlotRow {
  return [box, slot, JSON.stringify(rest)];
}

export function boxSlotOfRow([box, slot, record]: SlotRow): BoxSlotRecord {
  return { box, slot, ...(JSON.parse(record) as Omit<BoxSlotRecord, 'box' | 'slot'>) };
}

export function rowOfHost({ id, ...rest }: HostRecord): KeyedRow {
  return [id, JSON.stringify(rest)];
}

export function hostOfRow([id, record]: KeyedRow): HostRecord {
  return { id, ...(JSON.parse(record) as Omit<HostRecord, 'id'>) };
}

export function rowOfHostSlot({ host, slot, ...rest }: HostSlotRecord): SlotRow {
  return [host, slot, JSON.stringify(rest)];
}

export function hostSlotOfRow([host, slot, record]: SlotRow): HostSlotRecord {
  return { host, slot, ...(JSON.parse(record) as Omit<HostSlotRecord, 'host' | 'slot'>) };
}

export function rowOfPath(path: PathRecord): PathRow {
  return [path.host, path.box, path.path, path.rttNs, path.bitsPerSecond];
}

export function pathOfRow([host, box, path, rttNs, bitsPerSecond]: PathRow): PathRecord {
  return { host, box, path, rttNs, bitsPerSecond };
}

export function rowOfRequest(request: RequestRecord): RequestRow {
  const { caller, requestId, fingerprint, bindings, atMs } = request;
  return [caller, requestId, fingerprint, JSON.stringify(bindings), atMs];
}

export function requestOfRow(row: RequestRow): RequestRecord {
  const [caller, requestId, fingerprint, bindings, atMs] = row;
  return {
    caller,
    requestId,
    fingerprint,
    bindings: JSON.parse(bindings) as readonly string[],
    atMs,
  };
}

/** As inserted: what is read back has no column for the binding's id. */
export function rowOfLog(entry: LogRecord): Cell[] {
  return [
    entry.position,
    entry.atMs,
    entry.actor,
    entry.requestId,
    entry.subjectKind,
    entry.subject,
    entry.action,
    entry.message,
    entry.binding === undefined ? null : JSON.stringify(entry.binding),
    bindingOf(entry) ?? null,
  ];
}

export function logOfRow(row: LogRow): LogRecord {
  const [position, atMs, actor, requestId, subjectKind, subject, action, message, binding] = row;
  return {
    position,
    atMs,
    actor,
    requestId,
    subjectKind: subjectKind as LogRecord['subjectKind'],
    subject,
    action,
    message,
    binding:
      binding === null
        ? undefined
        : {
            failure: undefined,
            attachment: undefined,
            ...(JSON.parse(binding) as Omit<
              NonNullable<LogRecord['binding']>,
              'failure' | 'attachment'
            >),
          },
  };
}
