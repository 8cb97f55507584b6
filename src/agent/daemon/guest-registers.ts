/** Registers of a function as the guest of a VM has written them: where its BARs are, and its MSI message. */
import type { FunctionSurvey } from '#host/function-survey';
import { BAR_COUNT, barRegister } from '#pcie/bar';
import { ConfigSpace } from '#pcie/config-space';

const ALL_ONES = 0xffff_ffff;
/** Flags of a BAR are in its low bits. */
const ADDRESS_BITS = 0xffff_fff0;
const TWO_TO_32 = 0x1_0000_0000;

export class GuestRegisters {
  readonly #written = new ConfigSpace({ vendorId: 0, deviceId: 0, revisionId: 0, classCode: 0 });
  readonly #wideBars: ReadonlySet<number>;
  readonly #msiDataOffset: number | undefined;

  constructor({ bars, msi }: Pick<FunctionSurvey, 'bars' | 'msi'>) {
    this.#wideBars = new Set(bars.flatMap(({ kind, index }) => (kind === 'mem64' ? index : [])));
    for (let bar = 0; bar < BAR_COUNT; bar++) {
      const isUpperHalf = this.#wideBars.has(bar - 1);
      this.#written.define(barRegister(bar), 0, isUpperHalf ? ALL_ONES : ADDRESS_BITS);
    }
    this.#msiDataOffset = msi?.dataOffset;
    if (msi !== undefined) this.#written.define(msi.dataOffset, 0, 0xffff);
  }

  write(register: number, value: number, byteEnables: number): void {
    this.#written.write(register, value, byteEnables);
  }

  reset(): void {
    this.#written.reset();
  }

  get msiData(): number {
    return this.#msiDataOffset === undefined ? 0 : this.#written.read32(this.#msiDataOffset);
  }

  /** Where a BAR begins; 0 while the guest has not said, or learns its size. */
  addressOf(bar: number): number {
    const low = this.#written.read32(barRegister(bar));
    const high = this.#wideBars.has(bar) ? this.#written.read32(barRegister(bar + 1)) : 0;
    return low === ADDRESS_BITS || high === ALL_ONES ? 0 : high * TWO_TO_32 + low;
  }
}
