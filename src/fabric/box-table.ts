import type { BoxRow } from './mapping-table.ts';
import type { TableError } from './table-check.ts';

/** Checks a whole table by itself, without its history. Empty when it can be used. */
export function checkBoxTable(_rows: readonly BoxRow[]): TableError[] {
  throw new Error('to be written');
}

export class BoxTable {
  readonly rows: readonly BoxRow[];

  /** `rows` must have passed `checkBoxTable`: asserted. */
  constructor(rows: readonly BoxRow[]) {
    this.rows = rows;
  }

  /** The row of a slot, valid or not, or −1. */
  rowOfSlot(_slot: number): number {
    throw new Error('to be written');
  }
}
