/** Device serial number extended capability (PCIe 5.0 base, 7.9.3). */
import type { ConfigSpace } from './config-space.ts';

export const DSN_CAPABILITY_ID = 0x0003;
export const DSN_CAPABILITY_BYTES = 12;
/** Bits 31:0 and 63:32 of the EUI-64. */
export const DSN_LOWER = 0x04;
export const DSN_UPPER = 0x08;

/** Adds the capability with a 64-bit serial number; returns its offset. */
export function addDeviceSerialNumber(config: ConfigSpace, upper: number, lower: number): number {
  const offset = config.addExtendedCapability(DSN_CAPABILITY_ID, 1, DSN_CAPABILITY_BYTES);
  config.define(offset + DSN_LOWER, lower, 0);
  config.define(offset + DSN_UPPER, upper, 0);
  return offset;
}
