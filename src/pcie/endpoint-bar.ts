/**
 * What an endpoint puts behind a BAR. Offsets are from the BAR's base and inside its size.
 */
import type { Nanos } from '#base/units';

/** What `readRegister` returns for an access that violates the device's programming model. */
export const ABORT_ACCESS = -1;

/** Registers: each access is one DWORD at an aligned offset. */
export interface RegisterBar {
  readonly kind: 'registers';
  /**
   * `byteEnables` is 1 to 15, bit 0 for the lowest byte; a register without read effects ignores it.
   * Returns 32 bits, or `ABORT_ACCESS` to have the whole request answered Completer Abort.
   */
  readRegister(now: Nanos, offset: number, byteEnables: number): number;
  /** `value` is the little-endian DWORD; only the enabled bytes count. */
  writeRegister(now: Nanos, offset: number, value: number, byteEnables: number): void;
}

/** Plain memory, shared with the device; its length is the BAR's size. */
export interface MemoryBar {
  readonly kind: 'memory';
  readonly memory: Uint8Array;
}

export type BarTarget = RegisterBar | MemoryBar;
