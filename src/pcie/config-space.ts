/**
 * The 4 KiB configuration space of one function as register storage (PCIe 5.0 base, chapter 7). What
 * software may do to each bit is a mask: read-only unless it is in the read-write or in the
 * write-1-to-clear mask. Registers are named by their byte offset, values are little-endian words:
 * byte 0 of a register is bits 7:0 of its value.
 *
 * Who owns what: `ConfigSpace` owns the words and the masks. A capability defines its registers once,
 * at construction, and keeps no copy of what they hold: it reads them here. Software's side is
 * `read32` and `write`; hardware's side is `set32`, `setBits` and `clearBits`.
 */
import { assert } from '#base/assert';

// The header shared by type 0 and type 1 (7.5.1.1).
export const VENDOR_ID = 0x00;
export const COMMAND = 0x04;
export const REVISION_ID = 0x08;
export const CACHE_LINE_SIZE = 0x0c;
export const BASE_ADDRESS_0 = 0x10;
/** Type 0 alone (7.5.1.2.3). */
export const SUBSYSTEM_VENDOR_ID = 0x2c;
export const CAPABILITIES_POINTER = 0x34;
export const INTERRUPT_LINE = 0x3c;
/** Interrupt Pin, bits 15:8 of the register at 3Ch (7.5.1.1.13). */
export const INTERRUPT_PIN_INTA = 1 << 8;

/** Where capabilities may start. */
export const FIRST_CAPABILITY = 0x40;
export const FIRST_EXTENDED_CAPABILITY = 0x100;

export const CONFIG_SPACE_BYTES = 4096;

// Command, bits 15:0 of the register at 04h (7.5.1.1.3).
export const COMMAND_MEMORY_SPACE_ENABLE = 1 << 1;
export const COMMAND_BUS_MASTER_ENABLE = 1 << 2;
export const COMMAND_PARITY_ERROR_RESPONSE = 1 << 6;
export const COMMAND_SERR_ENABLE = 1 << 8;
export const COMMAND_INTERRUPT_DISABLE = 1 << 10;

// Status, bits 31:16 of the register at 04h (7.5.1.1.4), in their places in the 32-bit word.
export const STATUS_INTERRUPT_STATUS = 1 << 19;
export const STATUS_CAPABILITIES_LIST = 1 << 20;
export const STATUS_MASTER_DATA_PARITY_ERROR = 1 << 24;
export const STATUS_SIGNALED_TARGET_ABORT = 1 << 27;
export const STATUS_RECEIVED_TARGET_ABORT = 1 << 28;
export const STATUS_RECEIVED_MASTER_ABORT = 1 << 29;
export const STATUS_SIGNALED_SYSTEM_ERROR = 1 << 30;
export const STATUS_DETECTED_PARITY_ERROR = 0x8000_0000;

const COMMAND_WRITABLE =
  COMMAND_MEMORY_SPACE_ENABLE |
  COMMAND_BUS_MASTER_ENABLE |
  COMMAND_PARITY_ERROR_RESPONSE |
  COMMAND_SERR_ENABLE |
  COMMAND_INTERRUPT_DISABLE;

const STATUS_WRITE_1_TO_CLEAR =
  STATUS_MASTER_DATA_PARITY_ERROR |
  STATUS_SIGNALED_TARGET_ABORT |
  STATUS_RECEIVED_TARGET_ABORT |
  STATUS_RECEIVED_MASTER_ABORT |
  STATUS_SIGNALED_SYSTEM_ERROR |
  STATUS_DETECTED_PARITY_ERROR;

/** Value of the mask bits that byte enables let through, by the four bits of a byte enable field. */
const BYTE_ENABLE_MASKS = Uint32Array.from({ length: 16 }, (_, enables) => {
  let mask = 0;
  for (let byte = 0; byte < 4; byte++)
    if ((enables & (1 << byte)) !== 0) mask |= 0xff << (8 * byte);
  return mask >>> 0;
});

export interface FunctionIdentity {
  readonly vendorId: number;
  readonly deviceId: number;
  readonly revisionId: number;
  /** Base class << 16 | sub-class << 8 | programming interface. */
  readonly classCode: number;
  /** Type 0 alone; a type 1 header has no such registers. */
  readonly subsystemVendorId?: number;
  readonly subsystemId?: number;
}

/** Called after software's write changed a register, with its value before and after. */
export type RegisterWatcher = (before: number, after: number) => void;

export class ConfigSpace {
  readonly #words = new Uint32Array(CONFIG_SPACE_BYTES / 4);
  readonly #resetWords = new Uint32Array(CONFIG_SPACE_BYTES / 4);
  readonly #readWrite = new Uint32Array(CONFIG_SPACE_BYTES / 4);
  readonly #write1ToClear = new Uint32Array(CONFIG_SPACE_BYTES / 4);
  readonly #watchers: (RegisterWatcher | undefined)[] = new Array(CONFIG_SPACE_BYTES / 4);
  #nextCapability = FIRST_CAPABILITY;
  #lastCapability = 0;
  #nextExtended = FIRST_EXTENDED_CAPABILITY;
  #lastExtended = 0;
  #bdf = 0;

  /** A header with no BARs and no capabilities, of type 0 (a device) or 1 (a port). */
  constructor(identity: FunctionIdentity, headerType: 0 | 1 = 0) {
    this.define(VENDOR_ID, identity.vendorId | (identity.deviceId << 16), 0);
    this.define(COMMAND, 0, COMMAND_WRITABLE, STATUS_WRITE_1_TO_CLEAR);
    this.define(REVISION_ID, identity.revisionId | (identity.classCode << 8), 0);
    this.define(CACHE_LINE_SIZE, headerType << 16, 0xff);
    // No INTx unless an `IntxWire` is put in: the pin is 0. The line is scratch space for software all the same.
    this.define(INTERRUPT_LINE, 0, 0xff);
    if (headerType === 0) {
      const subsystemVendorId = identity.subsystemVendorId ?? identity.vendorId;
      const subsystemId = identity.subsystemId ?? identity.deviceId;
      this.define(SUBSYSTEM_VENDOR_ID, subsystemVendorId | (subsystemId << 16), 0);
    }
  }

  /**
   * Says what a register holds after reset and which of its bits software may write or clear by
   * writing 1. Bits in neither mask are read-only; a bit in both masks is a mistake.
   */
  define(register: number, value: number, readWrite: number, write1ToClear = 0): void {
    assert((readWrite & write1ToClear) === 0, 'a bit is either read-write or write-1-to-clear');
    const index = wordIndex(register);
    this.#resetWords[index] = value;
    this.#words[index] = value;
    this.#readWrite[index] = readWrite;
    this.#write1ToClear[index] = write1ToClear;
  }

  /** The register at byte offset `register` (0 to 4092, DW aligned); 0 where none is defined. */
  read32(register: number): number {
    return this.#words[wordIndex(register)] as number;
  }

  /** Software's write: byte enable `n` of `byteEnables` covers bits 8n+7:8n of `value`. */
  write(register: number, value: number, byteEnables: number): void {
    const index = wordIndex(register);
    const enabled = BYTE_ENABLE_MASKS[byteEnables & 15] as number;
    const before = this.#words[index] as number;
    const writable = enabled & (this.#readWrite[index] as number);
    const cleared = enabled & (this.#write1ToClear[index] as number) & value;
    const after = (((before & ~writable) | (value & writable)) & ~cleared) >>> 0;
    if (after === before) return;
    this.#words[index] = after;
    this.#watchers[index]?.(before, after);
  }

  /** Hardware's write: sets the whole register, whatever its masks. Watchers are not called. */
  set32(register: number, value: number): void {
    this.#words[wordIndex(register)] = value;
  }

  /** Hardware's set of some bits. */
  setBits(register: number, bits: number): void {
    const index = wordIndex(register);
    this.#words[index] = (this.#words[index] as number) | bits;
  }

  /** Hardware's clear of some bits. */
  clearBits(register: number, bits: number): void {
    const index = wordIndex(register);
    this.#words[index] = (this.#words[index] as number) & ~bits;
  }

  /** Has `watcher` called after each of software's writes that changed `register`. One a register. */
  watch(register: number, watcher: RegisterWatcher): void {
    const index = wordIndex(register);
    assert(this.#watchers[index] === undefined, `register ${register} is already watched`);
    this.#watchers[index] = watcher;
  }

  /** Fundamental reset: every register as defined, and the captured bus and device number 0. */
  reset(): void {
    this.#words.set(this.#resetWords);
    this.#bdf = 0;
  }

  get memoryEnable(): boolean {
    return this.#hasCommand(COMMAND_MEMORY_SPACE_ENABLE);
  }

  get busMaster(): boolean {
    return this.#hasCommand(COMMAND_BUS_MASTER_ENABLE);
  }

  get interruptDisable(): boolean {
    return this.#hasCommand(COMMAND_INTERRUPT_DISABLE);
  }

  /** Sets bits of Status (`STATUS_…`); software clears them by writing 1. */
  setStatus(bits: number): void {
    this.setBits(COMMAND, bits);
  }

  /** Bus, device and function this function puts into the TLPs it sends; 0 until captured. */
  get bdf(): number {
    return this.#bdf;
  }

  /** Takes the destination of a type 0 config write, as 2.2.6.2 has a function do on each. */
  captureBdf(destinationId: number): void {
    this.#bdf = destinationId & 0xffff;
  }

  /**
   * Room for a standard capability of `bytes`, linked behind the last one, its ID in place. Returns
   * its offset. `fields` are bits 31:16 of its first register, with their masks.
   */
  addCapability(
    id: number,
    bytes: number,
    fields = 0,
    fieldsReadWrite = 0,
    fieldsWrite1ToClear = 0,
  ): number {
    const offset = this.#nextCapability;
    this.#nextCapability = alignDw(offset + bytes);
    assert(this.#nextCapability <= FIRST_EXTENDED_CAPABILITY, 'no room for another capability');
    this.define(
      offset,
      (id & 0xff) | ((fields & 0xffff) << 16),
      (fieldsReadWrite & 0xffff) << 16,
      (fieldsWrite1ToClear & 0xffff) << 16,
    );
    if (this.#lastCapability === 0) {
      this.#redefine(CAPABILITIES_POINTER, offset);
      this.#redefine(COMMAND, STATUS_CAPABILITIES_LIST);
    } else {
      this.#redefine(this.#lastCapability, offset << 8);
    }
    this.#lastCapability = offset;
    return offset;
  }

  /**
   * Room for an extended capability of `bytes` (header included), linked behind the last one.
   * Returns its offset; the first is at 100h, as 7.6.1 demands.
   */
  addExtendedCapability(id: number, version: number, bytes: number): number {
    const offset = this.#nextExtended;
    this.#nextExtended = alignDw(offset + bytes);
    assert(this.#nextExtended <= CONFIG_SPACE_BYTES, 'no room for another extended capability');
    this.define(offset, (id & 0xffff) | ((version & 15) << 16), 0);
    if (this.#lastExtended !== 0) this.#redefine(this.#lastExtended, offset << 20);
    this.#lastExtended = offset;
    return offset;
  }

  /** Offset of the first capability with this ID in the standard list, or 0. */
  findCapability(id: number): number {
    return findCapability((register) => this.read32(register), id);
  }

  /** Offset of the first extended capability with this ID, or 0. */
  findExtendedCapability(id: number): number {
    let offset = FIRST_EXTENDED_CAPABILITY;
    while (offset !== 0) {
      const header = this.read32(offset);
      if ((header & 0xffff) === id && header !== 0) return offset;
      offset = (header >>> 20) & 0xffc;
    }
    return 0;
  }

  #hasCommand(bit: number): boolean {
    return ((this.#words[COMMAND / 4] as number) & bit) !== 0;
  }

  /** Adds read-only bits to a register already defined. */
  #redefine(register: number, bits: number): void {
    const index = wordIndex(register);
    this.#resetWords[index] = (this.#resetWords[index] as number) | bits;
    this.#words[index] = (this.#words[index] as number) | bits;
  }
}

/** Offset of the first capability with this ID in the standard list of whatever `read32` reads, or 0. */
export function findCapability(read32: (register: number) => number, id: number): number {
  let offset = read32(CAPABILITIES_POINTER) & 0xfc;
  while (offset !== 0) {
    const header = read32(offset);
    if ((header & 0xff) === id) return offset;
    offset = (header >>> 8) & 0xfc;
  }
  return 0;
}

function wordIndex(register: number): number {
  // A plain text: building one with the number in it would cost more than the access.
  assert(
    register >= 0 && register < CONFIG_SPACE_BYTES && (register & 3) === 0,
    'not a config register',
  );
  return register >>> 2;
}

function alignDw(bytes: number): number {
  return (bytes + 3) & ~3;
}
