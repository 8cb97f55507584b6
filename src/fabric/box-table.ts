/** The mapping table of a box proxy, checked as a whole and made for lookups. */
import { assert } from '#base/assert';
import type { BoxRow } from './mapping-table.ts';
import { MAX_SLOT, TableChecker, type TableError } from './table-check.ts';

/** Whether TLPs may pass for this row. */
export function isActiveRow(row: BoxRow): boolean {
  return row.valid && row.used;
}

/** Checks a whole table by itself, without its history. Empty when it can be used. */
export function checkBoxTable(rows: readonly BoxRow[]): TableError[] {
  const check = new TableChecker();
  const slots = new Map<number, number>();
  for (const [index, row] of rows.entries()) {
    if (check.integer(index, 'slot', row.slot, 0, MAX_SLOT)) {
      check.unique(slots, index, 'slot', row.slot, `slot ${row.slot}`);
    }
    if (!isActiveRow(row)) continue;
    check.name(index, 'host', row.host);
    check.generation(index, row.generation);
  }
  return check.errors;
}

/** A checked box table. Rows are named by their index. */
export class BoxTable {
  readonly rows: readonly BoxRow[];
  readonly #rowOfSlot = new Map<number, number>();

  /** `rows` must have passed `checkBoxTable`: asserted. */
  constructor(rows: readonly BoxRow[]) {
    this.rows = rows;
    for (const [index, row] of rows.entries()) {
      assert(!this.#rowOfSlot.has(row.slot), 'a slot has one row');
      this.#rowOfSlot.set(row.slot, index);
    }
  }

  /** The row of a slot, valid or not, or −1. */
  rowOfSlot(slot: number): number {
    return this.#rowOfSlot.get(slot) ?? -1;
  }
}
