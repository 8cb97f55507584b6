/**
 * A host in the index: its virtual slots, and its paths as columns, since there are millions of them.
 * `PoolIndex` owns every entry and is the only one to change them.
 */
import { compareSlots } from './bar-needs.ts';
import type { BoxEntry } from './box-entry.ts';
import type { BoxTable } from './box-table.ts';
import type { HostSlotFacts } from './facts.ts';

export interface HostEntry {
  readonly id: string;
  reachable: boolean;
  /** The smallest windows first. */
  slots: HostSlotFacts[];
  paths: HostPaths;
}

/** Inserts or replaces the slot of this number. */
export function putSlot(host: HostEntry, facts: HostSlotFacts): void {
  const old = host.slots.findIndex((one) => one.slot === facts.slot);
  const before = host.slots[old];
  if (before !== undefined && compareSlots(before, facts) === 0) {
    host.slots[old] = facts;
    return;
  }
  if (old >= 0) host.slots.splice(old, 1);
  const next = host.slots.findIndex((one) => compareSlots(one, facts) > 0);
  host.slots.splice(next < 0 ? host.slots.length : next, 0, facts);
}

/**
 * Paths in the order of box id, then path name: those to one box are neighbours, and who goes through
 * them in order meets boxes in the order of their ids. One position in each column is one path.
 */
export class HostPaths {
  readonly table: BoxTable;
  /** Of the boxes they lead to. */
  readonly boxNumbers: number[] = [];
  readonly names: string[] = [];
  readonly rttNs: number[] = [];
  readonly up: boolean[] = [];

  constructor(table: BoxTable) {
    this.table = table;
  }

  get size(): number {
    return this.boxNumbers.length;
  }

  boxAt(position: number): BoxEntry {
    return this.table.at(this.boxNumbers[position] ?? -1);
  }

  /** The path's position, or as −1 − position where it would be. The least name ('') finds a box. */
  find(box: string, name: string): number {
    let low = 0;
    let high = this.size;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const { id } = this.boxAt(middle);
      if (id < box || (id === box && (this.names[middle] ?? '') < name)) low = middle + 1;
      else high = middle;
    }
    const found = low < this.size && this.boxAt(low).id === box && this.names[low] === name;
    return found ? low : -1 - low;
  }

  /** The first position of the box's paths, or where it would be. */
  firstOf(box: string): number {
    const found = this.find(box, '');
    return found < 0 ? -1 - found : found;
  }

  /** Whether there was no such path before. */
  set(box: BoxEntry, name: string, up: boolean, rttNs: number): boolean {
    const found = this.find(box.id, name);
    if (found >= 0) {
      this.up[found] = up;
      this.rttNs[found] = rttNs;
      return false;
    }
    const position = -1 - found;
    if (position === this.size) {
      this.boxNumbers.push(box.number);
      this.names.push(name);
      this.up.push(up);
      this.rttNs.push(rttNs);
    } else {
      this.boxNumbers.splice(position, 0, box.number);
      this.names.splice(position, 0, name);
      this.up.splice(position, 0, up);
      this.rttNs.splice(position, 0, rttNs);
    }
    return true;
  }

  removeAt(position: number): void {
    this.boxNumbers.splice(position, 1);
    this.names.splice(position, 1);
    this.up.splice(position, 1);
    this.rttNs.splice(position, 1);
  }

  /** The position behind the paths that lead to the same box as the one at `first`. */
  endOfBox(first: number): number {
    const number = this.boxNumbers[first];
    let end = first + 1;
    while (end < this.size && this.boxNumbers[end] === number) end++;
    return end;
  }
}
