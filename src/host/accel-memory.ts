/** Who has which part of an accelerator's memory. */
import { DxpuError } from '#base/errors';
import { RangeAllocator } from './range-allocator.ts';

/** A range of device memory. */
export interface DeviceBuffer {
  /** Byte offset in device memory. */
  readonly offset: number;
  readonly bytes: number;
}

const GRANULE_BYTES = 256;

export class DeviceMemory {
  readonly #allocator: RangeAllocator;

  constructor(bytes: number) {
    this.#allocator = new RangeAllocator(0, bytes, GRANULE_BYTES);
  }

  get largestFreeBytes(): number {
    return this.#allocator.largestFreeBytes;
  }

  /** A range at a multiple of 256. Fails with `resource_exhausted`. Its content is what it was. */
  alloc(bytes: number): DeviceBuffer {
    const offset = this.#allocator.alloc(bytes, GRANULE_BYTES);
    if (offset >= 0) return { offset, bytes };
    const { freeBytes } = this.#allocator;
    throw new DxpuError(
      'resource_exhausted',
      `no ${bytes} bytes of device memory in one piece (${freeBytes} free in all)`,
      { details: { bytes, freeBytes } },
    );
  }

  free(buffer: DeviceBuffer): void {
    this.#allocator.free(buffer.offset);
  }
}
