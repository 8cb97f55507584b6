/** The buffers of the request under way: what the driver has written is gathered by DMA, the answer put there. */
import type { Nanos } from '#base/units';
import type { DmaEngine } from '#pcie/endpoint-dma';
import { type DmaClient, DmaStatus } from '#pcie/endpoint-transfer';
import type { DescriptorChain } from './virtqueue-chain.ts';

export class RequestBuffers implements DmaClient {
  readonly #dma: DmaEngine;
  readonly #channel: number;
  readonly #chain: DescriptorChain;
  readonly #gathered: (now: Nanos, ok: boolean) => void;
  /** Reads under way. */
  #reads = 0;
  #failed = false;
  /** Counts stops, so that a `gather` that was interrupted by one goes no further. */
  #stops = 0;

  /** `gathered` is called once a `gather` has ended; not after a stop. */
  constructor(
    dma: DmaEngine,
    channel: number,
    chain: DescriptorChain,
    gathered: (now: Nanos, ok: boolean) => void,
  ) {
    this.#dma = dma;
    this.#channel = channel;
    this.#chain = chain;
    this.#gathered = gathered;
  }

  /** Reads `bytes` bytes at `offset` of the device-readable part, which has them, to `into[at]`. */
  gather(now: Nanos, offset: number, into: Uint8Array, at: number, bytes: number): void {
    const stops = this.#stops;
    const chain = this.#chain;
    // One more, so that reads which end within the call do not end the whole.
    this.#reads = 1;
    this.#failed = false;
    let skip = offset;
    let remaining = bytes;
    let to = at;
    for (let index = 0; index < chain.readableBuffers && remaining > 0; index++) {
      const length = chain.length[index] as number;
      if (skip >= length) {
        skip -= length;
        continue;
      }
      const part = Math.min(length - skip, remaining);
      const address = (chain.address[index] as number) + skip;
      this.#reads++;
      this.#dma.read(now, this.#channel, address, into, to, part, this, 0);
      if (stops !== this.#stops) return;
      to += part;
      remaining -= part;
      skip = 0;
    }
    this.#readEnded(now);
  }

  /**
   * Writes the first `bytes` bytes of `response` to the device-writable part, as far as they fit. Returns
   * how many that are.
   */
  respond(now: Nanos, response: Uint8Array, bytes: number): number {
    const chain = this.#chain;
    const written = Math.min(bytes, chain.writableBytes);
    let at = 0;
    for (let index = chain.readableBuffers; index < chain.buffers && at < written; index++) {
      const part = Math.min(chain.length[index] as number, written - at);
      if (part === 0) continue;
      const address = chain.address[index] as number;
      this.#dma.write(now, this.#channel, address, response, at, part, undefined, 0);
      at += part;
    }
    return written;
  }

  /** Nothing under way goes on; its DMA is for the queue to abort. */
  stop(): void {
    this.#stops++;
  }

  dmaDone(now: Nanos, _cookie: number, status: DmaStatus): void {
    if (status !== DmaStatus.OK) this.#failed = true;
    this.#readEnded(now);
  }

  #readEnded(now: Nanos): void {
    this.#reads--;
    if (this.#reads === 0) this.#gathered(now, !this.#failed);
  }
}
