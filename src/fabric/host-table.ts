/**
 * The mapping table of a host proxy, checked as a whole and made for lookups. Only used rows route:
 * of an unused row nothing but the virtual slot counts.
 */
import { assert } from '#base/assert';
import { IntervalMap } from '#base/interval-map';
import type { HostRow, Window } from './mapping-table.ts';
import { MAX_SLOT, TableChecker, type TableError } from './table-check.ts';

/** Bridge windows are cut in these (type 1 header, 7.5.1.3.8 and 7.5.1.3.9). */
export const WINDOW_GRANULE = 0x10_0000;

/** Where a write is an interrupt, not memory. */
export const INTERRUPT_BASE = 0xfee0_0000;
export const INTERRUPT_LIMIT = 0xfeef_ffff;

const FOUR_GIB = 0x1_0000_0000;

/** A bridge forwards nothing through a window whose base is above its limit. */
export function isEmptyWindow(window: Window): boolean {
  return window.base > window.limit;
}

/** Checks a whole table by itself, without its history. Empty when it can be used. */
export function checkHostTable(rows: readonly HostRow[]): TableError[] {
  const check = new TableChecker();
  const virtualSlots = new Map<number, number>();
  const buses = new Map<number, number>();
  const slots = new Map<string, number>();
  const windows = new IntervalMap(2 * rows.length);
  for (const [index, row] of rows.entries()) {
    if (check.integer(index, 'virtualSlot', row.virtualSlot, 0, MAX_SLOT)) {
      check.unique(
        virtualSlots,
        index,
        'virtualSlot',
        row.virtualSlot,
        `virtual slot ${row.virtualSlot}`,
      );
    }
    if (!row.used) continue;
    if (check.integer(index, 'secondaryBus', row.secondaryBus, 1, 255)) {
      check.unique(buses, index, 'secondaryBus', row.secondaryBus, `bus ${row.secondaryBus}`);
    }
    const boxGiven = check.name(index, 'box', row.box);
    if (check.integer(index, 'slot', row.slot, 0, MAX_SLOT) && boxGiven) {
      const what = `slot ${row.slot} of box ${row.box}`;
      check.unique(slots, index, 'slot', `${row.slot} ${row.box}`, what);
    }
    check.generation(index, row.generation);
    checkWindow(check, windows, rows, index, 'nonPrefetchable', FOUR_GIB - 1);
    checkWindow(check, windows, rows, index, 'prefetchable', Number.MAX_SAFE_INTEGER);
  }
  return check.errors;
}

function checkWindow(
  check: TableChecker,
  windows: IntervalMap,
  rows: readonly HostRow[],
  index: number,
  field: 'nonPrefetchable' | 'prefetchable',
  highest: number,
): void {
  const window = (rows[index] as HostRow)[field];
  const { base, limit } = window;
  let sound = check.integer(index, `${field}.base`, base, 0, highest);
  sound = check.integer(index, `${field}.limit`, limit, 0, highest) && sound;
  if (!sound) return;
  if (base % WINDOW_GRANULE !== 0) {
    check.error(index, `${field}.base`, `${hex(base)} is not a multiple of 1 MiB`);
    return;
  }
  if ((limit + 1) % WINDOW_GRANULE !== 0) {
    const message = `${hex(limit)} is not the last byte of a 1 MiB granule (…fffff)`;
    check.error(index, `${field}.limit`, message);
    return;
  }
  if (isEmptyWindow(window)) return;
  if (base <= INTERRUPT_LIMIT && limit >= INTERRUPT_BASE) {
    const message = `${hexRange(window)} covers the interrupt range fee00000-feefffff`;
    check.error(index, `${field}.base`, message);
    return;
  }
  if (!windows.insert(base, limit, index)) {
    const other = firstOverlap(rows, index, field, window);
    check.error(index, `${field}.base`, `${hexRange(window)} overlaps ${other}`);
  }
}

/** Names the earlier window that `window` overlaps. */
function firstOverlap(
  rows: readonly HostRow[],
  index: number,
  field: string,
  window: Window,
): string {
  for (let at = 0; at <= index; at++) {
    const row = rows[at] as HostRow;
    if (!row.used) continue;
    for (const name of ['nonPrefetchable', 'prefetchable'] as const) {
      const other = row[name];
      if (at === index && name === field) continue;
      if (!isEmptyWindow(other) && other.base <= window.limit && other.limit >= window.base) {
        return `${name} ${hexRange(other)} of row ${at}`;
      }
    }
  }
  return 'another window';
}

function hex(value: number): string {
  return value.toString(16).padStart(8, '0');
}

function hexRange(window: Window): string {
  return `${hex(window.base)}-${hex(window.limit)}`;
}

/** A checked host table, made for lookups: each allocates nothing. Rows are named by their index. */
export class HostTable {
  readonly rows: readonly HostRow[];
  readonly #windows: IntervalMap;
  readonly #rowOfBus = new Int32Array(256).fill(-1);
  readonly #rowsOfBox = new Map<string, Map<number, number>>();

  /** `rows` must have passed `checkHostTable`: asserted. */
  constructor(rows: readonly HostRow[]) {
    this.rows = rows;
    this.#windows = new IntervalMap(2 * rows.length);
    for (const [index, row] of rows.entries()) {
      if (!row.used) continue;
      for (const window of [row.nonPrefetchable, row.prefetchable]) {
        if (isEmptyWindow(window)) continue;
        assert(this.#windows.insert(window.base, window.limit, index), 'windows do not overlap');
      }
      assert(this.#rowOfBus[row.secondaryBus] === -1, 'a bus is behind one port');
      this.#rowOfBus[row.secondaryBus] = index;
      let slots = this.#rowsOfBox.get(row.box);
      if (slots === undefined) {
        slots = new Map();
        this.#rowsOfBox.set(row.box, slots);
      }
      assert(!slots.has(row.slot), 'a box slot is behind one virtual slot');
      slots.set(row.slot, index);
    }
  }

  /** The used row one of whose windows holds `address`, or −1. */
  rowOfAddress(address: number): number {
    return this.#windows.find(address);
  }

  /** The used row of a secondary bus (0 to 255), or −1. */
  rowOfBus(bus: number): number {
    return this.#rowOfBus[bus] ?? -1;
  }

  /** The used row of a box's slot, or −1. */
  rowOfSlot(box: string, slot: number): number {
    return this.#rowsOfBox.get(box)?.get(slot) ?? -1;
  }

  /** The index of a used row with a window that shares an address with [base, limit], or −1. */
  rowOverlapping(base: number, limit: number): number {
    if (!this.#windows.overlaps(base, limit)) return -1;
    return this.rows.findIndex(
      (row) =>
        row.used &&
        [row.nonPrefetchable, row.prefetchable].some(
          (window) => !isEmptyWindow(window) && window.base <= limit && window.limit >= base,
        ),
    );
  }
}
