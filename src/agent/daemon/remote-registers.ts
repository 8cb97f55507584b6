/**
 * What a host has programmed into a remote function, kept by watching its configuration writes: where the BARs
 * are, what the function may do, and where its interrupts go. BARs are answered from here, with the sizes of
 * the regions; everything else the function answers itself, through its `CapabilityView`.
 */
import { Bars, isBarRegister } from '#pcie/bar';
import { ConfigSpace } from '#pcie/config-space';
import type { DmaLimits } from '#pcie/endpoint-dma';
import { IntxWire } from '#pcie/intx';
import {
  MSI_64_BIT_ADDRESS_CAPABLE,
  MSI_CONTROL_WRITABLE,
  MSI_ENABLE,
  MSI_MESSAGE_ADDRESS,
  MSI_MESSAGE_UPPER_ADDRESS,
  MSI_MULTIPLE_MESSAGE_ENABLE_SHIFT,
  MSI_PER_VECTOR_MASKING_CAPABLE,
} from '#pcie/msi';
import * as pcie from '#pcie/pcie-capability';
import type { RemoteBar, RemoteFunction } from './remote-function.ts';

/** Control registers are the lower halves of theirs; a reset is started, not stored. */
const CONTROL = 0xffff;
const DEVICE_CONTROL_KEPT = CONTROL & ~pcie.DEVCTL_INITIATE_FUNCTION_LEVEL_RESET;
const MAX_PAYLOAD_SIZE = 7 << pcie.DEVCTL_MAX_PAYLOAD_SIZE_SHIFT;
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
  /** Of what the host sees the BARs alone; the rest is to know what it has written. */
  readonly #programmed = new ConfigSpace({ vendorId: 0, deviceId: 0, revisionId: 0, classCode: 0 });
  readonly #bars: Bars;
  readonly #isMsiWide: boolean;
  readonly #hasMsiMasks: boolean;
  /** Offset of the message data (7.7.1): with a 64-bit address it, and the mask, are one register further. */
  readonly #msiDataOffset: number;

  constructor(fn: RemoteFunction) {
    this.#function = fn;
    this.#bars = new Bars(this.#programmed, fn.bars);
    if (fn.hasPin) this.intx = new IntxWire(this.#programmed);
    const control = fn.msi?.control ?? 0;
    this.#isMsiWide = (control & MSI_64_BIT_ADDRESS_CAPABLE) !== 0;
    this.#hasMsiMasks = (control & MSI_PER_VECTOR_MASKING_CAPABLE) !== 0;
    this.#msiDataOffset = this.#isMsiWide ? 12 : 8;
    this.#defineMsi();
    this.#defineControls();
  }

  /** As after a fundamental reset. */
  reset(): void {
    this.intx?.reset();
    this.#programmed.reset();
  }

  get bdf(): number {
    return this.#programmed.bdf;
  }

  get busMaster(): boolean {
    return this.#programmed.busMaster;
  }

  get interruptDisable(): boolean {
    return this.#programmed.interruptDisable;
  }

  get msiEnabled(): boolean {
    return (this.#readMsi(0) & MSI_ENABLE) !== 0;
  }

  /** Vectors the host has allocated. */
  get msiCount(): number {
    const allocated = (this.#readMsi(0) >>> MSI_MULTIPLE_MESSAGE_ENABLE_SHIFT) & 7;
    return Math.min(2 ** allocated, this.#function.msi?.vectors ?? 1);
  }

  /** −1 where no write can reach. */
  get msiAddress(): number {
    const high = this.#isMsiWide ? this.#readMsi(MSI_MESSAGE_UPPER_ADDRESS) : 0;
    if (high >= ADDRESS_HI_END) return -1;
    return high * TWO_TO_32 + this.#readMsi(MSI_MESSAGE_ADDRESS);
  }

  /** A vector beyond those allocated shares with one that is. */
  msiData(vector: number): number {
    const free = this.msiCount - 1;
    return (this.#readMsi(this.#msiDataOffset) & ~free) | (vector & free);
  }

  isMasked(vector: number): boolean {
    if (!this.#hasMsiMasks) return false;
    const mask = this.#readMsi(this.#msiDataOffset + 4);
    return (mask & (1 << (vector & (this.msiCount - 1)))) !== 0;
  }

  captureBdf(destination: number): void {
    this.#programmed.captureBdf(destination);
  }

  /** What is not for the function to say: BARs, what is hidden, and what lies behind its end. */
  own(register: number): number | undefined {
    const { view, configBytes } = this.#function;
    if (isBarRegister(register)) return this.#programmed.read32(register);
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
    const { pcie: express, view, configBytes } = this.#function;
    this.#programmed.write(register, value, byteEnables);
    const isDeviceControl = express !== 0 && register === express + pcie.DEVICE_CONTROL;
    const isReset = isDeviceControl && (byteEnables & 2) !== 0 && this.#isReset(value);
    if (isReset) this.#resetFunction();
    return { isPassed: register < configBytes && !view.isHidden(register), isReset };
  }

  /** The BAR that holds all `bytes` bytes from `address` on. */
  match(address: number, bytes: number): RemoteBar | undefined {
    const index = this.#bars.match(address, bytes);
    this.matchedOffset = this.#bars.matchedOffset;
    return this.#function.bars.find((bar) => bar.index === index);
  }

  setLimits(limits: DmaLimits): void {
    const control = this.#deviceControl();
    const control2 = this.#deviceControl2();
    const supported = this.#capability(pcie.DEVICE_CAPABILITIES) & 7;
    const payload = (control >>> pcie.DEVCTL_MAX_PAYLOAD_SIZE_SHIFT) & 7;
    const request = (control >>> pcie.DEVCTL_MAX_READ_REQUEST_SIZE_SHIFT) & 7;
    limits.busMaster = this.busMaster;
    limits.requesterId = this.bdf;
    limits.maxPayloadBytes = 128 << Math.min(payload, supported, 5);
    limits.maxReadRequestBytes = 128 << Math.min(request, 5);
    limits.tagBits = this.#tagBits(control, control2);
    limits.timeoutEnabled = (control2 & pcie.DEVCTL2_COMPLETION_TIMEOUT_DISABLE) === 0;
  }

  /** Whether its PCI Express capability is of version 2: with Device Control 2 and what belongs to it. */
  #hasSecond(): boolean {
    const { pcie: express, config } = this.#function;
    return express !== 0 && ((config.getUint32(express, true) >>> 16) & 15) >= 2;
  }

  #tagBits(control: number, control2: number): 5 | 8 | 10 {
    const extended =
      this.#capability(pcie.DEVICE_CAPABILITIES) & pcie.DEVCAP_EXTENDED_TAG_SUPPORTED;
    const ten =
      this.#capability(pcie.DEVICE_CAPABILITIES_2) & pcie.DEVCAP2_10_BIT_TAG_REQUESTER_SUPPORTED;
    const asks10 = (control2 & pcie.DEVCTL2_10_BIT_TAG_REQUESTER_ENABLE) !== 0;
    if (asks10 && ten !== 0) return 10;
    const asks8 = (control & pcie.DEVCTL_EXTENDED_TAG_ENABLE) !== 0;
    return asks8 && extended !== 0 ? 8 : 5;
  }

  #defineMsi(): void {
    const { msi } = this.#function;
    if (msi === undefined) return;
    const define = (relative: number, value: number, writable: number): void =>
      this.#programmed.define(msi.offset + relative, value, writable);
    define(0, msi.control & ~MSI_CONTROL_WRITABLE, MSI_CONTROL_WRITABLE);
    define(MSI_MESSAGE_ADDRESS, 0, ~3);
    if (this.#isMsiWide) define(MSI_MESSAGE_UPPER_ADDRESS, 0, 0xffff_ffff);
    define(this.#msiDataOffset, 0, 0xffff);
    if (this.#hasMsiMasks) define(this.#msiDataOffset + 4, 0, 0xffff_ffff);
  }

  #readMsi(relative: number): number {
    const { msi } = this.#function;
    return msi === undefined ? 0 : this.#programmed.read32(msi.offset + relative);
  }

  #defineControls(): void {
    const { pcie: express } = this.#function;
    if (express === 0) return;
    const control = this.#capability(pcie.DEVICE_CONTROL) & DEVICE_CONTROL_KEPT;
    this.#programmed.define(express + pcie.DEVICE_CONTROL, control, DEVICE_CONTROL_KEPT);
    if (!this.#hasSecond()) return;
    const control2 = this.#capability(pcie.DEVICE_CONTROL_2) & CONTROL;
    this.#programmed.define(express + pcie.DEVICE_CONTROL_2, control2, CONTROL);
  }

  #deviceControl(): number {
    const { pcie: express } = this.#function;
    if (express === 0) return DEVICE_CONTROL_DEFAULT;
    return this.#programmed.read32(express + pcie.DEVICE_CONTROL);
  }

  #deviceControl2(): number {
    if (!this.#hasSecond()) return 0;
    return this.#programmed.read32(this.#function.pcie + pcie.DEVICE_CONTROL_2);
  }

  #isReset(deviceControl: number): boolean {
    const capable = this.#capability(pcie.DEVICE_CAPABILITIES) & pcie.DEVCAP_FUNCTION_LEVEL_RESET;
    return capable !== 0 && (deviceControl & pcie.DEVCTL_INITIATE_FUNCTION_LEVEL_RESET) !== 0;
  }

  /** All but bus number and payload size goes (6.6.2). */
  #resetFunction(): void {
    const { bdf } = this;
    const register = this.#function.pcie + pcie.DEVICE_CONTROL;
    const payload = this.#deviceControl() & MAX_PAYLOAD_SIZE;
    this.#programmed.reset();
    this.captureBdf(bdf);
    this.#programmed.clearBits(register, MAX_PAYLOAD_SIZE);
    this.#programmed.setBits(register, payload);
  }

  /** A register of the PCI Express capability as it was after the reset; 0 without one. */
  #capability(offset: number): number {
    const { pcie: express, config } = this.#function;
    if (express === 0 || (offset >= pcie.DEVICE_CAPABILITIES_2 && !this.#hasSecond())) return 0;
    return config.getUint32(express + offset, true);
  }
}
