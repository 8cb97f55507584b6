/**
 * Message signalled interrupts: the MSI capability with 64-bit address, 1 to 32 vectors and optional
 * per-vector masking (PCIe 5.0 base, 7.7.1 and 6.1.4).
 */
import { assert } from '#base/assert';
import type { ConfigSpace } from './config-space.ts';

export const MSI_CAPABILITY_ID = 0x05;

// Message Control, bits 31:16 of the first register, in their places in the 32-bit word.
export const MSI_ENABLE = 1 << 16;
export const MSI_MULTIPLE_MESSAGE_CAPABLE_SHIFT = 17;
export const MSI_MULTIPLE_MESSAGE_ENABLE_SHIFT = 20;
/** What of it software may write; the rest says what the function can do. */
export const MSI_CONTROL_WRITABLE = MSI_ENABLE | (7 << MSI_MULTIPLE_MESSAGE_ENABLE_SHIFT);
export const MSI_64_BIT_ADDRESS_CAPABLE = 1 << 23;
export const MSI_PER_VECTOR_MASKING_CAPABLE = 1 << 24;

export const MSI_MESSAGE_ADDRESS = 0x04;
export const MSI_MESSAGE_UPPER_ADDRESS = 0x08;
export const MSI_MESSAGE_DATA = 0x0c;
export const MSI_MASK_BITS = 0x10;
export const MSI_PENDING_BITS = 0x14;

export interface MsiOptions {
  /** A power of two, 1 to 32. */
  readonly vectors: number;
  readonly perVectorMasking: boolean;
}

export class Msi {
  readonly offset: number;
  readonly #config: ConfigSpace;
  readonly #options: MsiOptions;

  constructor(config: ConfigSpace, options: MsiOptions) {
    const { vectors, perVectorMasking } = options;
    const capable = Math.log2(vectors);
    assert(
      Number.isInteger(capable) && vectors <= 32,
      `MSI vectors must be 1, 2, 4 … 32: ${vectors}`,
    );
    this.#config = config;
    this.#options = options;
    const control =
      (capable << MSI_MULTIPLE_MESSAGE_CAPABLE_SHIFT) |
      MSI_64_BIT_ADDRESS_CAPABLE |
      (perVectorMasking ? MSI_PER_VECTOR_MASKING_CAPABLE : 0);
    this.offset = config.addCapability(
      MSI_CAPABILITY_ID,
      perVectorMasking ? 24 : 16,
      control >>> 16,
      MSI_CONTROL_WRITABLE >>> 16,
    );
    config.define(this.offset + MSI_MESSAGE_ADDRESS, 0, 0xffff_fffc);
    config.define(this.offset + MSI_MESSAGE_UPPER_ADDRESS, 0, 0xffff_ffff);
    config.define(this.offset + MSI_MESSAGE_DATA, 0, 0xffff);
    if (perVectorMasking) {
      config.define(
        this.offset + MSI_MASK_BITS,
        0,
        vectors === 32 ? 0xffff_ffff : 2 ** vectors - 1,
      );
      config.define(this.offset + MSI_PENDING_BITS, 0, 0);
    }
  }

  get enabled(): boolean {
    return (this.#config.read32(this.offset) & MSI_ENABLE) !== 0;
  }

  /** Vectors software allocated, never more than the function asked for. */
  get vectorCount(): number {
    const enable = (this.#config.read32(this.offset) >>> MSI_MULTIPLE_MESSAGE_ENABLE_SHIFT) & 7;
    return Math.min(2 ** enable, this.#options.vectors);
  }

  get addressHi(): number {
    return this.#config.read32(this.offset + MSI_MESSAGE_UPPER_ADDRESS);
  }

  get addressLo(): number {
    return this.#config.read32(this.offset + MSI_MESSAGE_ADDRESS);
  }

  /**
   * The 32-bit data of the write for `vector`: the low bits that were allocated are the vector's
   * number, the upper 16 are 0. A vector beyond the allocated ones shares with one that is.
   */
  messageData(vector: number): number {
    const data = this.#config.read32(this.offset + MSI_MESSAGE_DATA);
    const shared = this.vectorCount - 1;
    return (data & ~shared) | (vector & shared);
  }

  /**
   * `vector` has something to say. Returns true when its message is to be sent now; when it is
   * masked it becomes pending, when MSI is disabled nothing happens.
   */
  raise(vector: number): boolean {
    if (!this.enabled) return false;
    if (!this.#options.perVectorMasking) return true;
    const bit = this.#bitOf(vector);
    if ((this.#config.read32(this.offset + MSI_MASK_BITS) & bit) === 0) return true;
    this.#config.setBits(this.offset + MSI_PENDING_BITS, bit);
    return false;
  }

  /**
   * After software's write to this capability: a vector whose message is to be sent now because it
   * is pending and no longer masked (and pending no more after this call), or −1.
   */
  takePending(): number {
    if (!this.enabled || !this.#options.perVectorMasking) return -1;
    const pending = this.#config.read32(this.offset + MSI_PENDING_BITS);
    const ready = pending & ~this.#config.read32(this.offset + MSI_MASK_BITS);
    if (ready === 0) return -1;
    const vector = 31 - Math.clz32(ready & -ready);
    this.#config.clearBits(this.offset + MSI_PENDING_BITS, 1 << vector);
    return vector;
  }

  #bitOf(vector: number): number {
    return 1 << (vector & (this.vectorCount - 1));
  }
}
