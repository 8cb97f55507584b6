/**
 * MSI-X (PCIe 5.0 base, 7.7.2 and 6.1.4): the capability, and the table and pending bit array that
 * lie behind a BAR.
 *
 * Who owns what: `Msix` defines the capability's registers in the configuration space and owns one
 * `MsixTable`. The endpoint routes accesses in the two BAR ranges to the table and asks `Msix`, never
 * the table, whether a message may go out. A reset of the function resets both: `ConfigSpace.reset`
 * and `MsixTable.reset`.
 */
import { assert } from '#base/assert';
import type { ConfigSpace } from './config-space.ts';

export const MSIX_CAPABILITY_ID = 0x11;
export const MSIX_CAPABILITY_BYTES = 12;

// Message Control, bits 31:16 of the first register, in their places in the 32-bit word.
export const MSIX_TABLE_SIZE_SHIFT = 16;
export const MSIX_FUNCTION_MASK = 1 << 30;
export const MSIX_ENABLE = 0x8000_0000;

export const MSIX_TABLE_OFFSET_BIR = 0x04;
export const MSIX_PBA_OFFSET_BIR = 0x08;

/** One table entry: four registers. */
export const MSIX_ENTRY_BYTES = 16;
export const MSIX_ENTRY_MESSAGE_ADDRESS = 0x0;
export const MSIX_ENTRY_MESSAGE_UPPER_ADDRESS = 0x4;
export const MSIX_ENTRY_MESSAGE_DATA = 0x8;
export const MSIX_ENTRY_VECTOR_CONTROL = 0xc;
export const MSIX_VECTOR_CONTROL_MASK = 1;

export interface MsixOptions {
  /** 1 to 2048. */
  readonly vectors: number;
  /** BAR and 8-byte aligned offset of the table, `16 × vectors` bytes. */
  readonly tableBar: number;
  readonly tableOffset: number;
  /** BAR and 8-byte aligned offset of the pending bits, a 64-bit word for each 64 vectors. */
  readonly pbaBar: number;
  readonly pbaOffset: number;
}

/** Table and pending bits, as software sees them behind the BAR. Offsets are from their start. */
export class MsixTable {
  readonly vectors: number;
  readonly tableBytes: number;
  readonly pbaBytes: number;
  readonly #entries: Uint32Array;
  readonly #pending: Uint32Array;

  constructor(vectors: number) {
    assert(
      Number.isInteger(vectors) && vectors >= 1 && vectors <= 2048,
      'MSI-X has 1 to 2048 vectors',
    );
    this.vectors = vectors;
    this.tableBytes = vectors * MSIX_ENTRY_BYTES;
    this.pbaBytes = Math.ceil(vectors / 64) * 8;
    this.#entries = new Uint32Array(this.tableBytes / 4);
    this.#pending = new Uint32Array(this.pbaBytes / 4);
    this.reset();
  }

  /** Every vector masked, nothing pending. */
  reset(): void {
    this.#entries.fill(0);
    for (let vector = 0; vector < this.vectors; vector++) {
      this.#entries[vector * 4 + MSIX_ENTRY_VECTOR_CONTROL / 4] = MSIX_VECTOR_CONTROL_MASK;
    }
    this.#pending.fill(0);
  }

  readTable32(offset: number): number {
    return this.#entries[offset >>> 2] ?? 0;
  }

  /** Software's write to the DW at `offset`; byte enable `n` covers bits 8n+7:8n. */
  writeTable32(offset: number, value: number, byteEnables: number): void {
    const index = offset >>> 2;
    if (index >= this.#entries.length) return;
    let writable = 0;
    for (let byte = 0; byte < 4; byte++) {
      if ((byteEnables & (1 << byte)) !== 0) writable |= 0xff << (8 * byte);
    }
    const register = offset & 0xc;
    if (register === MSIX_ENTRY_MESSAGE_ADDRESS) writable &= ~3;
    if (register === MSIX_ENTRY_VECTOR_CONTROL) writable &= MSIX_VECTOR_CONTROL_MASK;
    this.#entries[index] = ((this.#entries[index] as number) & ~writable) | (value & writable);
  }

  /** The pending bit array is read-only to software. */
  readPba32(offset: number): number {
    return this.#pending[offset >>> 2] ?? 0;
  }

  addressLo(vector: number): number {
    return this.#entry(vector, MSIX_ENTRY_MESSAGE_ADDRESS);
  }

  addressHi(vector: number): number {
    return this.#entry(vector, MSIX_ENTRY_MESSAGE_UPPER_ADDRESS);
  }

  messageData(vector: number): number {
    return this.#entry(vector, MSIX_ENTRY_MESSAGE_DATA);
  }

  isMasked(vector: number): boolean {
    return (this.#entry(vector, MSIX_ENTRY_VECTOR_CONTROL) & MSIX_VECTOR_CONTROL_MASK) !== 0;
  }

  isPending(vector: number): boolean {
    return ((this.#pending[vector >>> 5] as number) & (1 << (vector & 31))) !== 0;
  }

  setPending(vector: number, pending: boolean): void {
    const index = vector >>> 5;
    const bit = 1 << (vector & 31);
    const word = this.#pending[index] as number;
    this.#pending[index] = pending ? word | bit : word & ~bit;
  }

  /** The lowest vector that is pending and not masked by itself, or −1. */
  firstReady(): number {
    for (let index = 0; index < this.#pending.length; index++) {
      let word = this.#pending[index] as number;
      while (word !== 0) {
        const bit = 31 - Math.clz32(word & -word);
        if (!this.isMasked(index * 32 + bit)) return index * 32 + bit;
        word &= word - 1;
      }
    }
    return -1;
  }

  #entry(vector: number, register: number): number {
    return this.#entries[(vector * MSIX_ENTRY_BYTES + register) / 4] as number;
  }
}

export class Msix {
  readonly offset: number;
  readonly table: MsixTable;
  readonly options: MsixOptions;
  readonly #config: ConfigSpace;

  constructor(config: ConfigSpace, options: MsixOptions) {
    const { vectors, tableBar, tableOffset, pbaBar, pbaOffset } = options;
    assert(tableBar >= 0 && tableBar <= 5 && pbaBar >= 0 && pbaBar <= 5, 'no such BAR');
    assert(tableOffset % 8 === 0 && pbaOffset % 8 === 0, 'MSI-X offsets are multiples of 8');
    this.table = new MsixTable(vectors);
    this.options = options;
    this.#config = config;
    assert(
      tableBar !== pbaBar ||
        tableOffset + this.table.tableBytes <= pbaOffset ||
        pbaOffset + this.table.pbaBytes <= tableOffset,
      'the MSI-X table and its pending bits overlap',
    );
    this.offset = config.addCapability(
      MSIX_CAPABILITY_ID,
      MSIX_CAPABILITY_BYTES,
      vectors - 1,
      (MSIX_ENABLE | MSIX_FUNCTION_MASK) >>> 16,
    );
    config.define(this.offset + MSIX_TABLE_OFFSET_BIR, tableOffset + tableBar, 0);
    config.define(this.offset + MSIX_PBA_OFFSET_BIR, pbaOffset + pbaBar, 0);
  }

  get enabled(): boolean {
    return (this.#config.read32(this.offset) & MSIX_ENABLE) !== 0;
  }

  get functionMasked(): boolean {
    return (this.#config.read32(this.offset) & MSIX_FUNCTION_MASK) !== 0;
  }

  /**
   * `vector` has something to say. Returns true when its message is to be sent now; when it or the
   * function is masked it becomes pending, when MSI-X is disabled nothing happens.
   */
  raise(vector: number): boolean {
    assert(vector >= 0 && vector < this.table.vectors, 'no such MSI-X vector');
    if (!this.enabled) return false;
    if (!this.functionMasked && !this.table.isMasked(vector)) return true;
    this.table.setPending(vector, true);
    return false;
  }

  /**
   * After software's write to the table or to Message Control: a vector whose message is to be sent
   * now because it is pending and no longer masked (and pending no more after this call), or −1.
   */
  takePending(): number {
    if (!this.enabled || this.functionMasked) return -1;
    const vector = this.table.firstReady();
    if (vector >= 0) this.table.setPending(vector, false);
    return vector;
  }
}
