/**
 * Reads the chain of descriptors of one request (virtio 1.2, 2.7.5) by DMA into a `DescriptorChain`: one by
 * one from the queue's own table, or all at once from an indirect one.
 */
import type { Nanos } from '#base/units';
import type { Endpoint } from '#pcie/endpoint';
import { type DmaClient, DmaStatus } from '#pcie/endpoint-transfer';
import { HOST_ADDRESS_END } from './device-model.ts';
import type { VirtqueueAreas } from './virtqueue-areas.ts';
import {
  DESC_BYTES,
  type DescriptorChain,
  VIRTQ_DESC_F_INDIRECT,
  VIRTQ_DESC_F_NEXT,
} from './virtqueue-chain.ts';

export interface ChainReaderOwner {
  readonly endpoint: Endpoint;
  /** Whether the driver has accepted VIRTIO_F_INDIRECT_DESC. */
  readonly indirectDescriptors: boolean;
}

// Cookies of its DMA.
const DESCRIPTOR = 0;
const TABLE = 1;

export class ChainReader implements DmaClient {
  readonly #owner: ChainReaderOwner;
  readonly #channel: number;
  readonly #areas: VirtqueueAreas;
  readonly #chain: DescriptorChain;
  readonly #ended: (now: Nanos, wrong: string) => void;
  #size = 0;
  /** Read so far; of an indirect table, as many as it has. */
  #descriptors = 0;

  /** `ended` is told what is wrong with a chain, or '' once all of it is in `chain`. */
  constructor(
    owner: ChainReaderOwner,
    channel: number,
    areas: VirtqueueAreas,
    chain: DescriptorChain,
    ended: (now: Nanos, wrong: string) => void,
  ) {
    this.#owner = owner;
    this.#channel = channel;
    this.#areas = areas;
    this.#chain = chain;
    this.#ended = ended;
  }

  /** Reads the chain that begins with descriptor `head` of a queue of `size`. An abort of the DMA stops it. */
  start(now: Nanos, head: number, size: number): void {
    this.#chain.clear();
    this.#size = size;
    this.#descriptors = 0;
    this.#readDescriptor(now, head);
  }

  dmaDone(now: Nanos, cookie: number, status: DmaStatus): void {
    if (status !== DmaStatus.OK) this.#ended(now, unreadable(status));
    else if (cookie === TABLE) this.#ended(now, this.#chain.appendTable(this.#descriptors));
    else this.#descriptorRead(now);
  }

  #readDescriptor(now: Nanos, index: number): void {
    if (index >= this.#size) {
      this.#ended(now, `descriptor ${index} in a table of ${this.#size}`);
    } else if (++this.#descriptors > this.#size) {
      // A chain longer than its table comes round again.
      this.#ended(now, 'a chain of descriptors does not end');
    } else {
      this.#read(now, this.#areas.descriptor(index), DESC_BYTES, DESCRIPTOR);
    }
  }

  #descriptorRead(now: Nanos): void {
    const flags = this.#chain.flagsAt(0);
    if ((flags & VIRTQ_DESC_F_INDIRECT) !== 0) {
      this.#readTable(now, flags);
      return;
    }
    const wrong = this.#chain.append(0);
    if (wrong === '' && (flags & VIRTQ_DESC_F_NEXT) !== 0) {
      this.#readDescriptor(now, this.#chain.nextAt(0));
    } else {
      this.#ended(now, wrong);
    }
  }

  #readTable(now: Nanos, flags: number): void {
    const address = this.#chain.addressAt(0);
    const bytes = this.#chain.bytesAt(0);
    if (!this.#owner.indirectDescriptors) {
      this.#ended(now, 'an indirect descriptor, which was not negotiated');
    } else if ((flags & VIRTQ_DESC_F_NEXT) !== 0) {
      this.#ended(now, 'an indirect descriptor that is not the last of its chain');
    } else if (bytes === 0 || bytes % DESC_BYTES !== 0 || bytes > this.#chain.table.length) {
      this.#ended(now, `an indirect table of ${bytes} bytes`);
    } else if (address + bytes >= HOST_ADDRESS_END) {
      this.#ended(now, `an indirect table at 0x${address.toString(16)}`);
    } else {
      this.#descriptors = bytes / DESC_BYTES;
      this.#read(now, address, bytes, TABLE);
    }
  }

  #read(now: Nanos, address: number, bytes: number, cookie: number): void {
    const { table } = this.#chain;
    this.#owner.endpoint.dma.read(now, this.#channel, address, table, 0, bytes, this, cookie);
  }
}

/** Why nothing more is done with a ring of which a read or a write has failed. */
export function unreadable(status: DmaStatus): string {
  return `the ring cannot be read (DMA status ${status})`;
}
