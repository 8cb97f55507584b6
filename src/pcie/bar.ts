/**
 * Base address registers of a type 0 function (PCIe 5.0 base, 7.5.1.2.1). Sizing needs no code: the
 * address bits below a BAR's size are read-only zeros, so that what software reads back after
 * writing all ones is the size.
 */
import { assert } from '#base/assert';
import { BASE_ADDRESS_0, type ConfigSpace } from './config-space.ts';

export const BAR_COUNT = 6;
export const BAR_TYPE_64_BIT = 2 << 1;
export const BAR_PREFETCHABLE = 1 << 3;

const TWO_TO_32 = 0x1_0000_0000;
const LARGEST_BAR_BYTES = 2 ** 40;

export interface BarSpec {
  /** Register number, 0 to 5; a 64-bit BAR takes the next one too. */
  readonly index: number;
  /** A power of two, from 16 bytes to 2^31 (32 bit) or 2^40 (64 bit). */
  readonly sizeBytes: number;
  readonly is64Bit: boolean;
  readonly prefetchable: boolean;
}

export class Bars {
  readonly specs: readonly BarSpec[];
  /** Where in the matched BAR the last successful `match` lies. */
  matchedOffset = 0;
  readonly #config: ConfigSpace;

  /** Defines the registers in `config`. What is not in `specs` reads 0. */
  constructor(config: ConfigSpace, specs: readonly BarSpec[]) {
    this.#config = config;
    this.specs = [...specs].sort((a, b) => a.index - b.index);
    let nextFree = 0;
    for (const spec of this.specs) {
      const { index, sizeBytes, is64Bit } = spec;
      const registers = is64Bit ? 2 : 1;
      assert(index >= nextFree && index + registers <= BAR_COUNT, `BAR ${index} does not fit`);
      nextFree = index + registers;
      assert(
        sizeBytes >= 16 && Number.isInteger(Math.log2(sizeBytes)),
        `size of BAR ${index} is not a power of two of at least 16: ${sizeBytes}`,
      );
      assert(
        sizeBytes <= (is64Bit ? LARGEST_BAR_BYTES : TWO_TO_32 / 2),
        `BAR ${index} is too large: ${sizeBytes}`,
      );
      const type = (is64Bit ? BAR_TYPE_64_BIT : 0) | (spec.prefetchable ? BAR_PREFETCHABLE : 0);
      const lowSize = Math.min(sizeBytes, TWO_TO_32);
      config.define(barRegister(index), type, TWO_TO_32 - lowSize);
      if (is64Bit) {
        const highSize = Math.max(1, sizeBytes / TWO_TO_32);
        config.define(barRegister(index + 1), 0, TWO_TO_32 - highSize);
      }
    }
  }

  /**
   * The BAR that holds all `bytes` bytes from `address` on, or −1: none does, or memory space is not
   * enabled. On success `matchedOffset` says where in it. No allocation.
   */
  match(address: number, bytes: number): number {
    if (!this.#config.memoryEnable) return -1;
    for (let n = 0; n < this.specs.length; n++) {
      const spec = this.specs[n] as BarSpec;
      const offset = address - this.#base(spec);
      if (offset >= 0 && offset + bytes <= spec.sizeBytes) {
        this.matchedOffset = offset;
        return spec.index;
      }
    }
    return -1;
  }

  /**
   * The address programmed into BAR `index`, one of `specs`. Above 2^53 it is inexact, and no safe
   * address lies in it.
   */
  baseOf(index: number): number {
    const spec = this.specs.find((candidate) => candidate.index === index);
    assert(spec !== undefined, `there is no BAR ${index}`);
    return this.#base(spec);
  }

  #base(spec: BarSpec): number {
    const register = barRegister(spec.index);
    const low = (this.#config.read32(register) & ~15) >>> 0;
    return spec.is64Bit ? this.#config.read32(register + 4) * TWO_TO_32 + low : low;
  }
}

/** The register of BAR `index`, as a byte offset. */
export function barRegister(index: number): number {
  return BASE_ADDRESS_0 + 4 * index;
}

/** Whether a byte offset lies in the register of a BAR. */
export function isBarRegister(offset: number): boolean {
  return offset >= barRegister(0) && offset < barRegister(BAR_COUNT);
}
