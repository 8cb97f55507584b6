/**
 * QEMU and its guest as far as a host proxy sees them, in virtual time: root ports, devices that come and go by
 * QMP, and a client of each device that is served. A guest does what a test says, and lets go of a device
 * `letsGoAfterNs` after it was asked.
 */
import type { Nanos } from '#base/units';
import type { VirtualClock } from '#base/virtual-clock';
import { DmaRegion } from '#vfio-user/dma-map';
import type { ServedDevice } from '#vfio-user/served-device';
import type { QmpConnectionUser } from '#vm/qmp-connection';
import type { QmpAnswer, QmpDone } from '#vm/qmp-session';
import { FakeGuest } from './fake-guest.ts';

export interface FakePort {
  bus: number;
  memory: readonly [base: number, limit: number];
  prefetchable: readonly [base: number, limit: number];
}

/** A device QEMU has, and its guest. */
export class QemuDevice extends FakeGuest {
  isLeaving = false;
  readonly #memory: readonly DmaRegion[];
  readonly #clock: VirtualClock;

  /** `memory` is lent to it as long as it is there. */
  constructor(device: ServedDevice, clock: VirtualClock, memory: readonly DmaRegion[]) {
    super(device, clock);
    this.#clock = clock;
    this.#memory = memory;
    for (const region of memory) device.memoryAdded?.(clock.now(), region);
  }

  override disconnect(): void {
    for (const region of this.#memory) this.device.memoryRemoved?.(this.#clock.now(), region);
    super.disconnect();
  }

  /** As firmware and kernels do: learns the size of each 64-bit BAR, then gives it its address. */
  place(bars: ReadonlyMap<number, number>): void {
    for (const [index, address] of bars) {
      const register = 0x10 + 4 * index;
      for (const value of [0xffff_ffff, address % 2 ** 32]) this.configWrite(register, value);
      for (const value of [0xffff_ffff, Math.floor(address / 2 ** 32)]) {
        this.configWrite(register + 4, value);
      }
    }
  }
}

export class FakeQemu {
  readonly ports = new Map<string, FakePort>();
  readonly devices = new Map<string, QemuDevice>();
  /** Commands in order, with what they were about; those that only ask are left out, but `qom-list`. */
  readonly commands: string[] = [];
  /** What is listened at, by path, and whether it was closed since. */
  readonly served = new Map<string, ServedDevice>();
  letsGoAfterNs = 6e9;
  /** From a command to its answer. */
  answerNs = 1e6;
  /** Answers in place of what QEMU would say, by command. */
  readonly answers = new Map<string, QmpAnswer>();
  /** What QEMU lends each device of its memory. */
  memory: readonly DmaRegion[] = [];
  /** Properties of `vfio-user-pci` that this QEMU does not have. */
  readonly unknown = new Set<string>();
  /** What each device was added with, by its id. */
  readonly added = new Map<string, Readonly<Record<string, unknown>>>();
  isStopped = false;
  readonly #clock: VirtualClock;
  #user: QmpConnectionUser | undefined;
  #isThere = false;

  constructor(clock: VirtualClock) {
    this.#clock = clock;
  }

  serve(device: ServedDevice, path: string): { close(): void } {
    this.served.set(path, device);
    return { close: () => this.served.delete(path) };
  }

  monitor(user: QmpConnectionUser): {
    execute(command: string, args: Readonly<Record<string, unknown>>, done: QmpDone): void;
    stop(): void;
  } {
    this.#user = user;
    return {
      execute: (command, args, done) => this.#execute(command, args, done),
      stop: () => {
        this.isStopped = true;
      },
    };
  }

  connect(): void {
    this.#isThere = true;
    this.#user?.connected(this.#clock.now());
  }

  /** The monitor alone is lost. */
  disconnect(): void {
    this.#isThere = false;
    this.#user?.disconnected(this.#clock.now(), 'QEMU has closed its QMP socket');
  }

  /** QEMU ends: devices lose their clients, `isMonitorFirst` after the monitor was lost. */
  end(isMonitorFirst = false): void {
    if (isMonitorFirst) this.disconnect();
    for (const one of this.devices.values()) one.disconnect();
    this.devices.clear();
    if (!isMonitorFirst) this.disconnect();
  }

  event(name: string, data: Readonly<Record<string, unknown>> = {}): void {
    this.#user?.event(this.#clock.now(), name, data);
  }

  /** The guest lets go of a device. */
  release(id: string): void {
    const one = this.devices.get(id);
    if (one === undefined) return;
    this.devices.delete(id);
    one.disconnect();
    this.event('DEVICE_DELETED', { device: id, path: `/machine/peripheral/${id}` });
  }

  device(slot: number): QemuDevice {
    const one = this.devices.get(`dxpu-slot${slot}`);
    if (one === undefined) throw new Error(`QEMU has no dxpu-slot${slot}`);
    return one;
  }

  #execute(command: string, args: Readonly<Record<string, unknown>>, done: QmpDone): void {
    if (!command.startsWith('query-')) {
      this.commands.push([command, args['id'], args['bus']].filter(Boolean).join(' '));
    }
    this.#clock.at((this.#clock.now() + this.answerNs) as Nanos, (now) => {
      if (!this.#isThere) done(now, { ok: false, kind: 'gone', message: 'QEMU is not connected' });
      else done(now, this.answers.get(command) ?? this.#answer(command, args));
    });
  }

  #answer(command: string, args: Readonly<Record<string, unknown>>): QmpAnswer {
    const id = String(args['id']);
    switch (command) {
      case 'qom-list':
        return { ok: true, value: [...this.devices.keys()].map((name) => ({ name })) };
      case 'query-memdev':
        return { ok: true, value: [{ id: 'memory', size: 2 ** 30, share: true }] };
      case 'query-pci':
        return { ok: true, value: [{ bus: 0, devices: [...this.ports].map(bridge) }] };
      case 'device_add': {
        const unknown = Object.keys(args).find((name) => this.unknown.has(name));
        if (unknown !== undefined) {
          const message = `Property 'vfio-user-pci.${unknown}' not found`;
          return { ok: false, kind: 'GenericError', message };
        }
        this.added.set(id, args);
        const { path } = args['socket'] as { path: string };
        const device = this.served.get(path);
        if (device === undefined) {
          const message = `Failed to connect to '${path}'`;
          return { ok: false, kind: 'GenericError', message };
        }
        this.devices.set(id, new QemuDevice(device, this.#clock, this.memory));
        return { ok: true, value: {} };
      }
      case 'device_del': {
        const one = this.devices.get(id);
        if (one === undefined) {
          return { ok: false, kind: 'DeviceNotFound', message: `Device '${id}' not found` };
        }
        if (one.isLeaving) {
          const message = `Device ${id} is already in the process of unplug`;
          return { ok: false, kind: 'GenericError', message };
        }
        one.isLeaving = true;
        if (this.letsGoAfterNs < Infinity) {
          this.#clock.at((this.#clock.now() + this.letsGoAfterNs) as Nanos, () => this.release(id));
        }
        return { ok: true, value: {} };
      }
      default:
        throw new Error(`QMP ${command}`);
    }
  }
}

/** As QEMU writes them: the example of `query-pci` in QEMU's QMP reference has the same fields. */
function bridge([id, port]: [string, FakePort]): object {
  const range = ([base, limit]: readonly [number, number]): object => ({ base, limit });
  return {
    bus: 0,
    slot: 2,
    function: 0,
    qdev_id: id,
    pci_bridge: {
      bus: {
        number: 0,
        secondary: port.bus,
        subordinate: port.bus,
        io_range: range([4096, 4095]),
        memory_range: range(port.memory),
        prefetchable_range: range(port.prefetchable),
      },
      devices: [],
    },
  };
}

/** Memory lent as QEMU lends it: mapped, shared. Without bytes: a page for which no descriptor came. */
export function lentMemory(address: number, bytes?: Uint8Array): DmaRegion {
  const sizeBytes = bytes?.length ?? 4096;
  return new DmaRegion(
    { address, sizeBytes, readable: true, writable: true, fileOffset: 0 },
    bytes && { windows: [bytes], windowBytes: sizeBytes, release: () => {} },
    undefined,
  );
}
