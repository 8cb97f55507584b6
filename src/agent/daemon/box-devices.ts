/** What is in the slots of a box: models of this process, and devices that others serve over vfio-user. */
import type { Clock } from '#base/clock';
import { DxpuError } from '#base/errors';
import { Pause } from '#base/pause';
import type { Nanos } from '#base/units';
import type { DeviceModel } from '#devices/device-model';
import { createDeviceModel, type ModelChoice } from '#devices/device-models';
import type { GpuNodeReport } from '#proto/agent-messages';
import type { Logger } from './logger.ts';
import { RemoteDevice, type RemoteSocket } from './remote-device.ts';

/** A device that another process serves over vfio-user, at a socket. */
export interface RemoteChoice {
  readonly kind: 'vfio-user';
  readonly options: { readonly path: string; readonly uuid: string; readonly model?: string };
}

/** What is in a slot. */
export type BoxDevice = (ModelChoice | RemoteChoice) & {
  readonly slot: number;
  /** Devices with the same name reach each other by NVLink. Default '': none. */
  readonly nvlinkGroup?: string;
};

export interface BoxDevicesOptions {
  readonly devices: readonly BoxDevice[];
  /** The way to devices of other processes. Default: unix sockets, loaded when the first is wanted. */
  readonly remoteSocket?: ((path: string) => RemoteSocket) | undefined;
  readonly clock: Clock;
  readonly log: Logger;
  /** What a device has caused by itself is to be sent. */
  readonly onWork: () => void;
  /** `Device.outage` of a slot has changed. */
  readonly onChanged: (now: Nanos, slot: number) => void;
}

export class BoxDevices {
  readonly bySlot: ReadonlyMap<number, DeviceModel>;
  readonly #options: BoxDevicesOptions;
  readonly #remotes = new Map<number, RemoteDevice>();
  readonly #nodes = new Map<number, GpuNodeReport>();
  /** Slots of which nothing is known yet: neither that the device is there nor that it is away. */
  readonly #unseen = new Set<number>();
  readonly #unseenPause = new Pause();
  #isStopped = false;

  constructor(options: BoxDevicesOptions) {
    this.#options = options;
    this.bySlot = new Map(options.devices.map((device) => [device.slot, this.#make(device)]));
  }

  /** Looks for the devices of other processes from now on. */
  start(): void {
    if (this.#remotes.size > 0) void this.#startRemotes();
  }

  /**
   * Waits until each device of another process is there or known to be away, and `withinNs` at most. What is
   * said of the slots before that would have a manager believe that devices are gone which are only being
   * looked at.
   */
  allSeen(withinNs: number): Promise<void> {
    if (this.#unseen.size === 0) return Promise.resolve();
    return this.#unseenPause.for(this.#options.clock, withinNs);
  }

  stop(now: Nanos): void {
    this.#isStopped = true;
    for (const remote of this.#remotes.values()) remote.stop(now);
  }

  /** `undefined` while nobody knows: its process was never there. */
  nodeOf(slot: number): GpuNodeReport | undefined {
    const known = this.#nodes.get(slot);
    const device = this.bySlot.get(slot);
    if (known !== undefined || device === undefined) return known;
    if (this.#remotes.get(slot)?.isKnown === false) return undefined;
    const { nvlinkGroup } = this.#options.devices.find((one) => one.slot === slot) ?? {};
    const node = nodeOf(device, nvlinkGroup ?? '');
    this.#nodes.set(slot, node);
    return node;
  }

  #make(device: BoxDevice): DeviceModel {
    const { slot } = device;
    const { clock, log, onWork, onChanged } = this.#options;
    if (device.kind !== 'vfio-user') {
      return createDeviceModel(device, (message) => log.warn({ slot }, message));
    }
    const remote = new RemoteDevice({
      ...device.options,
      clock,
      onWork: () => {
        if (!this.#isStopped) onWork();
      },
      onChanged: (now) => {
        // That the box lets go of it is nothing that went wrong with it.
        if (this.#isStopped) return;
        onChanged(now, slot);
        if (this.#unseen.delete(slot) && this.#unseen.size === 0) this.#unseenPause.end();
      },
    });
    this.#remotes.set(slot, remote);
    this.#unseen.add(slot);
    return remote;
  }

  /** koffi is loaded for these alone. */
  async #startRemotes(): Promise<void> {
    const { clock } = this.#options;
    let socketOf = this.#options.remoteSocket;
    let reason = '';
    try {
      if (socketOf === undefined) {
        const { remoteSocket } = await import('./remote-socket.ts');
        socketOf = (path) => remoteSocket(path, clock);
      }
    } catch (error) {
      reason = `vfio-user needs koffi, which cannot be loaded: ${DxpuError.from(error).message}`;
    }
    if (this.#isStopped) return;
    for (const remote of this.#remotes.values()) {
      if (socketOf === undefined) remote.giveUp(clock.now(), reason);
      else remote.start(clock.now(), socketOf(remote.path));
    }
  }
}

function nodeOf(device: DeviceModel, nvlinkGroup: string): GpuNodeReport {
  const { uuid, model, memoryBytes } = device.identity;
  return {
    uuid,
    model,
    memoryBytes,
    nvlinkGroup,
    bars: device.bars.map(({ index, sizeBytes, prefetchable, is64Bit }) => ({
      index,
      sizeBytes,
      prefetchable,
      is64: is64Bit,
    })),
  };
}
