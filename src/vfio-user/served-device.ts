/**
 * What a device is to the server, and what a client's VM is to the device. Nothing here waits: an access
 * is completed within the call that brings it, or later; a transfer ends with a call.
 */
import type { Nanos } from '#base/units';
import type { DmaRegion } from './dma-map.ts';
import type { DmaTransfer } from './dma-transfer.ts';
import type { IrqCounts } from './irq-info.ts';
import type { Area } from './region-info.ts';

export interface SharedRegion {
  /** A descriptor the client maps; the device's, open as long as it is served. */
  readonly fd: number;
  readonly fileOffset: number;
  /** The parts that may be mapped. Default: all of it. */
  readonly areas?: readonly Area[];
}

export interface RegionSpec {
  readonly sizeBytes: number;
  readonly read: boolean;
  readonly write: boolean;
  /** The region is also memory that the client may map; what it does there is not reported. */
  readonly shared?: SharedRegion;
}

export interface DeviceSpec {
  /** By index: BARs 0 to 5, `REGION_ROM`, `REGION_CONFIG`, `REGION_VGA`. Others do not exist. */
  readonly regions: ReadonlyMap<number, RegionSpec>;
  readonly irqs: IrqCounts;
  /** DEVICE_RESET is taken. */
  readonly resettable: boolean;
  /**
   * Default `hide`: QEMU 11.1.3 aborts when a device with MSI-X is unplugged. Hidden, `irqs.msix` counts
   * as 0, and the capability is taken out of what is read of the configuration space.
   */
  readonly msix?: 'hide' | 'expose';
  /** The first 256 bytes of the configuration space, to find the MSI-X capability in when it is hidden. */
  readonly config?: Uint8Array;
}

/** Whether clients see the device without MSI-X. */
export function hidesMsix(spec: DeviceSpec): boolean {
  return (spec.msix ?? 'hide') === 'hide';
}

export interface RegionRead {
  readonly region: number;
  readonly offset: number;
  readonly count: number;
  /** Answers with `count` of `bytes` from `at` on, which are copied. After the deadline: dropped. */
  complete(now: Nanos, bytes: Uint8Array, at?: number): void;
  fail(now: Nanos, errno: number): void;
}

export interface RegionWriteAccess {
  readonly region: number;
  readonly offset: number;
  readonly count: number;
  /** `count` bytes, valid during the call alone. */
  readonly bytes: Uint8Array;
  /** Acknowledges it. A client that asked for no reply gets none. */
  done(now: Nanos): void;
  fail(now: Nanos, errno: number): void;
}

export interface ResetAccess {
  done(now: Nanos): void;
  fail(now: Nanos, errno: number): void;
}

/** A client that is connected. After `detached` its calls fail or do nothing. */
export interface DeviceClient {
  /**
   * Copies guest memory into `bytes`. EFAULT if any of it is in no region, EPERM if
   * it must not be read. Only the region's own flags are checked: whether the function is a bus master
   * is for the device to check.
   */
  dmaRead(now: Nanos, transfer: DmaTransfer): void;
  /** Copies to guest memory. */
  dmaWrite(now: Nanos, transfer: DmaTransfer): void;
  /** The region that holds `address`: of a mapped one the bytes can be used without a copy. */
  memoryAt(address: number): DmaRegion | undefined;
  /**
   * Fires `vector` of `IRQ_MSI`, `IRQ_MSIX`, `IRQ_ERR` or `IRQ_REQ`, behind all transfers to memory that
   * were begun before. While the client has not enabled it, nothing happens.
   */
  trigger(index: number, vector: number): void;
  /** The level of INTx, also behind earlier transfers to memory. */
  setIntx(asserted: boolean): void;
  /** Ends the connection; `detached` follows within the call. */
  disconnect(now: Nanos, reason: string): void;
}

export interface ServedDevice {
  /** Read when a client connects; its memory is the device's. */
  readonly spec: DeviceSpec;
  /** A client is there, and has no memory and no interrupts yet. */
  attached(now: Nanos, client: DeviceClient): void;
  /** Inside the region, and allowed by its spec. Unanswered at the deadline it reads as all ones. */
  read(now: Nanos, access: RegionRead): void;
  /** As for `read`. Unanswered at the deadline it is acknowledged. */
  write(now: Nanos, access: RegionWriteAccess): void;
  /** Unanswered at the deadline it fails with ETIMEDOUT. */
  reset(now: Nanos, access: ResetAccess): void;
  memoryAdded?(now: Nanos, region: DmaRegion): void;
  /** The device lets go of the region within the call; afterwards it is out of reach. */
  memoryRemoved?(now: Nanos, region: DmaRegion): void;
  /** After messages that came together: the place to flush what they caused. */
  turnEnd?(now: Nanos): void;
  /**
   * The client is gone: as with a link that goes down, transfers have ended with ECONNRESET, memory has
   * been removed, and what is completed from here on reaches nobody. The device keeps its state.
   */
  detached(now: Nanos, reason: string): void;
}
