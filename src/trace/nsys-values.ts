/**
 * What the numbers of an Nsight Systems export mean: kinds of copies and of memory, by the tables the
 * export brings along or else by CUPTI's constants; processes and threads inside a `globalTid`.
 */
import { copyKind } from './copy-kind.ts';
import type { NsysDatabase, SqlValue } from './nsys-database.ts';
import { WORK_FLAG, WORK_KIND } from './timeline.ts';
import type { WorkKind } from './timeline.ts';

/** CUPTI's mark for "does not apply", as exported by different versions. */
const INVALID = new Set([0xffff_ffff, -1]);

/** NaN for anything but a number. */
export function number(value: SqlValue | undefined): number {
  return typeof value === 'number' ? value : Number.NaN;
}

/** -1 for anything but a valid id. */
export function id(value: SqlValue | undefined): number {
  return typeof value === 'number' && Number.isSafeInteger(value) && !INVALID.has(value)
    ? value
    : -1;
}

export interface CopyKind {
  readonly kind: WorkKind;
  readonly name: string;
  /** Moved by the driver for managed memory, not by a call. */
  readonly isManaged: boolean;
}

const UNKNOWN_COPY: CopyKind = { kind: WORK_KIND.copy, name: 'Memcpy', isManaged: false };

/** CUPTI's own numbers, for exports without ENUM_CUDA_MEMCPY_OPER. */
const COPY_WORDS: readonly (readonly [number, string])[] = [
  [1, 'HTOD'],
  [2, 'DTOH'],
  [3, 'HTOA'],
  [4, 'ATOH'],
  [5, 'ATOA'],
  [6, 'ATOD'],
  [7, 'DTOA'],
  [8, 'DTOD'],
  [9, 'HTOH'],
  [10, 'PTOP'],
  [11, 'UVM_HTOD'],
  [12, 'UVM_DTOH'],
  [13, 'UVM_DTOD'],
];

/** Kinds of copies by number. */
export function copyKinds(db: NsysDatabase): (value: number) => CopyKind {
  const words = enumWords(db, 'ENUM_CUDA_MEMCPY_OPER', 'KIND_');
  const kinds = new Map<number, CopyKind>();
  for (const [value, word] of [...COPY_WORDS, ...words]) {
    const plain = word.replace(/^UVM_/, '');
    const direction = plain.replace('TO', 'to');
    const kind = copyKind(direction);
    if (kind === undefined) continue;
    kinds.set(value, { kind, name: `Memcpy ${direction}`, isManaged: plain !== word });
  }
  return (value) => kinds.get(value) ?? UNKNOWN_COPY;
}

/** `WORK_FLAG` bits by the number of the kind of memory on the host's side. */
export function memoryFlags(db: NsysDatabase): (value: number) => number {
  const words = enumWords(db, 'ENUM_CUDA_MEM_KIND', 'KIND_');
  const flags = new Map<number, number>();
  for (const [value, word] of [[0, 'PAGEABLE'] as const, [1, 'PINNED'] as const, ...words]) {
    if (word === 'PAGEABLE') flags.set(value, WORK_FLAG.pageable);
    else if (word === 'PINNED') flags.set(value, WORK_FLAG.pinned);
    else flags.delete(value);
  }
  return (value) => flags.get(value) ?? 0;
}

/** Symbolic names by number, without what comes before and up to `after`. */
function enumWords(db: NsysDatabase, table: string, after: string): [number, string][] {
  return db
    .small(table, [db.column(table, 'id'), db.column(table, 'name')])
    .flatMap(([value, name]): [number, string][] =>
      typeof value === 'number' && typeof name === 'string'
        ? [[value, name.slice(name.indexOf(after) + after.length)]]
        : [],
    );
}

/** SQL for hardware, virtual machine and process id together, at most 40 bits: of a `globalPid` or `globalTid`. */
export const processOf = (column: string): string => `(${column} >> 24) & 1099511627775`;

/** SQL for the system's thread id in a `globalTid`. */
export const threadOf = (column: string): string => `${column} & 16777215`;
