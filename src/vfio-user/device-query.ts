/**
 * Asks a server for all there is to know about its device: the numbers, then every region and interrupt
 * type at once. The first answer that cannot be ends it.
 */
import type { Nanos } from '#base/units';
import type { DeviceDescription } from './client-options.ts';
import { decodeDeviceInfoReply, type DeviceInfo, encodeDeviceInfoRequest } from './device-info.ts';
import { decodeIrqInfoReply, encodeIrqInfoRequest, IRQ_MSIX } from './irq-info.ts';
import { Command, type Message } from './message.ts';
import type { ReplyHandler } from './pending-requests.ts';
import { Errno, Refusal } from './refusal.ts';
import type { SendRequest } from './region-client.ts';
import {
  decodeRegionInfoReply,
  encodeRegionInfoRequest,
  MAX_REGION_INFO_BYTES,
  regionInfoBytesNeeded,
  type RegionInfo,
} from './region-info.ts';

/** A PCI device has 9 regions and 5 interrupt types; more are device-specific. */
const MAX_OF_EACH = 64;
/** MSI-X has at most 2048 vectors, MSI 32, all others one. */
const MAX_MSIX = 2048;
const MAX_OTHER_IRQS = 32;

export interface DeviceQueryOptions {
  readonly request: SendRequest;
  /** Takes over the descriptor of a region. */
  readonly keepFd: (index: number, fd: number) => void;
  readonly closeFds: (fds: readonly number[]) => void;
  /** Called once. */
  readonly done: (now: Nanos, found: Omit<DeviceDescription, 'writeMultiple'> | Refusal) => void;
}

export class DeviceQuery {
  readonly #options: DeviceQueryOptions;
  readonly #regions: RegionInfo[] = [];
  readonly #irqs: number[] = [];
  #left = 0;
  #isDone = false;

  constructor(options: DeviceQueryOptions) {
    this.#options = options;
  }

  start(now: Nanos): void {
    const handler: ReplyHandler = (then, reply) => {
      const info = reply instanceof Refusal ? reply : decodeDeviceInfoReply(reply, MAX_OF_EACH);
      if (info instanceof Refusal) this.#finish(then, info);
      else if (!info.pci) this.#finish(then, new Refusal(Errno.EINVAL, 'it is no PCI device'));
      else this.#askParts(then, info);
    };
    this.#options.request(now, Command.DEVICE_GET_INFO, encodeDeviceInfoRequest, handler);
  }

  #askParts(now: Nanos, info: DeviceInfo): void {
    this.#left = info.regions + info.irqs;
    if (this.#left === 0) {
      this.#finish(now, new Refusal(Errno.EINVAL, 'it has neither regions nor interrupts'));
      return;
    }
    const { request } = this.#options;
    for (let index = 0; index < info.regions; index++) {
      const encode = (id: number): Uint8Array =>
        encodeRegionInfoRequest(id, index, MAX_REGION_INFO_BYTES);
      const handler: ReplyHandler = (then, reply, fds) => {
        const region = this.#region(index, reply, fds);
        if (!(region instanceof Refusal)) this.#regions[index] = region;
        this.#got(then, region, info);
      };
      request(now, Command.DEVICE_GET_REGION_INFO, encode, handler, [], true);
    }
    for (let index = 0; index < info.irqs; index++) {
      const encode = (id: number): Uint8Array => encodeIrqInfoRequest(id, index);
      const max = index === IRQ_MSIX ? MAX_MSIX : MAX_OTHER_IRQS;
      request(now, Command.DEVICE_GET_IRQ_INFO, encode, (then, reply) => {
        const count = reply instanceof Refusal ? reply : decodeIrqInfoReply(reply, index, max);
        if (!(count instanceof Refusal)) this.#irqs[index] = count;
        this.#got(then, count, info);
      });
    }
  }

  #region(index: number, reply: Message | Refusal, fds: readonly number[]): RegionInfo | Refusal {
    const { keepFd, closeFds } = this.#options;
    const region = reply instanceof Refusal ? reply : decodeRegionInfoReply(reply, index);
    const [fd] = fds;
    const keeps = fd !== undefined && !(region instanceof Refusal) && region.mmap && !this.#isDone;
    closeFds(keeps ? fds.slice(1) : fds);
    if (keeps) keepFd(index, fd);
    if (!(reply instanceof Refusal) && regionInfoBytesNeeded(reply) > MAX_REGION_INFO_BYTES) {
      return new Refusal(Errno.EINVAL, `region ${index} has too many parts`);
    }
    return region;
  }

  #got(now: Nanos, got: unknown, info: DeviceInfo): void {
    this.#left--;
    if (got instanceof Refusal) this.#finish(now, got);
    else if (this.#left === 0) {
      const { resettable } = info;
      this.#finish(now, { resettable, regions: this.#regions, irqs: this.#irqs });
    }
  }

  #finish(now: Nanos, found: Omit<DeviceDescription, 'writeMultiple'> | Refusal): void {
    if (this.#isDone) return;
    this.#isDone = true;
    this.#options.done(now, found);
  }
}
