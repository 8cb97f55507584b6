/** What a driver finds out about an accelerator before it uses it, and its reset. */
import { DxpuError } from '#base/errors';
import { readStatus } from './accel-channel-ring.ts';
import * as layout from './accel-layout.ts';
import { mmioRead32, mmioWrite32 } from './host-operations.ts';
import type { PciFunction } from './pci-function.ts';
import type { SoftHost } from './root-complex.ts';
import type { Task } from './task.ts';

/**
 * Where the registers of an accelerator are, and how many channels it has. `failed_precondition` when
 * the function is none, or of a version this driver does not know.
 */
export function* identify(
  host: SoftHost,
  fn: PciFunction,
): Task<{ readonly base: number; readonly channels: number }> {
  if (fn.vendorId !== layout.ACCEL_VENDOR_ID || fn.deviceId !== layout.ACCEL_DEVICE_ID) {
    throw new DxpuError('failed_precondition', `slot ${fn.virtualSlot} holds no accelerator`);
  }
  const registers = fn.bars.find((bar) => bar.index === layout.REGISTER_BAR);
  const memory = fn.bars.find((bar) => bar.index === layout.MEMORY_BAR);
  if (registers === undefined || memory === undefined) {
    throw new DxpuError('failed_precondition', 'the accelerator lacks BAR 0 or BAR 2');
  }
  const base = registers.address;
  const id = yield* readStatus(host, base + layout.ID);
  const version = yield* readStatus(host, base + layout.VERSION);
  if (id !== layout.ID_VALUE || version >>> 16 !== layout.VERSION_MAJOR) {
    throw new DxpuError(
      'failed_precondition',
      `not an accelerator this driver knows: ID 0x${id.toString(16)}, ` +
        `version 0x${version.toString(16)}`,
    );
  }
  return { base, channels: yield* readStatus(host, base + layout.CHANNELS) };
}

/** As after power-on; `failed_precondition` when it is not ready then. */
export function* resetDevice(host: SoftHost, base: number): Task<void> {
  yield* mmioWrite32(host, base + layout.RESET, layout.RESET_KEY);
  const status = yield* readStatus(host, base + layout.STATUS);
  if ((status & layout.STATUS_READY) === 0) {
    throw new DxpuError('failed_precondition', 'the accelerator is not ready after its reset');
  }
}

/** Size of its device memory. */
export function* memoryBytesOf(host: SoftHost, base: number): Task<number> {
  const low = yield* readStatus(host, base + layout.MEMORY_BYTES_LO);
  const high = yield* readStatus(host, base + layout.MEMORY_BYTES_HI);
  return high * 0x1_0000_0000 + low;
}

/** Lower-case 8-4-4-4-12. */
export function* uuidOf(host: SoftHost, base: number): Task<string> {
  const bytes = new DataView(new ArrayBuffer(16));
  for (let at = 0; at < 16; at += 4) {
    bytes.setUint32(at, yield* mmioRead32(host, base + layout.UUID_0 + at), true);
  }
  let digits = '';
  for (let at = 0; at < 16; at++) digits += bytes.getUint8(at).toString(16).padStart(2, '0');
  return digits.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
}
