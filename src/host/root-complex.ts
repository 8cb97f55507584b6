/**
 * The root complex of a soft host: what the CPU's loads, stores and config accesses become on PCIe.
 */
import type { Timed } from '#base/clock';
import type { Nanos } from '#base/units';
import type { DownstreamFabric, RootSide } from '#pcie/root-port';
import type { Tlp } from '#pcie/tlp';
import { HostMemory, type HostMemoryRegion } from './host-memory.ts';
import { TaskRunner } from './task.ts';
import { VirtualPort, type VirtualPortOptions } from './virtual-port.ts';

export interface SoftHostOptions {
  /** Index in this list is the virtual slot number. At most 31. */
  readonly ports: readonly VirtualPortOptions[];
  /** Default: 64 MiB at address 0. */
  readonly memory?: readonly HostMemoryRegion[];
  /** Payload of CPU writes, and what enumeration sets functions to. Default 256. */
  readonly maxPayloadBytes?: number;
  /** Largest CPU read, and what enumeration sets functions to. Default 512. */
  readonly maxReadRequestBytes?: number;
  /** CPU requests outstanding at once. Default 256. */
  readonly tags?: number;
  /** Default 4 s. */
  readonly completionTimeoutNs?: number;
  /** Called when `nextDeadlineNs` may have moved: `() => timerDriver.update()`. */
  readonly onDeadline?: () => void;
}

/** How a CPU access ended. Loads that did not end `OK` read all ones. */
export const AccessStatus = {
  OK: 0,
  /** Unsupported request, or nothing there: no window, no link, memory decode of the port off. */
  UNSUPPORTED: 1,
  /** Only for config accesses that ended with the retry status after the whole retry time. */
  RETRY: 2,
  ABORTED: 4,
  TIMEOUT: 8,
  POISONED: 16,
} as const;
export type AccessStatus = (typeof AccessStatus)[keyof typeof AccessStatus];

export type ReadDone = (now: Nanos, value: number, status: AccessStatus) => void;
export type AccessDone = (now: Nanos, status: AccessStatus) => void;

export interface HostListener {
  /** Presence and data link of a slot changed; the port's registers already say so. */
  slotChanged?(now: Nanos, virtualSlot: number, active: boolean, surprise: boolean): void;
  /** An MSI arrived. */
  interrupt?(now: Nanos, virtualSlot: number, address: number, data: number): void;
}

export class SoftHost implements RootSide, Timed {
  readonly memory: HostMemory;
  readonly ports: readonly VirtualPort[];
  readonly tasks: TaskRunner;

  constructor(options: SoftHostOptions) {
    this.memory = new HostMemory(options.memory ?? [{ base: 0, sizeBytes: 64 * 2 ** 20 }]);
    this.ports = options.ports.map((port, index) => new VirtualPort(index, port));
    this.tasks = new TaskRunner();
  }

  /** Connects to the fabric and registers all memory with it. Once, before anything else. */
  attach(_fabric: DownstreamFabric): void {
    throw new Error('to be written');
  }
  addListener(_listener: HostListener): void {
    throw new Error('to be written');
  }

  /** `done` gets the register; a register nobody answers for reads 0xffffffff. */
  configRead(_now: Nanos, _bdf: number, _register: number, _done: ReadDone): void {
    throw new Error('to be written');
  }
  /** Writes the bytes of `value` that `byteEnables` (4 bits) names. */
  configWrite(
    _now: Nanos,
    _bdf: number,
    _register: number,
    _value: number,
    _byteEnables: number,
    _done: AccessDone,
  ): void {
    throw new Error('to be written');
  }
  /** A 4-byte load from a DW aligned address of a window. */
  readMmio32(_now: Nanos, _address: number, _done: ReadDone): void {
    throw new Error('to be written');
  }
  /** A 4-byte store, posted: nothing says when, or whether, it arrived. */
  writeMmio32(_now: Nanos, _address: number, _value: number): void {
    throw new Error('to be written');
  }
  /** Loads `into.length` bytes (any number, any address), split as PCIe asks. */
  readMemory(_now: Nanos, _address: number, _into: Uint8Array, _done: AccessDone): void {
    throw new Error('to be written');
  }
  /** Stores `from`, split as PCIe asks. `done` is called once all was handed to the fabric. */
  writeMemory(_now: Nanos, _address: number, _from: Uint8Array, _done?: AccessDone): void {
    throw new Error('to be written');
  }

  completion(_now: Nanos, _tlp: Tlp): void {
    throw new Error('to be written');
  }
  interrupt(_now: Nanos, _virtualSlot: number, _address: number, _data: number): void {
    throw new Error('to be written');
  }
  linkActive(_now: Nanos, _virtualSlot: number, _active: boolean, _surprise: boolean): void {
    throw new Error('to be written');
  }
  resume(_now: Nanos): void {
    throw new Error('to be written');
  }
  nextDeadlineNs(): number {
    throw new Error('to be written');
  }
  tick(_now: Nanos): void {
    throw new Error('to be written');
  }
}
