/** A client as the device sees it: transfers, interrupts, and a way to end it. */
import { assert } from '#base/assert';
import type { Nanos } from '#base/units';
import type { DmaRegion } from './dma-map.ts';
import type { DmaTransfer } from './dma-transfer.ts';
import type { IrqLines } from './irq-lines.ts';
import type { MemoryServer } from './memory-server.ts';
import { type Done, Errno, Refusal } from './refusal.ts';
import type { DeviceClient } from './served-device.ts';

export interface GuestAccessOptions {
  readonly memory: MemoryServer;
  readonly irqs: IrqLines;
  readonly isServing: () => boolean;
  readonly disconnect: (now: Nanos, reason: string) => void;
  readonly deadlineMoved: () => void;
}

export class GuestAccess implements DeviceClient {
  readonly #options: GuestAccessOptions;

  constructor(options: GuestAccessOptions) {
    this.#options = options;
  }

  dmaRead(now: Nanos, transfer: DmaTransfer): void {
    const { bytes, at, count } = transfer;
    assert(at >= 0 && at + count <= bytes.length, 'room for what is read');
    if (this.#isGone(now, transfer.done)) return;
    this.#options.memory.engine.read(now, transfer);
    this.#options.deadlineMoved();
  }

  dmaWrite(now: Nanos, transfer: DmaTransfer): void {
    const { bytes, at, count } = transfer;
    assert(at >= 0 && at + count <= bytes.length, 'the bytes to write');
    if (this.#isGone(now, transfer.done)) return;
    this.#options.memory.engine.write(now, transfer);
    this.#options.deadlineMoved();
  }

  memoryAt(address: number): DmaRegion | undefined {
    return this.#options.memory.map.find(address);
  }

  trigger(index: number, vector: number): void {
    const { memory, irqs } = this.#options;
    memory.engine.afterWrites(() => irqs.trigger(index, vector));
  }

  setIntx(asserted: boolean): void {
    const { memory, irqs } = this.#options;
    memory.engine.afterWrites(() => irqs.setIntx(asserted));
  }

  disconnect(now: Nanos, reason: string): void {
    this.#options.disconnect(now, reason);
  }

  #isGone(now: Nanos, done: Done): boolean {
    if (this.#options.isServing()) return false;
    done(now, new Refusal(Errno.ECONNRESET, 'the client is gone'));
    return true;
  }
}
