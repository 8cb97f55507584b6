/** Where the BARs of a served model lie, and what its client believes: the registers as it has written them. */
import { assert } from '#base/assert';
import { barRegister, Bars, type BarSpec, isBarRegister } from '#pcie/bar';
import { ConfigSpace } from '#pcie/config-space';
import type { RegisterWrite } from './config-span.ts';

const TWO_TO_32 = 0x1_0000_0000;
const FIRST_32_BIT = 0x8000_0000;
const FIRST_64_BIT = 2 ** 41;

export class ModelBars {
  readonly #addresses = new Map<number, number>();
  /** Of its registers the BARs alone count. */
  readonly #believed = new ConfigSpace({ vendorId: 0, deviceId: 0, revisionId: 0, classCode: 0 });

  constructor(bars: readonly BarSpec[]) {
    const { specs } = new Bars(this.#believed, bars);
    let low = FIRST_32_BIT;
    let high = FIRST_64_BIT;
    // The largest first, so that each is aligned to its size.
    for (const { index, sizeBytes, is64Bit } of specs.toSorted(
      (a, b) => b.sizeBytes - a.sizeBytes,
    )) {
      this.#addresses.set(index, is64Bit ? high : low);
      if (is64Bit) high += sizeBytes;
      else low += sizeBytes;
    }
    assert(low <= TWO_TO_32, 'the 32-bit BARs do not fit below 4 GiB');
  }

  reset(): void {
    this.#believed.reset();
  }

  /** Where the model itself has the BAR. */
  addressOf(bar: number): number {
    return this.#addresses.get(bar) ?? 0;
  }

  /** What to write into the model, for it to have them there. */
  placement(): RegisterWrite[] {
    return [...this.#addresses].flatMap(([index, address]) => {
      const register = barRegister(index);
      const low = { register, value: address % TWO_TO_32, byteEnables: 15 };
      if (address < TWO_TO_32) return low;
      const high = Math.floor(address / TWO_TO_32);
      return [low, { register: register + 4, value: high, byteEnables: 15 }];
    });
  }

  /** Puts what the client believes into `bytes`, which were read at `offset`. */
  show(offset: number, bytes: Uint8Array): void {
    for (let index = 0; index < bytes.length; index++) {
      const at = offset + index;
      if (isBarRegister(at)) bytes[index] = this.#believed.read32(at & ~3) >>> (8 * (at & 3));
    }
  }

  /** Takes a write to a BAR. False for any other, which is the model's. */
  take({ register, value, byteEnables }: RegisterWrite): boolean {
    if (!isBarRegister(register)) return false;
    this.#believed.write(register, value, byteEnables);
    return true;
  }
}
