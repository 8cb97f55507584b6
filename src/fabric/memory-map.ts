/**
 * The memory a host has opened to DMA: disjoint regions of whole 4 KiB pages. Since no request
 * crosses a 4 KiB boundary (2.2.7), each lies in one region or in none.
 */
import { assert } from '#base/assert';
import { DxpuError } from '#base/errors';
import { INTERRUPT_BASE, INTERRUPT_LIMIT } from './host-table.ts';

export const PAGE_BYTES = 4096;

export class MemoryRegion {
  readonly base: number;
  /** Last address. */
  readonly limit: number;
  readonly bytes: Uint8Array;
  readonly readable: boolean;
  readonly writable: boolean;

  constructor(base: number, bytes: Uint8Array, readable: boolean, writable: boolean) {
    this.base = base;
    this.limit = base + bytes.length - 1;
    this.bytes = bytes;
    this.readable = readable;
    this.writable = writable;
  }
}

export class MemoryMap {
  /** Ascending by base, with the bases beside them for the binary search. */
  #regions: MemoryRegion[] = [];
  #bases = new Float64Array(0);

  get regions(): readonly MemoryRegion[] {
    return this.#regions;
  }

  /**
   * Adds a region; the bytes are shared. `invalid_argument` when base or size is not a multiple of
   * 4096, or the region reaches 2^53 or into the interrupt range; `already_exists` when it overlaps.
   */
  register(base: number, bytes: Uint8Array, access: { read: boolean; write: boolean }): void {
    const name = `memory at 0x${base.toString(16)}`;
    const size = bytes.length;
    if (!Number.isSafeInteger(base) || base < 0 || base % PAGE_BYTES !== 0) {
      throw new DxpuError('invalid_argument', `${name}: the base must be a multiple of 4096`);
    }
    if (size === 0 || size % PAGE_BYTES !== 0) {
      throw new DxpuError(
        'invalid_argument',
        `${name}: the size must be a multiple of 4096, not ${size}`,
      );
    }
    const region = new MemoryRegion(base, bytes, access.read, access.write);
    if (!Number.isSafeInteger(region.limit)) {
      throw new DxpuError('invalid_argument', `${name} reaches above 2^53`);
    }
    if (base <= INTERRUPT_LIMIT && region.limit >= INTERRUPT_BASE) {
      throw new DxpuError(
        'invalid_argument',
        `${name} covers the interrupt range fee00000-feefffff`,
      );
    }
    const at = this.#countAtOrBelow(region.limit);
    const below = this.#regions[at - 1];
    if (below !== undefined && below.limit >= base) {
      throw new DxpuError(
        'already_exists',
        `${name} overlaps the memory registered at 0x${below.base.toString(16)}`,
      );
    }
    this.#regions.splice(at, 0, region);
    this.#rebuild();
  }

  /** Removes the region that starts at `base`; `not_found` when there is none. */
  unregister(base: number): void {
    const at = this.#countAtOrBelow(base) - 1;
    if (this.#regions[at]?.base !== base) {
      throw new DxpuError('not_found', `no memory is registered at 0x${base.toString(16)}`);
    }
    this.#regions.splice(at, 1);
    this.#rebuild();
  }

  /** The region with the highest base at or below `address`; whether it reaches is the caller's check. */
  floor(address: number): MemoryRegion | undefined {
    return this.#regions[this.#countAtOrBelow(address) - 1];
  }

  /** Whether any region shares an address with [base, limit]. */
  overlaps(base: number, limit: number): boolean {
    assert(base <= limit, 'a range is not empty');
    const region = this.floor(limit);
    return region !== undefined && region.limit >= base;
  }

  #countAtOrBelow(address: number): number {
    const bases = this.#bases;
    let low = 0;
    let high = bases.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((bases[middle] as number) <= address) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  #rebuild(): void {
    this.#bases = Float64Array.from(this.#regions, (region) => region.base);
  }
}
