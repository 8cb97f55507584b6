/**
 * A small device to be served over vfio-user: a register BAR, device memory behind BAR 2, a DMA engine,
 * MSI, INTx, and MSI-X that can be hidden.
 *
 * Registers of BAR 0, 32 bit: ID 0x00 (read-only), SCRATCH 0x04, DMA address 0x08 and 0x0c, DMA length
 * 0x10, device offset 0x14, command 0x18 (1: to the guest, 2: from it), status 0x1c (0 idle, 1 done,
 * 2 busy, 0x8000_0000 | errno), raise vector 0x20, INTx level 0x24, HOLD 0x28 (reads of it are never
 * answered; the device keeps them in `held`).
 */
import type { Nanos } from '#base/units';
import { Bars } from '#pcie/bar';
import { ConfigSpace } from '#pcie/config-space';
import { Msi } from '#pcie/msi';
import { Msix } from '#pcie/msix';
import type { DmaRegion } from '#vfio-user/dma-map';
import { IRQ_INTX, IRQ_MSI, IRQ_MSIX } from '#vfio-user/irq-info';
import { type Done, Errno } from '#vfio-user/refusal';
import { REGION_CONFIG } from '#vfio-user/region-info';
import type {
  DeviceClient,
  DeviceSpec,
  RegionRead,
  RegionSpec,
  RegionWriteAccess,
  ResetAccess,
  ServedDevice,
  SharedRegion,
} from '#vfio-user/served-device';

export const EXAMPLE_ID = 0xd0da_0001;
export const EXAMPLE_MEMORY_BYTES = 1 << 20;
export const ExampleRegister = {
  ID: 0x00,
  SCRATCH: 0x04,
  DMA_ADDRESS: 0x08,
  DMA_LENGTH: 0x10,
  DEVICE_OFFSET: 0x14,
  COMMAND: 0x18,
  STATUS: 0x1c,
  RAISE: 0x20,
  INTX: 0x24,
  HOLD: 0x28,
} as const;
export const DMA_TO_GUEST = 1;
export const DMA_FROM_GUEST = 2;
export const STATUS_DONE = 1;
export const STATUS_BUSY = 2;
export const STATUS_ERROR = 0x8000_0000;

const BAR0_BYTES = 4096;
const VECTORS = 4;

export interface ExampleDeviceOptions {
  readonly msix?: 'hide' | 'expose' | 'none';
  readonly shared?: SharedRegion;
  readonly memory?: Uint8Array;
  readonly log?: (message: string) => void;
}

export class ExampleDevice implements ServedDevice {
  readonly config: ConfigSpace;
  readonly memory: Uint8Array;
  readonly spec: DeviceSpec;
  readonly held: RegionRead[] = [];
  readonly regions: DmaRegion[] = [];
  /** What happened, in words, for tests. */
  readonly events: string[] = [];
  client: DeviceClient | undefined;
  readonly #registers = new Uint8Array(BAR0_BYTES);
  readonly #view = new DataView(this.#registers.buffer);
  readonly #msi: Msi;
  #msixOffset = 0;

  constructor(options: ExampleDeviceOptions = {}) {
    const msix = options.msix ?? 'none';
    this.memory = options.memory ?? new Uint8Array(EXAMPLE_MEMORY_BYTES);
    this.config = new ConfigSpace({
      vendorId: 0x1234,
      deviceId: 0xcafe,
      revisionId: 1,
      classCode: 0x12_0000,
    });
    // Interrupt pin A, at 0x3d.
    this.config.define(0x3c, 0x0100, 0xff);
    const bars = [
      { index: 0, sizeBytes: BAR0_BYTES, is64Bit: false, prefetchable: false },
      { index: 2, sizeBytes: EXAMPLE_MEMORY_BYTES, is64Bit: true, prefetchable: true },
      { index: 4, sizeBytes: 4096, is64Bit: false, prefetchable: false },
    ];
    new Bars(this.config, bars);
    this.#msi = new Msi(this.config, { vectors: VECTORS, perVectorMasking: false });
    if (msix !== 'none') {
      const table = { tableBar: 4, tableOffset: 0, pbaBar: 4, pbaOffset: 0x800 };
      this.#msixOffset = new Msix(this.config, { vectors: VECTORS, ...table }).offset;
    }
    this.#reset();
    const regions = new Map<number, RegionSpec>();
    const access = { read: true, write: true };
    for (const { index, sizeBytes } of bars) regions.set(index, { sizeBytes, ...access });
    if (options.shared !== undefined) {
      regions.set(2, { sizeBytes: EXAMPLE_MEMORY_BYTES, ...access, shared: options.shared });
    }
    regions.set(REGION_CONFIG, { sizeBytes: 4096, ...access });
    this.spec = {
      regions,
      irqs: { intx: 1, msi: VECTORS, msix: msix === 'none' ? 0 : VECTORS, err: 0, req: 1 },
      resettable: true,
      msix: msix === 'expose' ? 'expose' : 'hide',
      config: this.#configBytes(0, 256),
    };
  }

  attached(_now: Nanos, client: DeviceClient): void {
    this.client = client;
    this.events.push('attached');
  }

  detached(_now: Nanos, reason: string): void {
    this.client = undefined;
    this.events.push(`detached: ${reason}`);
  }

  memoryAdded(_now: Nanos, region: DmaRegion): void {
    this.regions.push(region);
    this.events.push(`added 0x${region.address.toString(16)} ${region.access}`);
  }

  memoryRemoved(_now: Nanos, region: DmaRegion): void {
    this.regions.splice(this.regions.indexOf(region), 1);
    this.events.push(`removed 0x${region.address.toString(16)}`);
  }

  read(now: Nanos, access: RegionRead): void {
    const { region, offset, count } = access;
    if (region === REGION_CONFIG) access.complete(now, this.#configBytes(offset, count));
    else if (region === 2) access.complete(now, this.memory, offset);
    else if (region !== 0) access.complete(now, new Uint8Array(count));
    else if (offset === ExampleRegister.HOLD) this.held.push(access);
    else access.complete(now, this.#registers, offset);
  }

  write(now: Nanos, access: RegionWriteAccess): void {
    const { region, offset, bytes } = access;
    if (region === REGION_CONFIG) this.#writeConfig(offset, bytes);
    else if (region === 2) this.memory.set(bytes, offset);
    else if (region === 0) this.#writeRegister(now, offset, bytes);
    access.done(now);
  }

  reset(now: Nanos, access: ResetAccess): void {
    this.events.push('reset');
    this.#reset();
    access.done(now);
  }

  #reset(): void {
    this.config.reset();
    this.#registers.fill(0);
    this.#view.setUint32(ExampleRegister.ID, EXAMPLE_ID, true);
  }

  #configBytes(offset: number, count: number): Uint8Array {
    const bytes = new Uint8Array(count);
    for (let at = 0; at < count; at++) {
      const register = (offset + at) & ~3;
      bytes[at] = this.config.read32(register) >>> (8 * ((offset + at) & 3));
    }
    return bytes;
  }

  #writeConfig(offset: number, bytes: Uint8Array): void {
    bytes.forEach((byte, at) => {
      const lane = (offset + at) & 3;
      this.config.write((offset + at) & ~3, (byte << (8 * lane)) >>> 0, 1 << lane);
    });
  }

  #writeRegister(now: Nanos, offset: number, bytes: Uint8Array): void {
    if (offset === ExampleRegister.ID) return;
    this.#registers.set(bytes, offset);
    const value = bytes.length === 4 ? this.#view.getUint32(offset & ~3, true) : 0;
    if (offset === ExampleRegister.COMMAND) this.#transfer(now, value);
    if (offset === ExampleRegister.RAISE) this.#raise(value);
    if (offset === ExampleRegister.INTX) this.client?.setIntx(value !== 0);
  }

  #transfer(now: Nanos, command: number): void {
    const low = this.#view.getUint32(ExampleRegister.DMA_ADDRESS, true);
    const address = this.#view.getUint32(ExampleRegister.DMA_ADDRESS + 4, true) * 2 ** 32 + low;
    const length = this.#view.getUint32(ExampleRegister.DMA_LENGTH, true);
    const at = this.#view.getUint32(ExampleRegister.DEVICE_OFFSET, true);
    const client = this.client;
    const status = (value: number): void => {
      this.#view.setUint32(ExampleRegister.STATUS, value, true);
    };
    if (client === undefined || length === 0 || at + length > this.memory.length) {
      status(STATUS_ERROR | Errno.EINVAL);
      return;
    }
    // Shared memory is reached without the client: nobody else checks this.
    if (!this.config.busMaster) {
      status(STATUS_ERROR | Errno.EPERM);
      return;
    }
    status(STATUS_BUSY);
    const done: Done = (_now, refused) => {
      status(refused === undefined ? STATUS_DONE : STATUS_ERROR | refused.errno);
      this.#raise(0);
    };
    const transfer = { address, bytes: this.memory, at, count: length, done };
    if (command === DMA_TO_GUEST) client.dmaWrite(now, transfer);
    else client.dmaRead(now, transfer);
  }

  #raise(vector: number): void {
    const client = this.client;
    if (client === undefined) return;
    const msixOn =
      this.#msixOffset > 0 && (this.config.read32(this.#msixOffset) & 0x8000_0000) !== 0;
    if (msixOn) client.trigger(IRQ_MSIX, vector);
    else if (this.#msi.enabled) client.trigger(IRQ_MSI, vector);
    else if (vector === IRQ_INTX) client.setIntx(true);
  }
}
