/**
 * A function's configuration as its host has set it, kept by watching what the host proxy passes on
 * (invariant 3: the box may lie, so it is never asked). Writes count from when they are passed on.
 * Where a capability lies is learnt from the read completions the host itself saw, and pinned at
 * first sight: what the box says later cannot move it.
 *
 * `ConfigShadow` owns one `MsiShadow` and one `MsixShadow`; it alone feeds them.
 */
import { BAR_COUNT, BAR_TYPE_64_BIT } from '#pcie/bar';
import {
  BASE_ADDRESS_0,
  CAPABILITIES_POINTER,
  COMMAND,
  COMMAND_BUS_MASTER_ENABLE,
  COMMAND_INTERRUPT_DISABLE,
  COMMAND_MEMORY_SPACE_ENABLE,
  FIRST_CAPABILITY,
  INTERRUPT_LINE,
  INTERRUPT_PIN_INTA,
} from '#pcie/config-space';
import { MSI_CAPABILITY_ID } from '#pcie/msi';
import { MSIX_CAPABILITY_ID, MSIX_ENTRY_BYTES, MSIX_TABLE_OFFSET_BIR } from '#pcie/msix';
import {
  DEVCAP_FUNCTION_LEVEL_RESET,
  DEVCTL_INITIATE_FUNCTION_LEVEL_RESET,
  DEVCTL_MAX_PAYLOAD_SIZE_SHIFT,
  DEVICE_CAPABILITIES,
  DEVICE_CONTROL,
  PCIE_CAPABILITY_ID,
} from '#pcie/pcie-capability';
import { type Tlp, tlpAddress } from '#pcie/tlp';
import { MsiShadow, MsixShadow, mergeBytes } from './msi-shadow.ts';

/** Interrupt Pin in its register. */
const INTERRUPT_PIN_MASK = 0xff00;

const STANDARD_REGISTERS = 64;
/** Set in `#known` once a register was read; the values are the first ones. */
const SEEN = 1;

export class ConfigShadow {
  readonly msi = new MsiShadow();
  readonly msix = new MsixShadow();
  /** Bus, device and function 0 that the function captured from the last CfgWr0; −1 before it. */
  capturedBdf = -1;
  busMaster = false;
  /** Whether the function has INTA, as the host has seen it, and may use it (Interrupt Disable). */
  get hasInterruptPin(): boolean {
    return (this.#read(INTERRUPT_LINE) & INTERRUPT_PIN_MASK) === INTERRUPT_PIN_INTA;
  }

  get interruptDisable(): boolean {
    return (this.#command & COMMAND_INTERRUPT_DISABLE) !== 0;
  }

  /** Whether the function decodes its BARs (Memory Space Enable). */
  get memoryEnable(): boolean {
    return (this.#command & COMMAND_MEMORY_SPACE_ENABLE) !== 0;
  }

  /**
   * Max_Payload_Size of the function, which bounds what it may send and be sent; Infinity while it has
   * shown no PCIe capability.
   */
  maxPayloadBytes = Infinity;
  #command = 0;
  readonly #bars = new Uint32Array(BAR_COUNT);
  readonly #known = new Uint8Array(STANDARD_REGISTERS);
  readonly #first = new Uint32Array(STANDARD_REGISTERS);
  /** What the host has written, for registers whose meaning shows only later. */
  readonly #written = new Uint32Array(STANDARD_REGISTERS);
  #pcieOffset = 0;
  #deviceControl = 0;
  /** The MSI-X table on the bus; empty (limit below base) while unknown. */
  #msixTableBase = 0;
  #msixTableLimit = -1;

  /** The host saw `value` in a config register of function 0. */
  readCompleted(register: number, value: number): void {
    if (register >= 4 * STANDARD_REGISTERS) return;
    const index = register >>> 2;
    if (this.#known[index] === SEEN) return;
    this.#known[index] = SEEN;
    this.#first[index] = value;
    this.#walk();
    this.#placeMsixTable();
  }

  /** A config write to function 0 was passed on; `bdf` is its destination. */
  write(bdf: number, register: number, value: number, byteEnables: number): void {
    this.capturedBdf = bdf;
    if (register < 4 * STANDARD_REGISTERS) {
      const index = register >>> 2;
      this.#written[index] = mergeBytes(this.#written[index] as number, value, byteEnables);
    }
    if (register === COMMAND) {
      this.#command = mergeBytes(this.#command, value, byteEnables & 0b0011);
      this.busMaster = (this.#command & COMMAND_BUS_MASTER_ENABLE) !== 0;
    } else if (register >= BASE_ADDRESS_0 && register < BASE_ADDRESS_0 + 4 * BAR_COUNT) {
      const bar = (register - BASE_ADDRESS_0) >>> 2;
      this.#bars[bar] = mergeBytes(this.#bars[bar] as number, value, byteEnables);
      this.#placeMsixTable();
    } else if (this.msi.covers(register)) {
      this.msi.write(register, value, byteEnables);
    } else if (this.msix.offset !== 0 && register === this.msix.offset) {
      this.msix.writeControl(value, byteEnables);
    } else if (this.#pcieOffset !== 0 && register === this.#pcieOffset + DEVICE_CONTROL) {
      this.#writeDeviceControl(value, byteEnables);
    }
  }

  /** A config write has completed, one way or another. */
  writeCompleted(register: number): void {
    if (this.msi.covers(register)) this.msi.writeCompleted();
  }

  /** Whether a memory write into [base, limit] may matter to this shadow. */
  isWatched(base: number, limit: number): boolean {
    return base <= this.#msixTableLimit && limit >= this.#msixTableBase;
  }

  /** A memory write was passed on: it may be to the MSI-X table. */
  memoryWrite(tlp: Tlp): void {
    const address = tlpAddress(tlp);
    if (!this.isWatched(address, address + 4 * tlp.lengthDw - 1)) return;
    const { payload, payloadOffset, lengthDw } = tlp;
    for (let dw = 0; dw < lengthDw; dw++) {
      const word = (address + 4 * dw - this.#msixTableBase) / 4;
      if (word < 0) continue;
      const at = payloadOffset + 4 * dw;
      const value = readLittleEndian32(payload, at);
      const last = dw === lengthDw - 1 && dw > 0;
      this.msix.writeWord(word, value, dw === 0 ? tlp.firstBe : last ? tlp.lastBe : 0xf);
    }
  }

  /** Whether a DWORD write of `data` is an interrupt the host has programmed into this function. */
  isInterrupt(addressHi: number, addressLo: number, data: number): boolean {
    return (
      this.msi.matches(addressHi, addressLo, data) || this.msix.matches(addressHi, addressLo, data)
    );
  }

  /** Follows the list of capabilities as far as the host has read it. */
  #walk(): void {
    let pointer = this.#read(CAPABILITIES_POINTER) & 0xfc;
    // At most as many steps as there is room for capabilities: a list may be a circle.
    for (let steps = 0; steps < 48 && pointer >= FIRST_CAPABILITY; steps++) {
      if (this.#known[pointer >>> 2] !== SEEN) return;
      const header = this.#read(pointer);
      const id = header & 0xff;
      if (id === MSI_CAPABILITY_ID && this.msi.offset === 0) this.msi.pin(pointer, header);
      if (id === MSIX_CAPABILITY_ID && this.msix.offset === 0) this.msix.pin(pointer, header);
      if (id === PCIE_CAPABILITY_ID && this.#pcieOffset === 0) {
        this.#pcieOffset = pointer;
        // A host may have restored what it saved before it looks at anything.
        const control = this.#written[(pointer + DEVICE_CONTROL) >>> 2] as number;
        this.#writeDeviceControl(control & ~DEVCTL_INITIATE_FUNCTION_LEVEL_RESET, 15);
      }
      pointer = (header >>> 8) & 0xfc;
    }
  }

  #placeMsixTable(): void {
    this.#msixTableLimit = -1;
    const { offset, entries } = this.msix;
    if (offset === 0 || this.#known[(offset + MSIX_TABLE_OFFSET_BIR) >>> 2] !== SEEN) return;
    const location = this.#read(offset + MSIX_TABLE_OFFSET_BIR);
    const bar = location & 7;
    const register = BASE_ADDRESS_0 + 4 * bar;
    if (bar >= BAR_COUNT || this.#known[register >>> 2] !== SEEN) return;
    const is64Bit = (this.#read(register) & 6) === BAR_TYPE_64_BIT;
    const high = is64Bit && bar + 1 < BAR_COUNT ? (this.#bars[bar + 1] as number) : 0;
    const low = ((this.#bars[bar] as number) & ~0xf) >>> 0;
    this.#msixTableBase = high * 0x1_0000_0000 + low + ((location & ~7) >>> 0);
    this.#msixTableLimit = this.#msixTableBase + entries * MSIX_ENTRY_BYTES - 1;
  }

  #writeDeviceControl(value: number, byteEnables: number): void {
    this.#deviceControl = mergeBytes(this.#deviceControl, value, byteEnables & 0b0011);
    const capable =
      this.#read(this.#pcieOffset + DEVICE_CAPABILITIES) & DEVCAP_FUNCTION_LEVEL_RESET;
    if (capable !== 0 && (this.#deviceControl & DEVCTL_INITIATE_FUNCTION_LEVEL_RESET) !== 0) {
      this.#functionLevelReset();
    }
    this.#deviceControl &= ~DEVCTL_INITIATE_FUNCTION_LEVEL_RESET;
    const encoded = (this.#deviceControl >>> DEVCTL_MAX_PAYLOAD_SIZE_SHIFT) & 7;
    this.maxPayloadBytes = 128 << Math.min(encoded, 5);
  }

  /** The function forgets what software wrote, except its bus number and payload size (6.6.2). */
  #functionLevelReset(): void {
    this.#command = 0;
    this.busMaster = false;
    this.#bars.fill(0);
    this.#deviceControl &= 7 << DEVCTL_MAX_PAYLOAD_SIZE_SHIFT;
    this.msi.reset();
    this.msix.reset();
    this.#placeMsixTable();
  }

  #read(register: number): number {
    return this.#first[register >>> 2] as number;
  }
}

/** Registers are little-endian in payload bytes. */
export function readLittleEndian32(bytes: Uint8Array, at: number): number {
  return (
    ((bytes[at] as number) |
      ((bytes[at + 1] as number) << 8) |
      ((bytes[at + 2] as number) << 16) |
      ((bytes[at + 3] as number) << 24)) >>>
    0
  );
}
