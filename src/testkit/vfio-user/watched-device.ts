/** A device whose transfers are held against what its client has lent; a difference throws. */
import type { Nanos } from '#base/units';
import type { DmaRegion } from '#vfio-user/dma-map';
import type { DmaTransfer } from '#vfio-user/dma-transfer';
import type { Done } from '#vfio-user/refusal';
import type {
  DeviceClient,
  DeviceSpec,
  RegionRead,
  RegionWriteAccess,
  ResetAccess,
  ServedDevice,
} from '#vfio-user/served-device';
import type { LentMemory } from './lent-memory.ts';

export class WatchedDevice implements ServedDevice {
  readonly #device: ServedDevice;
  readonly #lent: LentMemory;
  #client: DeviceClient | undefined;

  constructor(device: ServedDevice, lent: LentMemory) {
    this.#device = device;
    this.#lent = lent;
  }

  /** The client as the device has it, once there is one. */
  get client(): DeviceClient | undefined {
    return this.#client;
  }

  get spec(): DeviceSpec {
    return this.#device.spec;
  }

  attached(now: Nanos, client: DeviceClient): void {
    const transfer =
      (isWrite: boolean) =>
      (then: Nanos, asked: DmaTransfer): void => {
        const { address, count, done } = asked;
        const how = this.#lent.allows(isWrite, address, count);
        if (how !== undefined) this.#lent.reached(address, count);
        const what = `${isWrite ? 'writing' : 'reading'} ${count} bytes at 0x${address.toString(16)}`;
        const checked: Done = (ended, refused) => {
          if (how === undefined && refused === undefined)
            throw new Error(`${what}: it is not lent`);
          if (how === 'file' && refused !== undefined)
            throw new Error(`${what}: ${refused.reason}`);
          done(ended, refused);
        };
        const transfer = { ...asked, done: checked };
        if (isWrite) client.dmaWrite(then, transfer);
        else client.dmaRead(then, transfer);
      };
    this.#client = {
      dmaRead: transfer(false),
      dmaWrite: transfer(true),
      memoryAt: (address) => client.memoryAt(address),
      trigger: (index, vector) => client.trigger(index, vector),
      setIntx: (asserted) => client.setIntx(asserted),
      disconnect: (then, reason) => client.disconnect(then, reason),
    };
    this.#device.attached(now, this.#client);
  }

  detached(now: Nanos, reason: string): void {
    this.#client = undefined;
    this.#device.detached(now, reason);
  }

  read(now: Nanos, access: RegionRead): void {
    this.#device.read(now, access);
  }

  write(now: Nanos, access: RegionWriteAccess): void {
    this.#device.write(now, access);
  }

  reset(now: Nanos, access: ResetAccess): void {
    this.#device.reset(now, access);
  }

  memoryAdded(now: Nanos, region: DmaRegion): void {
    this.#device.memoryAdded?.(now, region);
  }

  memoryRemoved(now: Nanos, region: DmaRegion): void {
    this.#device.memoryRemoved?.(now, region);
  }

  turnEnd(now: Nanos): void {
    this.#device.turnEnd?.(now);
  }
}
