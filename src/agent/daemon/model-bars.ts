/**
 * Where the BARs of a served model lie, and what its client believes: the registers as it has written
 * them, with a size's low bits fixed as in hardware.
 */
import { assert } from '#base/assert';
import { BAR_COUNT, BAR_PREFETCHABLE, BAR_TYPE_64_BIT, barRegister, type BarSpec } from '#pcie/bar';

const TWO_TO_32 = 0x1_0000_0000;
const FIRST_32_BIT = 0x8000_0000;
const FIRST_64_BIT = 2 ** 41;
const FIRST_BYTE = barRegister(0);
const END_BYTE = barRegister(BAR_COUNT);

export class ModelBars {
  readonly #address = new Map<number, number>();
  /** As the client reads them, and which of their bits it can write. */
  readonly #shadow = new Uint8Array(4 * BAR_COUNT);
  readonly #writable = new Uint8Array(4 * BAR_COUNT);
  readonly #fixed = new Uint8Array(4 * BAR_COUNT);

  constructor(bars: readonly BarSpec[]) {
    const fixed = new DataView(this.#fixed.buffer);
    const writable = new DataView(this.#writable.buffer);
    let low = FIRST_32_BIT;
    let high = FIRST_64_BIT;
    // The largest first, so that each is aligned to its size.
    for (const bar of [...bars].sort((a, b) => b.sizeBytes - a.sizeBytes)) {
      const { index, sizeBytes, is64Bit, prefetchable } = bar;
      this.#address.set(index, is64Bit ? high : low);
      if (is64Bit) high += sizeBytes;
      else low += sizeBytes;
      const type = (is64Bit ? BAR_TYPE_64_BIT : 0) | (prefetchable ? BAR_PREFETCHABLE : 0);
      fixed.setUint32(4 * index, type, true);
      writable.setUint32(4 * index, TWO_TO_32 - Math.min(sizeBytes, TWO_TO_32), true);
      if (is64Bit) {
        const upper = TWO_TO_32 - Math.max(1, sizeBytes / TWO_TO_32);
        writable.setUint32(4 * index + 4, upper, true);
      }
    }
    assert(low <= TWO_TO_32, 'the 32-bit BARs do not fit below 4 GiB');
    this.reset();
  }

  reset(): void {
    this.#shadow.set(this.#fixed);
  }

  /** Where the model itself has the BAR. */
  addressOf(bar: number): number {
    return this.#address.get(bar) ?? 0;
  }

  /** The registers to write into the model. */
  *placement(): Generator<{ readonly register: number; readonly value: number }> {
    for (const [index, address] of this.#address) {
      const register = barRegister(index);
      yield { register, value: address % TWO_TO_32 };
      if (address >= TWO_TO_32) {
        yield { register: register + 4, value: Math.floor(address / TWO_TO_32) };
      }
    }
  }

  /** Puts what the client believes into `bytes`, which were read at `offset`. */
  show(offset: number, bytes: Uint8Array): void {
    for (let at = Math.max(offset, FIRST_BYTE); at < offset + bytes.length && at < END_BYTE; at++) {
      bytes[at - offset] = this.#shadow[at - FIRST_BYTE] as number;
    }
  }

  /** Takes what is the client's of a write, and returns which bytes are for the model. */
  note(offset: number, bytes: Uint8Array): (at: number) => boolean {
    for (let at = Math.max(offset, FIRST_BYTE); at < offset + bytes.length && at < END_BYTE; at++) {
      const place = at - FIRST_BYTE;
      const bits = this.#writable[place] as number;
      this.#shadow[place] =
        ((bytes[at - offset] as number) & bits) | (this.#fixed[place] as number);
    }
    return (at) => at < FIRST_BYTE || at >= END_BYTE;
  }
}
