/**
 * The memory of one client as the device sees it: which regions there are, and transfers to and from
 * them. `DmaMap` owns the memory, `DmaEngine` the transfers; taking memory back goes through both.
 */
import type { Nanos } from '#base/units';
import { DmaEngine, type DmaEngineOptions } from './dma-engine.ts';
import { DmaMap, type DmaRegion } from './dma-map.ts';
import { decodeDmaMap, decodeDmaUnmap } from './dma-mapping.ts';
import { closeAll, type FdOperations } from './fd-operations.ts';
import type { Message } from './message.ts';
import { Errno, Refusal } from './refusal.ts';
import type { ServedDevice } from './served-device.ts';
import type { ServerSettings } from './server-options.ts';

export class MemoryServer {
  readonly map: DmaMap;
  readonly engine: DmaEngine;
  readonly #device: ServedDevice;
  readonly #fds: FdOperations;

  constructor(
    device: ServedDevice,
    settings: ServerSettings,
    options: Omit<DmaEngineOptions, 'map' | 'maxMessages'>,
  ) {
    this.#device = device;
    this.#fds = options.fds;
    this.map = new DmaMap(options.fds, {
      unsealedMemory: settings.unsealedMemory,
      maxRegions: settings.maxDmaMaps,
      maxMapped: settings.maxMappedRegions,
    });
    const maxMessages = settings.maxDmaMessages;
    this.engine = new DmaEngine({ ...options, map: this.map, maxMessages });
  }

  /** DMA_MAP. Takes over `fds`, whatever it returns. */
  add(now: Nanos, message: Message, fds: readonly number[]): Refusal | undefined {
    const request = decodeDmaMap(message);
    if (request instanceof Refusal || fds.length > 1) {
      closeAll(this.#fds, fds);
      if (request instanceof Refusal) return request;
      return new Refusal(Errno.EINVAL, `DMA_MAP with ${fds.length} descriptors`);
    }
    const region = this.map.add(request, fds[0]);
    if (region instanceof Refusal) return region;
    this.#device.memoryAdded?.(now, region);
    return undefined;
  }

  /** DMA_UNMAP. When it returns, nothing reaches that memory any more. */
  remove(now: Nanos, message: Message): Refusal | undefined {
    const request = decodeDmaUnmap(message);
    if (request instanceof Refusal) return request;
    const regions = this.map.named(request);
    if (regions instanceof Refusal) return regions;
    for (const region of regions) this.#removeOne(now, region);
    return undefined;
  }

  removeAll(now: Nanos): void {
    for (const region of Array.from(this.map.regions())) this.#removeOne(now, region);
  }

  #removeOne(now: Nanos, region: DmaRegion): void {
    this.#device.memoryRemoved?.(now, region);
    this.map.remove(region);
    this.engine.drop(now, region);
  }
}
