/**
 * QEMU and its guest as far as a host proxy sees them, in virtual time: root ports, devices that come and go by
 * QMP, and a client of each device that is served. A guest does what a test says, and lets go of a device
 * `letsGoAfterNs` after it was asked.
 */
import type { Nanos } from '#base/units';
import type { VirtualClock } from '#base/virtual-clock';
import { DmaRegion } from '#vfio-user/dma-map';
import { REGION_CONFIG } from '#vfio-user/region-info';
import type { DeviceClient, ServedDevice } from '#vfio-user/served-device';
import type { QmpConnectionUser } from '#vm/qmp-connection';
import type { QmpAnswer, QmpDone } from '#vm/qmp-session';

export interface FakePort {
  bus: number;
  memory: readonly [base: number, limit: number];
  prefetchable: readonly [base: number, limit: number];
}

/** A device QEMU has, and what its driver in QEMU does with the server. */
export class QemuDevice {
  readonly device: ServedDevice | undefined;
  readonly bus: string;
  /** MSI vectors fired, and levels of INTx, as they came. */
  readonly fired: string[] = [];
  isLeaving = false;
  #isAttached = false;
  readonly #clock: VirtualClock;

  constructor(clock: VirtualClock, bus: string, device: ServedDevice | undefined) {
    this.#clock = clock;
    this.bus = bus;
    this.device = device;
  }

  attach(memory: readonly DmaRegion[]): void {
    const now = this.#clock.now();
    const client: Partial<DeviceClient> = {
      trigger: (index, vector) => this.fired.push(`irq ${index} vector ${vector}`),
      setIntx: (level) => this.fired.push(`INTx ${level ? 'on' : 'off'}`),
    };
    this.#isAttached = true;
    this.device?.attached(now, client as DeviceClient);
    for (const region of memory) this.device?.memoryAdded?.(now, region);
  }

  /** Its connection ends. */
  detach(memory: readonly DmaRegion[]): void {
    if (!this.#isAttached) return;
    this.#isAttached = false;
    const now = this.#clock.now();
    for (const region of memory) this.device?.memoryRemoved?.(now, region);
    this.device?.detached(now, 'QEMU has closed it');
  }

  /** Reads `count` bytes; runs virtual time until they are there. */
  read(region: number, offset: number, count: number): string {
    let bytes: Uint8Array | undefined;
    this.device?.read(this.#clock.now(), {
      region,
      offset,
      count,
      complete: (_now, from, at = 0) => {
        bytes = from.slice(at, at + count);
      },
      fail: (_now, errno) => {
        throw new Error(`errno ${errno}`);
      },
    });
    this.#clock.runWhile(() => bytes === undefined, this.#clock.now() + 10e9);
    if (bytes === undefined) throw new Error('a read without an answer');
    return Buffer.from(bytes).toString('hex');
  }

  /** Writes bytes given in hexadecimal, lowest address first. */
  write(region: number, offset: number, hex: string): void {
    const bytes = Buffer.from(hex, 'hex');
    let isDone = false;
    this.device?.write(this.#clock.now(), {
      region,
      offset,
      count: bytes.length,
      bytes,
      done: () => {
        isDone = true;
      },
      fail: (_now, errno) => {
        throw new Error(`errno ${errno}`);
      },
    });
    this.#clock.runWhile(() => !isDone, this.#clock.now() + 10e9);
    if (!isDone) throw new Error('a write without an answer');
  }

  writeRegister(register: number, value: number): void {
    const word = Buffer.alloc(4);
    word.writeUInt32LE(value >>> 0);
    this.write(REGION_CONFIG, register, word.toString('hex'));
  }

  /** DEVICE_RESET; returns how long it took. */
  reset(): number {
    const before = this.#clock.now();
    let tookNs: number | undefined;
    this.device?.reset(before, {
      done: (now) => {
        tookNs = now - before;
      },
      fail: (_now, errno) => {
        throw new Error(`errno ${errno}`);
      },
    });
    this.#clock.runWhile(() => tookNs === undefined, before + 60e9);
    return tookNs ?? Infinity;
  }

  /** As firmware and kernels do: learns the size of each 64-bit BAR, then gives it its address. */
  place(bars: ReadonlyMap<number, number>): void {
    for (const [index, address] of bars) {
      const register = 0x10 + 4 * index;
      for (const value of [0xffff_ffff, address % 2 ** 32]) this.writeRegister(register, value);
      for (const value of [0xffff_ffff, Math.floor(address / 2 ** 32)]) {
        this.writeRegister(register + 4, value);
      }
    }
  }
}

const ANSWER_NS = 1e6;

export class FakeQemu {
  readonly ports = new Map<string, FakePort>();
  readonly devices = new Map<string, QemuDevice>();
  /** Commands in order, with what they were about; `query-pci` is left out. */
  readonly commands: string[] = [];
  /** What is listened at, by path, and whether it was closed since. */
  readonly served = new Map<string, ServedDevice>();
  letsGoAfterNs = 6e9;
  /** Answers in place of what QEMU would say, by command. */
  readonly answers = new Map<string, QmpAnswer>();
  /** What QEMU lends each device of its memory. */
  memory: readonly DmaRegion[] = [];
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
    for (const one of this.devices.values()) one.detach(this.memory);
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
    one.detach(this.memory);
    this.event('DEVICE_DELETED', { device: id, path: `/machine/peripheral/${id}` });
  }

  device(slot: number): QemuDevice {
    const one = this.devices.get(`dxpu-slot${slot}`);
    if (one === undefined) throw new Error(`QEMU has no dxpu-slot${slot}`);
    return one;
  }

  #execute(command: string, args: Readonly<Record<string, unknown>>, done: QmpDone): void {
    if (command !== 'query-pci') {
      this.commands.push([command, args['id'], args['bus']].filter(Boolean).join(' '));
    }
    this.#clock.at((this.#clock.now() + ANSWER_NS) as Nanos, (now) => {
      if (!this.#isThere) done(now, { ok: false, kind: 'gone', message: 'QEMU is not connected' });
      else done(now, this.answers.get(command) ?? this.#answer(command, args));
    });
  }

  #answer(command: string, args: Readonly<Record<string, unknown>>): QmpAnswer {
    const id = String(args['id']);
    switch (command) {
      case 'qom-list':
        return { ok: true, value: [...this.devices.keys()].map((name) => ({ name })) };
      case 'query-pci':
        return { ok: true, value: [{ bus: 0, devices: [...this.ports].map(bridge) }] };
      case 'device_add': {
        const { path } = args['socket'] as { path: string };
        const one = new QemuDevice(this.#clock, String(args['bus']), this.served.get(path));
        this.devices.set(id, one);
        one.attach(this.memory);
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
