import type { HostRow } from './mapping-table.ts';
import type { TableError } from './table-check.ts';

/** Checks a whole table by itself, without its history. Empty when it can be used. */
export function checkHostTable(_rows: readonly HostRow[]): TableError[] {
  throw new Error('to be written');
}

/** A checked host table, made for lookups: each allocates nothing. Rows are named by their index. */
export class HostTable {
  readonly rows: readonly HostRow[];

  /** `rows` must have passed `checkHostTable`: asserted. */
  constructor(rows: readonly HostRow[]) {
    this.rows = rows;
  }

  /** The used row one of whose windows holds `address`, or −1. */
  rowOfAddress(_address: number): number {
    throw new Error('to be written');
  }
  /** The used row of a secondary bus, or −1. */
  rowOfBus(_bus: number): number {
    throw new Error('to be written');
  }
  /** The used row of a box's slot, or −1. */
  rowOfSlot(_box: string, _slot: number): number {
    throw new Error('to be written');
  }
}
