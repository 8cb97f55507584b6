/** First fit over one range of addresses. */
import { assert } from '#base/assert';

interface FreeRange {
  base: number;
  limit: number;
}

export class RangeAllocator {
  readonly #granule: number;
  /** Sorted by base, never touching each other. */
  readonly #free: FreeRange[];
  readonly #allocated = new Map<number, number>();

  /** Hands out multiples of `granule` (a power of two) from [base, limit). */
  constructor(base: number, limit: number, granule: number) {
    this.#granule = granule;
    this.#free = limit > base ? [{ base, limit }] : [];
  }

  get freeBytes(): number {
    let total = 0;
    for (const range of this.#free) total += range.limit - range.base;
    return total;
  }

  /** The largest piece that one `alloc` could give. */
  get largestFreeBytes(): number {
    let largest = 0;
    for (const range of this.#free) {
      const base = Math.ceil(range.base / this.#granule) * this.#granule;
      largest = Math.max(largest, Math.floor((range.limit - base) / this.#granule) * this.#granule);
    }
    return largest;
  }

  /** The address of `bytes` bytes at a multiple of `align` (a power of two), or −1. */
  alloc(bytes: number, align: number): number {
    assert(Number.isSafeInteger(bytes) && bytes > 0, `not a size: ${bytes}`);
    assert(Number.isInteger(Math.log2(align)), `not an alignment: ${align}`);
    const step = Math.max(align, this.#granule);
    const size = Math.ceil(bytes / this.#granule) * this.#granule;
    for (const [index, range] of this.#free.entries()) {
      const address = Math.ceil(range.base / step) * step;
      if (address + size > range.limit) continue;
      const rest: FreeRange[] = [];
      if (address > range.base) rest.push({ base: range.base, limit: address });
      if (address + size < range.limit) rest.push({ base: address + size, limit: range.limit });
      this.#free.splice(index, 1, ...rest);
      this.#allocated.set(address, size);
      return address;
    }
    return -1;
  }

  /** Gives back what `alloc` gave. Anything else is a bug. */
  free(address: number): void {
    const size = this.#allocated.get(address);
    assert(size !== undefined, `not allocated: 0x${address.toString(16)}`);
    this.#allocated.delete(address);
    const ranges = this.#free;
    let index = 0;
    while (index < ranges.length && (ranges[index] as FreeRange).base < address) index++;
    ranges.splice(index, 0, { base: address, limit: address + size });
    // Merge with the right neighbour first: the index of the left merge stays valid.
    for (const left of [index, index - 1]) {
      const low = ranges[left];
      const high = ranges[left + 1];
      if (low !== undefined && high !== undefined && low.limit === high.base) {
        low.limit = high.limit;
        ranges.splice(left + 1, 1);
      }
    }
  }
}
