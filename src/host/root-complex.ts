/**
 * The root complex of a soft host: what the CPU's loads, stores and config accesses become on PCIe.
 *
 * Who calls whom: software calls the access methods; each ends with one call of its callback, maybe
 * before the method returns. `SoftHost` finds the virtual port an access goes down through and hands
 * it to the `RequestEngine`; the ports themselves answer config requests on bus 0. The fabric calls
 * the `RootSide` methods. DMA does not come by here: the fabric touches the registered memory.
 * Whoever drives the host calls `tick` at `nextDeadlineNs`, which covers the tasks as well.
 */
import { assert } from '#base/assert';
import type { Timed } from '#base/clock';
import type { Nanos } from '#base/units';
import type { DownstreamFabric, RootSide } from '#pcie/root-port';
import type { Tlp } from '#pcie/tlp';
import {
  type Access,
  type AccessDone,
  AccessKind,
  AccessStatus,
  type ReadDone,
} from './cpu-access.ts';
import { checkLayout, checkTlpSize } from './host-layout.ts';
import { HostMemory, type HostMemoryRegion } from './host-memory.ts';
import { MSI_ADDRESS, MSI_VECTORS_PER_SLOT, msiVectorOf } from './msi-vectors.ts';
import { RequestEngine } from './request-engine.ts';
import { Signal, TaskRunner } from './task.ts';
import { VirtualPort, type VirtualPortOptions } from './virtual-port.ts';

export interface SoftHostOptions {
  /** Index in this list is the virtual slot number. 1 to 31 of them. */
  readonly ports: readonly VirtualPortOptions[];
  /** Default: 64 MiB at address 0. */
  readonly memory?: readonly HostMemoryRegion[];
  /** Payload of CPU writes, and what enumeration sets functions to, if they support it. Default 256. */
  readonly maxPayloadBytes?: number;
  /** Largest CPU read, and what enumeration sets functions to. Default 512. */
  readonly maxReadRequestBytes?: number;
  /** CPU requests outstanding at once, 1 to 768. Default 256. */
  readonly tags?: number;
  /** Default 4 s. */
  readonly completionTimeoutNs?: number;
  /** How long config accesses answered "retry" are made again, but for vendor IDs. Default 1 s. */
  readonly configRetryNs?: number;
  /** Called when `nextDeadlineNs` may have become earlier: `() => timerDriver.update()`. */
  readonly onDeadline?: () => void;
}

export interface HostListener {
  /** Presence and data link of a slot changed; the port's registers already say so. */
  slotChanged?(now: Nanos, virtualSlot: number, active: boolean, surprise: boolean): void;
}

const ALL_ONES = 0xffff_ffff;

export class SoftHost implements RootSide, Timed {
  readonly memory: HostMemory;
  readonly ports: readonly VirtualPort[];
  readonly tasks: TaskRunner;
  readonly maxPayloadBytes: number;
  readonly maxReadRequestBytes: number;
  /** Interrupts that belong to no vector of the slot they came from. */
  strayInterrupts = 0;
  readonly #requests: RequestEngine;
  readonly #listeners: HostListener[] = [];
  /** Index: slot × MSI_VECTORS_PER_SLOT + vector. */
  readonly #msi: readonly Signal[];
  readonly #configRetryNs: number;
  #attached = false;

  /** Fails with `invalid_argument`, naming the two, when windows, memory or buses overlap. */
  constructor(options: SoftHostOptions) {
    this.maxPayloadBytes = checkTlpSize('maxPayloadBytes', options.maxPayloadBytes ?? 256);
    this.maxReadRequestBytes = checkTlpSize(
      'maxReadRequestBytes',
      options.maxReadRequestBytes ?? 512,
    );
    const memory = options.memory ?? [{ base: 0, sizeBytes: 64 * 2 ** 20 }];
    checkLayout(options.ports, memory);
    this.memory = new HostMemory(memory);
    this.ports = options.ports.map(
      (port, index) => new VirtualPort(index, port, this.maxPayloadBytes),
    );
    this.#configRetryNs = options.configRetryNs ?? 1e9;
    const onDeadline = options.onDeadline ?? ((): void => {});
    this.tasks = new TaskRunner(onDeadline);
    this.#requests = new RequestEngine(
      {
        slots: this.ports.length,
        tags: options.tags ?? 256,
        maxReadRequestBytes: this.maxReadRequestBytes,
        completionTimeoutNs: options.completionTimeoutNs ?? 4e9,
      },
      this.tasks,
      onDeadline,
    );
    this.#msi = Array.from(
      { length: this.ports.length * MSI_VECTORS_PER_SLOT },
      () => new Signal(),
    );
  }

  /** Connects to the fabric and registers all memory with it. Once, before anything else. */
  attach(fabric: DownstreamFabric): void {
    assert(!this.#attached, 'a host is attached once');
    this.#attached = true;
    this.#requests.attach(fabric);
    this.memory.forEachRegion((base, bytes) => {
      fabric.registerMemory(base, bytes, { read: true, write: true });
    });
  }

  addListener(listener: HostListener): void {
    this.#listeners.push(listener);
  }

  /** What is notified of each MSI of a function's vector. */
  msiSignal(virtualSlot: number, vector: number): Signal {
    const signal = this.#msi[virtualSlot * MSI_VECTORS_PER_SLOT + vector];
    assert(signal !== undefined, `no vector ${vector} of slot ${virtualSlot}`);
    return signal;
  }

  /** Figures of the root complex's requests. `heldTags`: timed out and not answered since. */
  get requestCounts(): {
    readonly timeouts: number;
    readonly lateCompletions: number;
    readonly unexpectedCompletions: number;
    readonly heldTags: number;
  } {
    const { timeouts, lateCompletions, unexpectedCompletions, heldTags } = this.#requests;
    return { timeouts, lateCompletions, unexpectedCompletions, heldTags };
  }

  /** Requests to a slot that were not answered within the completion timeout; only grows. */
  timeoutsOf(virtualSlot: number): number {
    return this.#requests.timeoutsOf(virtualSlot);
  }

  /** The payload CPU writes to a slot may carry, once its function can take as much. */
  setSlotPayload(virtualSlot: number, bytes: number): void {
    this.#requests.setMaxPayload(virtualSlot, Math.min(bytes, this.maxPayloadBytes));
  }

  /** Back to what any function can take. */
  resetSlotPayload(virtualSlot: number): void {
    this.#requests.resetMaxPayload(virtualSlot);
  }

  /**
   * Reads a config register (byte offset, DW aligned). Nobody there: all ones. A vendor ID answered
   * "retry": 0xffff0001 at once; any other register is asked for again until it is answered.
   */
  configRead(now: Nanos, bdf: number, register: number, done: ReadDone): void {
    const port = this.#portOfBus(bdf >>> 8);
    if (port === undefined) {
      const own = bdf < 0x100 ? this.#portAt(bdf) : undefined;
      if (own === undefined) done(now, ALL_ONES, AccessStatus.UNSUPPORTED);
      else done(now, own.config.read32(register), AccessStatus.OK);
      return;
    }
    const access = this.#takeConfig(now, AccessKind.CONFIG_READ, port, bdf, register, 15);
    access.readDone = done;
    this.#requests.submit(now, access);
  }

  /** Writes the bytes of `value` that `byteEnables` (bit n: byte n) names; ends with the answer. */
  configWrite(
    now: Nanos,
    bdf: number,
    register: number,
    value: number,
    byteEnables: number,
    done: AccessDone,
  ): void {
    const port = this.#portOfBus(bdf >>> 8);
    if (port === undefined) {
      const own = bdf < 0x100 ? this.#portAt(bdf) : undefined;
      own?.writeConfig(register, value, byteEnables);
      done(now, own === undefined ? AccessStatus.UNSUPPORTED : AccessStatus.OK);
      return;
    }
    const access = this.#takeConfig(now, AccessKind.CONFIG_WRITE, port, bdf, register, byteEnables);
    access.setScratch(value);
    access.done = done;
    this.#requests.submit(now, access);
  }

  /** A 4-byte load from a DW aligned address of a window. Allocates nothing. */
  readMmio32(now: Nanos, address: number, done: ReadDone): void {
    const port = this.#portOfAddress(address, 4);
    if (port === undefined) {
      done(now, ALL_ONES, AccessStatus.UNSUPPORTED);
      return;
    }
    const access = this.#requests.pool.take(AccessKind.READ, port.virtualSlot);
    access.address = address;
    access.bytes = 4;
    access.readDone = done;
    this.#requests.submit(now, access);
  }

  /** A 4-byte store to a DW aligned address, posted: nothing says whether it arrived. */
  writeMmio32(now: Nanos, address: number, value: number): void {
    const port = this.#portOfAddress(address, 4);
    if (port === undefined) return;
    const access = this.#requests.pool.take(AccessKind.WRITE, port.virtualSlot);
    access.address = address;
    access.bytes = 4;
    access.setScratch(value);
    this.#requests.submit(now, access);
  }

  /**
   * Loads `into.length` bytes (at least 1, at any address), in requests split as PCIe asks and
   * outstanding together. `into` belongs to the host until `done`.
   */
  readMemory(now: Nanos, address: number, into: Uint8Array, done: AccessDone): void {
    const port = this.#portOfAddress(address, into.length);
    if (port === undefined) {
      into.fill(0xff);
      done(now, AccessStatus.UNSUPPORTED);
      return;
    }
    this.#submitBulk(now, AccessKind.READ, port, address, into, done);
  }

  /**
   * Stores `from` (at least 1 byte, at any address), split as PCIe asks. `done` is called once all
   * was handed to the fabric; until then `from` belongs to the host.
   */
  writeMemory(now: Nanos, address: number, from: Uint8Array, done?: AccessDone): void {
    const port = this.#portOfAddress(address, from.length);
    if (port === undefined) {
      done?.(now, AccessStatus.UNSUPPORTED);
      return;
    }
    this.#submitBulk(now, AccessKind.WRITE, port, address, from, done);
  }

  completion(now: Nanos, tlp: Tlp): void {
    this.#requests.completion(now, tlp);
  }

  interrupt(now: Nanos, virtualSlot: number, address: number, data: number): void {
    const vector = address === MSI_ADDRESS ? msiVectorOf(virtualSlot, data) : -1;
    if (vector < 0) this.strayInterrupts++;
    else this.msiSignal(virtualSlot, vector).notify(now);
  }

  /** Its drivers use MSI alone, and every function is told to leave INTx alone. */
  interruptPin(_now: Nanos, _virtualSlot: number, asserted: boolean): void {
    if (asserted) this.strayInterrupts++;
  }

  linkActive(now: Nanos, virtualSlot: number, active: boolean, surprise: boolean): void {
    const port = this.ports[virtualSlot];
    // A slot this host does not have is the fabric's configuration at fault, and harms nobody.
    if (port === undefined || port.linkActive === active) return;
    port.setLinkActive(active);
    this.#requests.setLinkActive(now, virtualSlot, active);
    for (const listener of this.#listeners) {
      listener.slotChanged?.(now, virtualSlot, active, surprise);
    }
  }

  resume(now: Nanos): void {
    this.#requests.pump(now);
  }

  nextDeadlineNs(): number {
    return Math.min(this.#requests.nextDeadlineNs(), this.tasks.nextDeadlineNs());
  }

  tick(now: Nanos): void {
    this.#requests.tick(now);
    this.tasks.tick(now);
  }

  #submitBulk(
    now: Nanos,
    kind: AccessKind,
    port: VirtualPort,
    address: number,
    buffer: Uint8Array,
    done: AccessDone | undefined,
  ): void {
    assert(buffer.length > 0, 'an access has at least one byte');
    const access = this.#requests.pool.take(kind, port.virtualSlot);
    access.address = address;
    access.bytes = buffer.length;
    access.buffer = buffer;
    access.done = done;
    this.#requests.submit(now, access);
  }

  #takeConfig(
    now: Nanos,
    kind: AccessKind,
    port: VirtualPort,
    bdf: number,
    register: number,
    byteEnables: number,
  ): Access {
    const access = this.#requests.pool.take(kind, port.virtualSlot);
    access.address = 0;
    access.bytes = 4;
    access.bdf = bdf;
    access.register = register;
    access.byteEnables = byteEnables;
    access.retryUntilNs = now + this.#configRetryNs;
    return access;
  }

  #portAt(bdf: number): VirtualPort | undefined {
    return (bdf & 7) === 0 ? this.ports[(bdf >>> 3) - 1] : undefined;
  }

  #portOfBus(bus: number): VirtualPort | undefined {
    for (const port of this.ports) if (port.routesBus(bus)) return port;
    return undefined;
  }

  #portOfAddress(address: number, bytes: number): VirtualPort | undefined {
    for (const port of this.ports) if (port.forwards(address, bytes)) return port;
    return undefined;
  }
}
