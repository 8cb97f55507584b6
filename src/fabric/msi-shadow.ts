/**
 * What the host has programmed into a function's MSI and MSI-X capabilities, seen from outside: which
 * writes of the function are its interrupts.
 *
 * Both err on one side only. A message may be under way when the host masks, moves or disables it;
 * real hardware delivers it, and a driver that waits for it would hang without. So a message stays
 * good until the host can know that none is left: for MSI until the config write that changed it has
 * completed (its completion cannot pass the message), for MSI-X until an entry's address or data are
 * written anew (software masks and reads back before it does that, 6.1.4.2). Either way it is only
 * ever an interrupt that the host itself has programmed into this very function.
 */
import {
  MSI_64_BIT_ADDRESS_CAPABLE,
  MSI_CONTROL_WRITABLE,
  MSI_ENABLE,
  MSI_MESSAGE_ADDRESS,
  MSI_MESSAGE_UPPER_ADDRESS,
  MSI_MULTIPLE_MESSAGE_CAPABLE_SHIFT,
  MSI_MULTIPLE_MESSAGE_ENABLE_SHIFT,
} from '#pcie/msi';
import {
  MSIX_ENABLE,
  MSIX_ENTRY_BYTES,
  MSIX_FUNCTION_MASK,
  MSIX_TABLE_SIZE_SHIFT,
  MSIX_VECTOR_CONTROL_MASK,
} from '#pcie/msix';
import { INTERRUPT_BASE, INTERRUPT_LIMIT } from './host-table.ts';

/** `old` with the bytes that `byteEnables` names taken from `value`. */
export function mergeBytes(old: number, value: number, byteEnables: number): number {
  let mask = 0;
  if ((byteEnables & 1) !== 0) mask |= 0xff;
  if ((byteEnables & 2) !== 0) mask |= 0xff00;
  if ((byteEnables & 4) !== 0) mask |= 0xff0000;
  if ((byteEnables & 8) !== 0) mask |= 0xff000000;
  return ((old & ~mask) | (value & mask)) >>> 0;
}

class MsiMessage {
  enabled = false;
  addressHi = 0;
  addressLo = 0;
  data = 0;
  /** Low bits of the data that the function may choose. */
  freeBits = 0;

  copyFrom(other: MsiMessage): void {
    this.enabled = other.enabled;
    this.addressHi = other.addressHi;
    this.addressLo = other.addressLo;
    this.data = other.data;
    this.freeBits = other.freeBits;
  }

  matches(addressHi: number, addressLo: number, data: number): boolean {
    return (
      this.enabled &&
      addressLo === this.addressLo &&
      addressHi === this.addressHi &&
      (data & ~this.freeBits) === (this.data & ~this.freeBits)
    );
  }
}

export class MsiShadow {
  /** Where the capability lies, 0 while unknown. */
  offset = 0;
  #control = 0;
  readonly #now = new MsiMessage();
  /** As it was before the writes that have not completed yet. */
  readonly #before = new MsiMessage();
  #writesUnderWay = 0;

  /** `header` is the capability's first register as read. */
  pin(offset: number, header: number): void {
    this.offset = offset;
    this.#control = header & ~MSI_CONTROL_WRITABLE;
  }

  reset(): void {
    this.#control &= ~MSI_CONTROL_WRITABLE;
    this.#now.copyFrom(new MsiMessage());
    this.#before.copyFrom(this.#now);
    this.#writesUnderWay = 0;
  }

  /** Whether `register` belongs to what decides about a message. */
  covers(register: number): boolean {
    return this.offset !== 0 && register >= this.offset && register <= this.#dataRegister();
  }

  /** A config write was passed on. */
  write(register: number, value: number, byteEnables: number): void {
    if (this.#writesUnderWay++ === 0) this.#before.copyFrom(this.#now);
    const now = this.#now;
    const relative = register - this.offset;
    if (relative === 0) {
      const merged = mergeBytes(this.#control, value, byteEnables);
      this.#control = (this.#control & ~MSI_CONTROL_WRITABLE) | (merged & MSI_CONTROL_WRITABLE);
      now.enabled = (this.#control & MSI_ENABLE) !== 0;
      const capable = (this.#control >>> MSI_MULTIPLE_MESSAGE_CAPABLE_SHIFT) & 7;
      const enable = (this.#control >>> MSI_MULTIPLE_MESSAGE_ENABLE_SHIFT) & 7;
      now.freeBits = 2 ** Math.min(enable, capable, 5) - 1;
    } else if (relative === MSI_MESSAGE_ADDRESS) {
      now.addressLo = (mergeBytes(now.addressLo, value, byteEnables) & ~3) >>> 0;
    } else if (register === this.#dataRegister()) {
      now.data = mergeBytes(now.data, value, byteEnables) & 0xffff;
    } else if (relative === MSI_MESSAGE_UPPER_ADDRESS) {
      now.addressHi = mergeBytes(now.addressHi, value, byteEnables);
    }
  }

  /** A config write that had been passed to `write` has completed, one way or another. */
  writeCompleted(): void {
    if (this.#writesUnderWay > 0) this.#writesUnderWay--;
  }

  /** Whether a DWORD write of `data` is this function's message. */
  matches(addressHi: number, addressLo: number, data: number): boolean {
    return (
      this.#now.matches(addressHi, addressLo, data) ||
      (this.#writesUnderWay > 0 && this.#before.matches(addressHi, addressLo, data))
    );
  }

  #dataRegister(): number {
    const is64Bit = (this.#control & MSI_64_BIT_ADDRESS_CAPABLE) !== 0;
    return this.offset + (is64Bit ? 0x0c : 0x08);
  }
}

const ENTRY_WORDS = MSIX_ENTRY_BYTES / 4;

export class MsixShadow {
  /** Where the capability lies, 0 while unknown. */
  offset = 0;
  /** Entries of the table; 0 while unknown. */
  entries = 0;
  #control = 0;
  /** Address, upper address, data, vector control of each entry. */
  #words = new Uint32Array(0);
  /** Entries that were once unmasked with the address and data they have now. */
  #armed = new Uint8Array(0);
  #lastMatch = 0;

  /** `header` is the capability's first register as read. */
  pin(offset: number, header: number): void {
    this.offset = offset;
    this.#control = header & ~(MSIX_ENABLE | MSIX_FUNCTION_MASK);
    this.entries = ((header >>> MSIX_TABLE_SIZE_SHIFT) & 0x7ff) + 1;
    this.#words = new Uint32Array(this.entries * ENTRY_WORDS);
    this.#armed = new Uint8Array(this.entries);
    this.reset();
  }

  reset(): void {
    this.#control &= ~(MSIX_ENABLE | MSIX_FUNCTION_MASK);
    this.#words.fill(0);
    this.#armed.fill(0);
    for (let entry = 0; entry < this.entries; entry++) {
      this.#words[entry * ENTRY_WORDS + 3] = MSIX_VECTOR_CONTROL_MASK;
    }
  }

  /** A config write to the capability's first register was passed on. */
  writeControl(value: number, byteEnables: number): void {
    this.#control = mergeBytes(this.#control, value, byteEnables & 0b1000);
    if (!this.#live()) return;
    for (let entry = 0; entry < this.entries; entry++) this.#arm(entry);
  }

  /** A write to DW `word` of the table was passed on. */
  writeWord(word: number, value: number, byteEnables: number): void {
    const entry = Math.floor(word / ENTRY_WORDS);
    if (entry >= this.entries || byteEnables === 0) return;
    this.#words[word] = mergeBytes(this.#words[word] as number, value, byteEnables);
    if (word % ENTRY_WORDS !== 3) this.#armed[entry] = 0;
    if (this.#live()) this.#arm(entry);
  }

  /** Whether a DWORD write of `data` is a message of this function. Within the interrupt range alone. */
  matches(addressHi: number, addressLo: number, data: number): boolean {
    if ((this.#control & MSIX_ENABLE) === 0 || addressHi !== 0) return false;
    if (addressLo < INTERRUPT_BASE || addressLo > INTERRUPT_LIMIT) return false;
    if (this.#entryMatches(this.#lastMatch, addressLo, data)) return true;
    for (let entry = 0; entry < this.entries; entry++) {
      if (!this.#entryMatches(entry, addressLo, data)) continue;
      this.#lastMatch = entry;
      return true;
    }
    return false;
  }

  #entryMatches(entry: number, addressLo: number, data: number): boolean {
    const at = entry * ENTRY_WORDS;
    const words = this.#words;
    return (
      this.#armed[entry] === 1 &&
      words[at] === addressLo &&
      words[at + 1] === 0 &&
      words[at + 2] === data
    );
  }

  #live(): boolean {
    return (this.#control & MSIX_ENABLE) !== 0 && (this.#control & MSIX_FUNCTION_MASK) === 0;
  }

  #arm(entry: number): void {
    const control = this.#words[entry * ENTRY_WORDS + 3] as number;
    if ((control & MSIX_VECTOR_CONTROL_MASK) === 0) this.#armed[entry] = 1;
  }
}
