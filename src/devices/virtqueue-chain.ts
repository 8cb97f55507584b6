/** The chain of descriptors of one request (virtio 1.2, 2.7.5): its buffers, and what is wrong with them. */
import { HOST_ADDRESS_END } from './device-model.ts';

export const VIRTQ_DESC_F_NEXT = 1;
export const VIRTQ_DESC_F_WRITE = 2;
export const VIRTQ_DESC_F_INDIRECT = 4;

export const DESC_BYTES = 16;

/**
 * Most buffers in a request. The specification allows as many as the queue has entries; drivers in use
 * go beyond that in indirect tables.
 */
export const MAX_CHAIN = 1024;

export class DescriptorChain {
  /** Where descriptors are read to: one of the ring's, or an indirect table. */
  readonly table = new Uint8Array(MAX_CHAIN * DESC_BYTES);
  /** Of the buffers; device-readable ones come first. */
  readonly address = new Float64Array(MAX_CHAIN);
  readonly length = new Float64Array(MAX_CHAIN);
  buffers = 0;
  readableBuffers = 0;
  readableBytes = 0;
  writableBytes = 0;
  readonly #view = new DataView(this.table.buffer);

  clear(): void {
    this.buffers = 0;
    this.readableBuffers = 0;
    this.readableBytes = 0;
    this.writableBytes = 0;
  }

  /** Forgets what came from the driver's memory. */
  scrub(): void {
    this.table.fill(0);
    this.address.fill(0);
    this.length.fill(0);
  }

  // Fields of the descriptor at byte `at` of `table`.

  addressAt(at: number): number {
    return this.#view.getUint32(at + 4, true) * 0x1_0000_0000 + this.#view.getUint32(at, true);
  }

  bytesAt(at: number): number {
    return this.#view.getUint32(at + 8, true);
  }

  flagsAt(at: number): number {
    return this.#view.getUint16(at + 12, true);
  }

  nextAt(at: number): number {
    return this.#view.getUint16(at + 14, true);
  }

  /** Adds the buffer of the descriptor at byte `at` of `table`. Returns what is wrong with it, or ''. */
  append(at: number): string {
    const address = this.addressAt(at);
    const bytes = this.bytesAt(at);
    const isWritable = (this.flagsAt(at) & VIRTQ_DESC_F_WRITE) !== 0;
    if (this.buffers === MAX_CHAIN) return `more than ${MAX_CHAIN} buffers in a request`;
    if (address + bytes >= HOST_ADDRESS_END) return `a buffer at 0x${address.toString(16)}`;
    if (!isWritable && this.buffers > this.readableBuffers) {
      return 'a device-readable buffer behind a device-writable one';
    }
    this.address[this.buffers] = address;
    this.length[this.buffers] = bytes;
    this.buffers++;
    if (isWritable) {
      this.writableBytes += bytes;
    } else {
      this.readableBuffers++;
      this.readableBytes += bytes;
    }
    return '';
  }

  /** Adds the buffers of an indirect table of `descriptors`. Returns what is wrong with it, or ''. */
  appendTable(descriptors: number): string {
    let index = 0;
    for (let steps = 0; ; steps++) {
      if (index >= descriptors) {
        return `descriptor ${index} in an indirect table of ${descriptors}`;
      }
      if (steps >= descriptors) return 'a chain in an indirect table does not end';
      const at = DESC_BYTES * index;
      const flags = this.flagsAt(at);
      if ((flags & VIRTQ_DESC_F_INDIRECT) !== 0) return 'an indirect table in an indirect table';
      const wrong = this.append(at);
      if (wrong !== '' || (flags & VIRTQ_DESC_F_NEXT) === 0) return wrong;
      index = this.nextAt(at);
    }
  }
}
