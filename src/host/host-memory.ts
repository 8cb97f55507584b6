/**
 * The memory of a soft host, as its CPU and the DMA of its functions see it, and a first-fit
 * allocator over it. The bytes are shared with the fabric, which reads and writes them itself.
 */
import { assert } from '#base/assert';
import { DxpuError } from '#base/errors';
import { RangeAllocator } from './range-allocator.ts';

export interface HostMemoryRegion {
  /** Bus address of the first byte, a multiple of 4096. */
  readonly base: number;
  readonly sizeBytes: number;
}

/** A piece of host memory that functions can reach by DMA at `address`. */
export interface HostBuffer {
  readonly address: number;
  /** The bytes themselves, shared with the region: what DMA writes shows up here. */
  readonly bytes: Uint8Array;
}

interface Region extends HostMemoryRegion {
  readonly memory: Uint8Array;
  readonly allocator: RangeAllocator;
}

/** What an allocation is rounded to, so that two buffers never share a cache line. */
const GRANULE_BYTES = 64;

export class HostMemory {
  readonly #regions: Region[];

  /** Regions must not overlap: an `invalid_argument` error names the two that do. */
  constructor(regions: readonly HostMemoryRegion[]) {
    const sorted = [...regions].sort((a, b) => a.base - b.base);
    for (const [index, region] of sorted.entries()) {
      if (region.base % 4096 !== 0 || region.sizeBytes <= 0 || region.sizeBytes % 4096 !== 0) {
        throw new DxpuError(
          'invalid_argument',
          `host memory at 0x${region.base.toString(16)}: base and size must be multiples of 4096`,
        );
      }
      const next = sorted[index + 1];
      if (next !== undefined && region.base + region.sizeBytes > next.base) {
        throw new DxpuError(
          'invalid_argument',
          `host memory at 0x${region.base.toString(16)} overlaps that at 0x${next.base.toString(16)}`,
        );
      }
    }
    this.#regions = sorted.map((region) => ({
      base: region.base,
      sizeBytes: region.sizeBytes,
      memory: new Uint8Array(region.sizeBytes),
      // Address 0 is kept back: an all-zero pointer in a device register must not hit a buffer.
      allocator: new RangeAllocator(
        region.base === 0 ? GRANULE_BYTES : region.base,
        region.base + region.sizeBytes,
        GRANULE_BYTES,
      ),
    }));
  }

  /** Calls `fn` with each region and its bytes, lowest first. */
  forEachRegion(fn: (base: number, memory: Uint8Array) => void): void {
    for (const region of this.#regions) fn(region.base, region.memory);
  }

  /** Bytes not allocated, over all regions. */
  get freeBytes(): number {
    let total = 0;
    for (const region of this.#regions) total += region.allocator.freeBytes;
    return total;
  }

  /** The largest buffer that `alloc` could give now. */
  get largestFreeBytes(): number {
    return Math.max(...this.#regions.map((region) => region.allocator.largestFreeBytes));
  }

  /** Whether all of [address, address + bytes) is memory of this host. */
  contains(address: number, bytes: number): boolean {
    return this.#find(address, bytes) !== undefined;
  }

  /** The bytes at [address, address + bytes), shared. Asserts that they are memory. */
  view(address: number, bytes: number): Uint8Array {
    const region = this.#find(address, bytes);
    assert(region !== undefined, `no host memory at 0x${address.toString(16)}`);
    return region.memory.subarray(address - region.base, address - region.base + bytes);
  }

  /**
   * A zeroed buffer of `bytes` at a multiple of `align` (a power of two), from the lowest region
   * that has room. Fails with `resource_exhausted`.
   */
  alloc(bytes: number, align: number = GRANULE_BYTES): HostBuffer {
    for (const region of this.#regions) {
      const address = region.allocator.alloc(bytes, align);
      if (address < 0) continue;
      const view = this.view(address, bytes);
      view.fill(0);
      return { address, bytes: view };
    }
    throw new DxpuError(
      'resource_exhausted',
      `no ${bytes} bytes of host memory in one piece (${this.freeBytes} free in all); ` +
        'give the host more memory or work on smaller pieces',
      { details: { bytes, align, freeBytes: this.freeBytes } },
    );
  }

  /** Gives a buffer of `alloc` back. Giving back what is not allocated is a bug. */
  free(buffer: HostBuffer): void {
    const region = this.#find(buffer.address, 1);
    assert(region !== undefined, `not allocated: 0x${buffer.address.toString(16)}`);
    region.allocator.free(buffer.address);
  }

  #find(address: number, bytes: number): Region | undefined {
    for (const region of this.#regions) {
      if (address >= region.base && address + bytes <= region.base + region.sizeBytes) {
        return region;
      }
    }
    return undefined;
  }
}
