/** What the function of a virtual slot may reach of a VM's memory: what its QEMU has lent for that device. */
import { DxpuError } from '#base/errors';
import type { HostProxy } from '#fabric/host-proxy';
import type { DmaRegion } from '#vfio-user/dma-map';
import type { Logger } from './logger.ts';

export type SlotMemory = Pick<HostProxy, 'registerSlotMemory' | 'unregisterSlotMemory'>;

export class VmMemory {
  readonly #proxy: SlotMemory;
  readonly #virtualSlot: number;
  readonly #log: Logger;
  /** Bases of the memory that is registered, by region. */
  readonly #registered = new Map<DmaRegion, number[]>();
  #saysUnmapped = true;

  constructor(proxy: SlotMemory, virtualSlot: number, log: Logger) {
    this.#proxy = proxy;
    this.#virtualSlot = virtualSlot;
    this.#log = log;
  }

  /** Memory that cannot be mapped stays out of reach, and is logged once. */
  add(region: DmaRegion): void {
    const { readable: read, writable: write } = region;
    const slot = this.#virtualSlot;
    if (region.access !== 'mapped') {
      if (this.#saysUnmapped) {
        const at = `0x${region.address.toString(16)}`;
        this.#log.warn({ slot, at }, 'memory of the VM that cannot be mapped: out of reach');
        this.#saysUnmapped = false;
      }
      return;
    }
    const bases: number[] = [];
    this.#registered.set(region, bases);
    for (const { address, bytes } of region.windows()) {
      try {
        this.#proxy.registerSlotMemory(slot, address, bytes, { read, write });
        bases.push(address);
      } catch (error) {
        this.#log.warn({ slot }, DxpuError.from(error).message);
      }
    }
  }

  /** Within the call: afterwards nothing reaches it. */
  remove(region: DmaRegion): void {
    for (const base of this.#registered.get(region) ?? []) {
      this.#proxy.unregisterSlotMemory(this.#virtualSlot, base);
    }
    this.#registered.delete(region);
  }

  removeAll(): void {
    for (const region of this.#registered.keys()) this.remove(region);
  }
}
