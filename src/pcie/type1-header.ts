/**
 * The type 1 header of a port: bus numbers and the windows it forwards downwards (PCIe 5.0 base,
 * 7.5.1.3). Software writes the registers; this class reads them as ranges.
 */
import type { ConfigSpace } from './config-space.ts';
import {
  INTERRUPT_LINE,
  STATUS_DETECTED_PARITY_ERROR,
  STATUS_MASTER_DATA_PARITY_ERROR,
  STATUS_RECEIVED_MASTER_ABORT,
  STATUS_RECEIVED_TARGET_ABORT,
  STATUS_SIGNALED_SYSTEM_ERROR,
  STATUS_SIGNALED_TARGET_ABORT,
} from './config-space.ts';

/** Primary, Secondary and Subordinate Bus Number, in bytes 0, 1 and 2. */
export const PRIMARY_BUS_NUMBER = 0x18;
/** I/O Base and Limit (no I/O window is offered: 0) and Secondary Status. */
export const IO_BASE = 0x1c;
/** Memory Base in bits 15:4, Memory Limit in bits 31:20: address bits 31:20 of each. */
export const MEMORY_BASE = 0x20;
/** The same for the prefetchable window; the low nibbles say that it is 64 bit. */
export const PREFETCHABLE_MEMORY_BASE = 0x24;
export const PREFETCHABLE_BASE_UPPER_32 = 0x28;
export const PREFETCHABLE_LIMIT_UPPER_32 = 0x2c;

/** Bridge Control, bits 31:16 of the register at 3Ch, in their places in the 32-bit word. */
export const BRIDGE_PARITY_ERROR_RESPONSE_ENABLE = 1 << 16;
export const BRIDGE_SERR_ENABLE = 1 << 17;
export const BRIDGE_SECONDARY_BUS_RESET = 1 << 22;

const TWO_TO_32 = 0x1_0000_0000;
const GRANULE_BYTES = 0x10_0000;
const WINDOW_IS_64_BIT = 0x0001_0001;
const WINDOW_WRITABLE = 0xfff0_fff0;

/** An inclusive range of addresses. */
export interface AddressRange {
  readonly base: number;
  readonly limit: number;
}

export class Type1Header {
  readonly #config: ConfigSpace;

  /** Defines the registers in `config`, which was made with header type 1. */
  constructor(config: ConfigSpace) {
    this.#config = config;
    config.define(PRIMARY_BUS_NUMBER, 0, 0x00ff_ffff);
    config.define(
      IO_BASE,
      0,
      0,
      STATUS_MASTER_DATA_PARITY_ERROR |
        STATUS_SIGNALED_TARGET_ABORT |
        STATUS_RECEIVED_TARGET_ABORT |
        STATUS_RECEIVED_MASTER_ABORT |
        STATUS_SIGNALED_SYSTEM_ERROR |
        STATUS_DETECTED_PARITY_ERROR,
    );
    config.define(MEMORY_BASE, 0, WINDOW_WRITABLE);
    config.define(PREFETCHABLE_MEMORY_BASE, WINDOW_IS_64_BIT, WINDOW_WRITABLE);
    config.define(PREFETCHABLE_BASE_UPPER_32, 0, 0xffff_ffff);
    config.define(PREFETCHABLE_LIMIT_UPPER_32, 0, 0xffff_ffff);
    config.define(
      INTERRUPT_LINE,
      0,
      0xff | BRIDGE_PARITY_ERROR_RESPONSE_ENABLE | BRIDGE_SERR_ENABLE | BRIDGE_SECONDARY_BUS_RESET,
    );
  }

  get primaryBus(): number {
    return this.#config.read32(PRIMARY_BUS_NUMBER) & 0xff;
  }

  get secondaryBus(): number {
    return (this.#config.read32(PRIMARY_BUS_NUMBER) >>> 8) & 0xff;
  }

  get subordinateBus(): number {
    return (this.#config.read32(PRIMARY_BUS_NUMBER) >>> 16) & 0xff;
  }

  get secondaryBusReset(): boolean {
    return (this.#config.read32(INTERRUPT_LINE) & BRIDGE_SECONDARY_BUS_RESET) !== 0;
  }

  /** The window below 4 GiB, or `undefined` when it is empty (base above limit). */
  get memoryWindow(): AddressRange | undefined {
    const word = this.#config.read32(MEMORY_BASE);
    return range(windowBase(word), windowLimit(word));
  }

  /** The 64-bit window, or `undefined` when it is empty. Above 2^53 the numbers are inexact. */
  get prefetchableWindow(): AddressRange | undefined {
    const word = this.#config.read32(PREFETCHABLE_MEMORY_BASE);
    return range(
      this.#config.read32(PREFETCHABLE_BASE_UPPER_32) * TWO_TO_32 + windowBase(word),
      this.#config.read32(PREFETCHABLE_LIMIT_UPPER_32) * TWO_TO_32 + windowLimit(word),
    );
  }

  /**
   * Whether a memory request for `bytes` bytes from `address` on goes down through this port: memory
   * space is enabled and one window holds all of it.
   */
  forwards(address: number, bytes: number): boolean {
    if (!this.#config.memoryEnable) return false;
    return (
      holds(this.memoryWindow, address, bytes) || holds(this.prefetchableWindow, address, bytes)
    );
  }

  /** Whether a type 1 config request for this bus goes down through this port. */
  routesBus(bus: number): boolean {
    return bus >= this.secondaryBus && bus <= this.subordinateBus && this.secondaryBus !== 0;
  }
}

/**
 * The value of `MEMORY_BASE`, or of `PREFETCHABLE_MEMORY_BASE`, for a window. `base` is the first
 * address, a multiple of 1 MiB, and `limit` the last one, one below such a multiple.
 */
export function encodeWindow(base: number, limit: number): number {
  const baseField = Math.floor((base % TWO_TO_32) / GRANULE_BYTES) << 4;
  const limitField = Math.floor((limit % TWO_TO_32) / GRANULE_BYTES) << 4;
  return ((limitField << 16) | baseField) >>> 0;
}

/** What to write into a window's registers for it to be empty: base 1 MiB above a limit of 0. */
export const EMPTY_WINDOW = 0x0000_0010;

function windowBase(word: number): number {
  return ((word & 0xfff0) << 16) >>> 0;
}

function windowLimit(word: number): number {
  return ((word & 0xfff0_0000) >>> 0) + GRANULE_BYTES - 1;
}

function range(base: number, limit: number): AddressRange | undefined {
  return base > limit ? undefined : { base, limit };
}

function holds(window: AddressRange | undefined, address: number, bytes: number): boolean {
  return window !== undefined && address >= window.base && address + bytes - 1 <= window.limit;
}
