/** What a host table is checked against besides itself: the bindings before it, and the memory. */
import type { HostTable } from './host-table.ts';
import type { HostRow } from './mapping-table.ts';
import type { MemoryMap } from './memory-map.ts';
import { TableChecker, type TableError } from './table-check.ts';

/** Whether two rows stand for one attachment; windows, bus and path may differ. */
export function isSameHostBinding(a: HostRow | undefined, b: HostRow | undefined): boolean {
  return (
    a !== undefined &&
    b !== undefined &&
    a.box === b.box &&
    a.slot === b.slot &&
    a.generation === b.generation
  );
}

/** Remembers every generation a virtual slot and a box slot were bound with. */
export class HostTableHistory {
  /** The last binding of each virtual slot: generations only rise, so it has the highest. */
  readonly #ofVirtualSlot = new Map<number, HostRow>();
  readonly #ofBoxSlot = new Map<string, number>();
  /** Virtual slots that are bound now. */
  readonly #live = new Set<number>();

  bound(row: HostRow): void {
    this.#ofVirtualSlot.set(row.virtualSlot, row);
    this.#ofBoxSlot.set(boxSlotKey(row), row.generation);
    this.#live.add(row.virtualSlot);
  }

  unbound(virtualSlot: number): void {
    this.#live.delete(virtualSlot);
  }

  /** A new binding needs a generation above every one of its virtual slot and of its box slot. */
  check(rows: readonly HostRow[]): TableError[] {
    const check = new TableChecker();
    for (const [index, row] of rows.entries()) {
      if (!row.used) continue;
      const last = this.#ofVirtualSlot.get(row.virtualSlot);
      if (this.#live.has(row.virtualSlot) && isSameHostBinding(row, last)) continue;
      const highest = Math.max(last?.generation ?? 0, this.#ofBoxSlot.get(boxSlotKey(row)) ?? 0);
      check.newGeneration(index, row.generation, highest);
    }
    return check.errors;
  }
}

/** The windows of a table against the memory that is open to DMA. */
export function checkMemory(table: HostTable, memory: MemoryMap): TableError[] {
  const check = new TableChecker();
  for (const region of memory.regions) {
    const index = table.rowOverlapping(region.base, region.limit);
    const row = table.rows[index];
    if (row === undefined) continue;
    const { base, limit } = row.nonPrefetchable;
    const inFirst = base <= region.limit && limit >= region.base;
    check.error(
      index,
      inFirst ? 'nonPrefetchable.base' : 'prefetchable.base',
      `the window overlaps the host's memory at 0x${region.base.toString(16)}`,
    );
  }
  return check.errors;
}

function boxSlotKey(row: HostRow): string {
  return `${row.slot} ${row.box}`;
}
