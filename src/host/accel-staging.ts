/** Pairs of buffers, one in host and one in device memory, that a computation goes through. */
import type { DeviceBuffer, DeviceMemory } from './accel-memory.ts';
import type { HostBuffer, HostMemory } from './host-memory.ts';

/** Allocations are rounded to at most this, on either side. */
const ROUNDING_BYTES = 256;

export interface StagedPair {
  readonly host: HostBuffer;
  /** The host buffer's words. */
  readonly words: Float32Array;
  readonly device: DeviceBuffer;
}

/** How many bytes `pairs` pairs can have together, at most `limitBytes`, with the memory free now. */
export function stagingBudget(
  host: HostMemory,
  device: DeviceMemory,
  limitBytes: number,
  pairs: number,
): number {
  const free = Math.min(host.largestFreeBytes, device.largestFreeBytes);
  return Math.min(limitBytes, free - pairs * ROUNDING_BYTES);
}

export class Staging {
  readonly #host: HostMemory;
  readonly #device: DeviceMemory;
  readonly #pairs: StagedPair[] = [];

  constructor(host: HostMemory, device: DeviceMemory) {
    this.#host = host;
    this.#device = device;
  }

  /** A pair of `words` words. Fails with `resource_exhausted`; what was taken before stays taken. */
  take(words: number): StagedPair {
    const device = this.#device.alloc(4 * words);
    let host: HostBuffer;
    try {
      host = this.#host.alloc(4 * words);
    } catch (error) {
      this.#device.free(device);
      throw error;
    }
    const { buffer, byteOffset } = host.bytes;
    const pair = { host, words: new Float32Array(buffer, byteOffset, words), device };
    this.#pairs.push(pair);
    return pair;
  }

  /** Gives everything back. The device must be done with it. */
  release(): void {
    for (const pair of this.#pairs.splice(0)) {
      this.#host.free(pair.host);
      this.#device.free(pair.device);
    }
  }
}
