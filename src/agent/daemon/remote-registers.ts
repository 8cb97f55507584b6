/**
 * What a host has programmed into a remote function, kept by watching its configuration writes: where the BARs
 * are, what the function may do, and where its interrupts go. BARs are answered from here, with the sizes of
 * the regions; everything else the function answers itself, through its `CapabilityView`.
 */
import { mergeBytes } from '#fabric/msi-shadow';
import { BAR_COUNT, barRegister, Bars } from '#pcie/bar';
import { COMMAND, ConfigSpace } from '#pcie/config-space';
import type { DmaLimits } from '#pcie/endpoint-dma';
import { IntxWire } from '#pcie/intx';
import {
  MSI_64_BIT_ADDRESS_CAPABLE,
  MSI_ENABLE,
  MSI_MESSAGE_ADDRESS,
  MSI_MULTIPLE_MESSAGE_ENABLE_SHIFT,
  MSI_PER_VECTOR_MASKING_CAPABLE,
} from '#pcie/msi';
import * as pcie from '#pcie/pcie-capability';
import type { RemoteBar, RemoteFunction } from './remote-function.ts';

const DEVCAP_FUNCTION_LEVEL_RESET = 1 << 28;
const DEVCTL_INITIATE_FUNCTION_LEVEL_RESET = 1 << 15;
const MSI_WRITABLE = MSI_ENABLE | (7 << MSI_MULTIPLE_MESSAGE_ENABLE_SHIFT);
/** Of a function without the PCI Express capability: what 7.5.3.4 has after a reset. */
const DEVICE_CONTROL_DEFAULT = 2 << pcie.DEVCTL_MAX_READ_REQUEST_SIZE_SHIFT;
const TWO_TO_32 = 0x1_0000_0000;
/** Addresses end at 2^53: from this upper half on they are none. */
const ADDRESS_HI_END = 0x20_0000;

export class RemoteRegisters {
  readonly intx: IntxWire | undefined;
  /** Where in the BAR the last successful `match` lies. */
  matchedOffset = 0;
  readonly #function: RemoteFunction;
  /** Of it the BARs and the Command register count. */
  readonly #believed = new ConfigSpace({ vendorId: 0, deviceId: 0, revisionId: 0, classCode: 0 });
  readonly #bars: Bars;
  #msiControl = 0;
  #addressLo = 0;
  #addressHi = 0;
  #data = 0;
  #mask = 0;
  #deviceControl = 0;
  #deviceControl2 = 0;

  constructor(fn: RemoteFunction) {
    this.#function = fn;
    this.#bars = new Bars(this.#believed, fn.bars);
    if (fn.hasPin) this.intx = new IntxWire(this.#believed);
    this.reset();
  }

  /** As after a fundamental reset. */
  reset(): void {
    this.intx?.reset();
    this.#believed.reset();
    this.#clear();
  }

  get bdf(): number {
    return this.#believed.bdf;
  }

  get busMaster(): boolean {
    return this.#believed.busMaster;
  }

  get interruptDisable(): boolean {
    return this.#believed.interruptDisable;
  }

  get msiEnabled(): boolean {
    return (this.#msiControl & MSI_ENABLE) !== 0;
  }

  /** Vectors the host has allocated. */
  get msiCount(): number {
    const allocated = (this.#msiControl >>> MSI_MULTIPLE_MESSAGE_ENABLE_SHIFT) & 7;
    return Math.min(2 ** allocated, this.#function.msi?.vectors ?? 1);
  }

  /** −1 where no write can reach. */
  get msiAddress(): number {
    if (this.#addressHi >= ADDRESS_HI_END) return -1;
    return this.#addressHi * TWO_TO_32 + this.#addressLo;
  }

  /** A vector beyond those allocated shares with one that is. */
  msiData(vector: number): number {
    const free = this.msiCount - 1;
    return (this.#data & ~free) | (vector & free);
  }

  isMasked(vector: number): boolean {
    return (this.#mask & (1 << (vector & (this.msiCount - 1)))) !== 0;
  }

  captureBdf(destination: number): void {
    this.#believed.captureBdf(destination);
  }

  /** What is not for the function to say: BARs, what is hidden, and what lies behind its end. */
  own(register: number): number | undefined {
    const { view, configBytes } = this.#function;
    if (isBar(register)) return this.#believed.read32(register);
    if (register >= configBytes) return 0;
    return view.isHidden(register) ? view.show(register, 0) : undefined;
  }

  /**
   * The host writes. `isPassed`: the function is to hear of it. `isReset`: with it the function resets itself
   * (Function Level Reset), and what was programmed is forgotten.
   */
  write(
    register: number,
    value: number,
    byteEnables: number,
  ): { isPassed: boolean; isReset: boolean } {
    const { msi, pcie: express, view, configBytes } = this.#function;
    let isReset = false;
    if (register === COMMAND) this.#believed.write(register, value, byteEnables & 3);
    else if (isBar(register)) this.#believed.write(register, value, byteEnables);
    else if (msi !== undefined && register >= msi.offset) {
      this.#writeMsi(register - msi.offset, value, byteEnables);
    }
    if (express !== 0 && register === express + pcie.DEVICE_CONTROL) {
      isReset = this.#writeDeviceControl(value, byteEnables & 3);
    } else if (this.#hasSecond && register === express + pcie.DEVICE_CONTROL_2) {
      this.#deviceControl2 = mergeBytes(this.#deviceControl2, value, byteEnables & 3);
    }
    return { isPassed: register < configBytes && !view.isHidden(register), isReset };
  }

  /** The BAR that holds all `bytes` bytes from `address` on. */
  match(address: number, bytes: number): RemoteBar | undefined {
    const index = this.#bars.match(address, bytes);
    this.matchedOffset = this.#bars.matchedOffset;
    return this.#function.bars.find((bar) => bar.index === index);
  }

  setLimits(limits: DmaLimits): void {
    const control = this.#deviceControl;
    const supported = this.#capability(pcie.DEVICE_CAPABILITIES) & 7;
    const payload = (control >>> pcie.DEVCTL_MAX_PAYLOAD_SIZE_SHIFT) & 7;
    const request = (control >>> pcie.DEVCTL_MAX_READ_REQUEST_SIZE_SHIFT) & 7;
    limits.busMaster = this.busMaster;
    limits.requesterId = this.bdf;
    limits.maxPayloadBytes = 128 << Math.min(payload, supported, 5);
    limits.maxReadRequestBytes = 128 << Math.min(request, 5);
    limits.tagBits = this.#tagBits();
    limits.timeoutEnabled = (this.#deviceControl2 & pcie.DEVCTL2_COMPLETION_TIMEOUT_DISABLE) === 0;
  }

  /** Whether its PCI Express capability is of version 2: with Device Control 2 and what belongs to it. */
  get #hasSecond(): boolean {
    const { pcie: express, config } = this.#function;
    return express !== 0 && ((config.getUint32(express, true) >>> 16) & 15) >= 2;
  }

  #tagBits(): 5 | 8 | 10 {
    const extended =
      this.#capability(pcie.DEVICE_CAPABILITIES) & pcie.DEVCAP_EXTENDED_TAG_SUPPORTED;
    const ten =
      this.#capability(pcie.DEVICE_CAPABILITIES_2) & pcie.DEVCAP2_10_BIT_TAG_REQUESTER_SUPPORTED;
    const asks10 = (this.#deviceControl2 & pcie.DEVCTL2_10_BIT_TAG_REQUESTER_ENABLE) !== 0;
    if (asks10 && ten !== 0) return 10;
    const asks8 = (this.#deviceControl & pcie.DEVCTL_EXTENDED_TAG_ENABLE) !== 0;
    return asks8 && extended !== 0 ? 8 : 5;
  }

  #writeMsi(relative: number, value: number, byteEnables: number): void {
    const isWide = (this.#msiControl & MSI_64_BIT_ADDRESS_CAPABLE) !== 0;
    // Offsets of 7.7.1: with a 64-bit address data and mask are one register further.
    const data = isWide ? 12 : 8;
    if (relative === 0) {
      const merged = mergeBytes(this.#msiControl, value, byteEnables);
      this.#msiControl = (this.#msiControl & ~MSI_WRITABLE) | (merged & MSI_WRITABLE);
    } else if (relative === MSI_MESSAGE_ADDRESS) {
      this.#addressLo = (mergeBytes(this.#addressLo, value, byteEnables) & ~3) >>> 0;
    } else if (relative === data) {
      this.#data = mergeBytes(this.#data, value, byteEnables) & 0xffff;
    } else if (relative === 8) {
      this.#addressHi = mergeBytes(this.#addressHi, value, byteEnables);
    } else if (relative === data + 4) {
      const masks = (this.#msiControl & MSI_PER_VECTOR_MASKING_CAPABLE) !== 0;
      if (masks) this.#mask = mergeBytes(this.#mask, value, byteEnables);
    }
  }

  #writeDeviceControl(value: number, byteEnables: number): boolean {
    const merged = mergeBytes(this.#deviceControl, value, byteEnables);
    this.#deviceControl = merged & ~DEVCTL_INITIATE_FUNCTION_LEVEL_RESET;
    const capable = this.#capability(pcie.DEVICE_CAPABILITIES) & DEVCAP_FUNCTION_LEVEL_RESET;
    if (capable === 0 || (merged & DEVCTL_INITIATE_FUNCTION_LEVEL_RESET) === 0) return false;
    const { bdf } = this;
    this.#believed.reset();
    this.captureBdf(bdf);
    // All but the payload size goes (6.6.2).
    const payload = this.#deviceControl & (7 << pcie.DEVCTL_MAX_PAYLOAD_SIZE_SHIFT);
    this.#clear();
    this.#deviceControl &= ~(7 << pcie.DEVCTL_MAX_PAYLOAD_SIZE_SHIFT);
    this.#deviceControl |= payload;
    return true;
  }

  #clear(): void {
    const { msi, pcie: express } = this.#function;
    this.#msiControl = ((msi?.control ?? 0) & ~MSI_WRITABLE) >>> 0;
    this.#addressLo = 0;
    this.#addressHi = 0;
    this.#data = 0;
    this.#mask = 0;
    this.#deviceControl =
      express === 0 ? DEVICE_CONTROL_DEFAULT : this.#capability(pcie.DEVICE_CONTROL) & 0xffff;
    this.#deviceControl2 = this.#capability(pcie.DEVICE_CONTROL_2) & 0xffff;
  }

  /** A register of the PCI Express capability as it was after the reset; 0 without one. */
  #capability(offset: number): number {
    const { pcie: express, config } = this.#function;
    if (express === 0 || (offset >= pcie.DEVICE_CAPABILITIES_2 && !this.#hasSecond)) return 0;
    return config.getUint32(express + offset, true);
  }
}

function isBar(register: number): boolean {
  return register >= barRegister(0) && register < barRegister(BAR_COUNT);
}
