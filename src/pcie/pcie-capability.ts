/**
 * The PCI Express capability, version 2, of an endpoint or a port (PCIe 5.0 base, 7.5.3). The slot
 * registers of a hot-plug port are in `pcie-slot.ts`.
 */
import { assert } from '#base/assert';
import type { ConfigSpace } from './config-space.ts';

export const PCIE_CAPABILITY_ID = 0x10;
export const PCIE_CAPABILITY_BYTES = 0x3c;

/** Device/Port Type (bits 7:4 of the PCI Express Capabilities register). */
export const PortType = { ENDPOINT: 0, ROOT_PORT: 4, UPSTREAM: 5, DOWNSTREAM: 6 } as const;
export type PortType = (typeof PortType)[keyof typeof PortType];

export const PCIE_SLOT_IMPLEMENTED = 1 << 24;

export const DEVICE_CAPABILITIES = 0x04;
export const DEVCAP_EXTENDED_TAG_SUPPORTED = 1 << 5;
export const DEVCAP_ROLE_BASED_ERROR_REPORTING = 1 << 15;
export const DEVCAP_FUNCTION_LEVEL_RESET = 1 << 28;

/** Device Control in bits 15:0, Device Status in 31:16. */
export const DEVICE_CONTROL = 0x08;
export const DEVCTL_CORRECTABLE_ERROR_REPORTING = 1 << 0;
export const DEVCTL_NON_FATAL_ERROR_REPORTING = 1 << 1;
export const DEVCTL_FATAL_ERROR_REPORTING = 1 << 2;
export const DEVCTL_UNSUPPORTED_REQUEST_REPORTING = 1 << 3;
export const DEVCTL_ENABLE_RELAXED_ORDERING = 1 << 4;
export const DEVCTL_MAX_PAYLOAD_SIZE_SHIFT = 5;
export const DEVCTL_EXTENDED_TAG_ENABLE = 1 << 8;
export const DEVCTL_ENABLE_NO_SNOOP = 1 << 11;
export const DEVCTL_MAX_READ_REQUEST_SIZE_SHIFT = 12;
export const DEVCTL_INITIATE_FUNCTION_LEVEL_RESET = 1 << 15;
export const DEVSTA_CORRECTABLE_ERROR_DETECTED = 1 << 16;
export const DEVSTA_NON_FATAL_ERROR_DETECTED = 1 << 17;
export const DEVSTA_FATAL_ERROR_DETECTED = 1 << 18;
export const DEVSTA_UNSUPPORTED_REQUEST_DETECTED = 1 << 19;
export const DEVSTA_TRANSACTIONS_PENDING = 1 << 21;

export const LINK_CAPABILITIES = 0x0c;
export const LNKCAP_MAX_LINK_WIDTH_SHIFT = 4;
export const LNKCAP_SURPRISE_DOWN_ERROR_REPORTING = 1 << 19;
export const LNKCAP_DATA_LINK_LAYER_ACTIVE_REPORTING = 1 << 20;
export const LNKCAP_ASPM_OPTIONALITY_COMPLIANCE = 1 << 22;
export const LNKCAP_PORT_NUMBER_SHIFT = 24;

/** Link Control in bits 15:0, Link Status in 31:16. */
export const LINK_CONTROL = 0x10;
export const LNKCTL_ASPM_CONTROL = 3;
export const LNKCTL_READ_COMPLETION_BOUNDARY = 1 << 3;
export const LNKCTL_LINK_DISABLE = 1 << 4;
export const LNKCTL_COMMON_CLOCK = 1 << 6;
export const LNKCTL_EXTENDED_SYNCH = 1 << 7;
export const LNKSTA_CURRENT_LINK_SPEED_SHIFT = 16;
export const LNKSTA_NEGOTIATED_LINK_WIDTH_SHIFT = 20;
export const LNKSTA_DATA_LINK_LAYER_ACTIVE = 1 << 29;

export const DEVICE_CAPABILITIES_2 = 0x24;
export const DEVCAP2_COMPLETION_TIMEOUT_DISABLE_SUPPORTED = 1 << 4;
export const DEVCAP2_10_BIT_TAG_COMPLETER_SUPPORTED = 1 << 16;
export const DEVCAP2_10_BIT_TAG_REQUESTER_SUPPORTED = 1 << 17;

export const DEVICE_CONTROL_2 = 0x28;
export const DEVCTL2_COMPLETION_TIMEOUT_DISABLE = 1 << 4;
export const DEVCTL2_IDO_REQUEST_ENABLE = 1 << 8;
export const DEVCTL2_IDO_COMPLETION_ENABLE = 1 << 9;
export const DEVCTL2_10_BIT_TAG_REQUESTER_ENABLE = 1 << 12;

export const LINK_CAPABILITIES_2 = 0x2c;
/** Link Control 2 in bits 15:0, Link Status 2 in 31:16. */
export const LINK_CONTROL_2 = 0x30;
/** Equalization at 8 GT/s is complete, with all three phases (Link Status 2, bits 4:1). */
export const LNKSTA2_EQUALIZED_8GT = 0b1111 << 17;

const CAPABILITY_VERSION = 2;
/** Max_Read_Request_Size after reset: 512 bytes (7.5.3.4). */
const DEFAULT_READ_REQUEST_FIELD = 2;
const DEVSTA_WRITE_1_TO_CLEAR =
  DEVSTA_CORRECTABLE_ERROR_DETECTED |
  DEVSTA_NON_FATAL_ERROR_DETECTED |
  DEVSTA_FATAL_ERROR_DETECTED |
  DEVSTA_UNSUPPORTED_REQUEST_DETECTED;

export interface PcieCapabilityOptions {
  readonly portType: PortType;
  /** Max_Payload_Size supported: 128, 256 … 4096. */
  readonly maxPayloadBytes: number;
  readonly extendedTag: boolean;
  readonly tenBitTagCompleter: boolean;
  readonly tenBitTagRequester: boolean;
  /**
   * PCIe generation, 1 to 6, and lanes, 1 to 32: what the link can do and has trained to. From 3 on
   * the function must have further capabilities (`secondary-pcie.ts`), from 4 on ones there are none of
   * here.
   */
  readonly generation: number;
  readonly lanes: number;
  /** Ports: their number, and whether a slot is connected to them (its registers: `pcie-slot.ts`). */
  readonly portNumber?: number;
  readonly slotImplemented?: boolean;
}

export class PcieCapability {
  readonly offset: number;
  readonly options: PcieCapabilityOptions;
  readonly #config: ConfigSpace;

  constructor(config: ConfigSpace, options: PcieCapabilityOptions) {
    const { portType, maxPayloadBytes, generation, lanes } = options;
    const payloadField = Math.log2(maxPayloadBytes / 128);
    assert(
      Number.isInteger(payloadField) && payloadField >= 0 && payloadField <= 5,
      `Max_Payload_Size must be 128, 256 … 4096: ${maxPayloadBytes}`,
    );
    assert(Number.isInteger(generation) && generation >= 1 && generation <= 6, 'generation 1 to 6');
    assert(Number.isInteger(lanes) && lanes >= 1 && lanes <= 32, 'lanes 1 to 32');
    this.#config = config;
    this.options = options;
    const isPort = portType !== PortType.ENDPOINT;
    const isDownstream = portType === PortType.ROOT_PORT || portType === PortType.DOWNSTREAM;
    const slot = options.slotImplemented === true ? PCIE_SLOT_IMPLEMENTED >>> 16 : 0;
    assert(slot === 0 || isDownstream, 'a slot is behind a downstream or root port');

    this.offset = config.addCapability(
      PCIE_CAPABILITY_ID,
      PCIE_CAPABILITY_BYTES,
      CAPABILITY_VERSION | (portType << 4) | slot,
    );
    config.define(
      this.offset + DEVICE_CAPABILITIES,
      payloadField |
        (options.extendedTag ? DEVCAP_EXTENDED_TAG_SUPPORTED : 0) |
        DEVCAP_ROLE_BASED_ERROR_REPORTING,
      0,
    );
    // Software finds relaxed ordering and no snoop allowed, 128-byte payloads, 512-byte reads.
    config.define(
      this.offset + DEVICE_CONTROL,
      DEVCTL_ENABLE_RELAXED_ORDERING |
        (options.extendedTag ? DEVCTL_EXTENDED_TAG_ENABLE : 0) |
        DEVCTL_ENABLE_NO_SNOOP |
        (DEFAULT_READ_REQUEST_FIELD << DEVCTL_MAX_READ_REQUEST_SIZE_SHIFT),
      DEVCTL_CORRECTABLE_ERROR_REPORTING |
        DEVCTL_NON_FATAL_ERROR_REPORTING |
        DEVCTL_FATAL_ERROR_REPORTING |
        DEVCTL_UNSUPPORTED_REQUEST_REPORTING |
        DEVCTL_ENABLE_RELAXED_ORDERING |
        (7 << DEVCTL_MAX_PAYLOAD_SIZE_SHIFT) |
        (options.extendedTag ? DEVCTL_EXTENDED_TAG_ENABLE : 0) |
        DEVCTL_ENABLE_NO_SNOOP |
        (7 << DEVCTL_MAX_READ_REQUEST_SIZE_SHIFT),
      DEVSTA_WRITE_1_TO_CLEAR,
    );
    config.define(
      this.offset + LINK_CAPABILITIES,
      generation |
        (lanes << LNKCAP_MAX_LINK_WIDTH_SHIFT) |
        LNKCAP_ASPM_OPTIONALITY_COMPLIANCE |
        (isDownstream ? LNKCAP_DATA_LINK_LAYER_ACTIVE_REPORTING : 0) |
        (isDownstream ? LNKCAP_SURPRISE_DOWN_ERROR_REPORTING : 0) |
        ((options.portNumber ?? 0) << LNKCAP_PORT_NUMBER_SHIFT),
      0,
    );
    config.define(
      this.offset + LINK_CONTROL,
      (generation << LNKSTA_CURRENT_LINK_SPEED_SHIFT) |
        // A slot is empty after reset: nothing to have trained with.
        (slot === 0 ? lanes << LNKSTA_NEGOTIATED_LINK_WIDTH_SHIFT : 0),
      LNKCTL_ASPM_CONTROL |
        (isPort ? 0 : LNKCTL_READ_COMPLETION_BOUNDARY) |
        (isDownstream ? LNKCTL_LINK_DISABLE : 0) |
        LNKCTL_COMMON_CLOCK |
        LNKCTL_EXTENDED_SYNCH,
    );
    config.define(
      this.offset + DEVICE_CAPABILITIES_2,
      // The timeout can be switched off, its value cannot be programmed: bits 3:0 are 0.
      (isPort ? 0 : DEVCAP2_COMPLETION_TIMEOUT_DISABLE_SUPPORTED) |
        (options.tenBitTagCompleter ? DEVCAP2_10_BIT_TAG_COMPLETER_SUPPORTED : 0) |
        (options.tenBitTagRequester ? DEVCAP2_10_BIT_TAG_REQUESTER_SUPPORTED : 0),
      0,
    );
    config.define(
      this.offset + DEVICE_CONTROL_2,
      0,
      (isPort ? 0 : DEVCTL2_COMPLETION_TIMEOUT_DISABLE) |
        DEVCTL2_IDO_REQUEST_ENABLE |
        DEVCTL2_IDO_COMPLETION_ENABLE |
        (options.tenBitTagRequester ? DEVCTL2_10_BIT_TAG_REQUESTER_ENABLE : 0),
    );
    // Supported Link Speeds Vector: a bit for each generation up to this one, from bit 1 on.
    config.define(this.offset + LINK_CAPABILITIES_2, (2 ** generation - 1) << 1, 0);
    const equalized = generation >= 3 && slot === 0 ? LNKSTA2_EQUALIZED_8GT : 0;
    config.define(this.offset + LINK_CONTROL_2, generation | equalized, 15);
  }

  /** What software set, but never more than the function supports: 128 … 4096. */
  get maxPayloadBytes(): number {
    const field = (this.#control() >>> DEVCTL_MAX_PAYLOAD_SIZE_SHIFT) & 7;
    return Math.min(128 << field, this.options.maxPayloadBytes);
  }

  /** What software set: 128 … 4096. */
  get maxReadRequestBytes(): number {
    const field = (this.#control() >>> DEVCTL_MAX_READ_REQUEST_SIZE_SHIFT) & 7;
    return Math.min(128 << field, 4096);
  }

  /** 128 or 64 (Link Control). */
  get readCompletionBoundaryBytes(): number {
    const control = this.#config.read32(this.offset + LINK_CONTROL);
    return (control & LNKCTL_READ_COMPLETION_BOUNDARY) !== 0 ? 128 : 64;
  }

  get relaxedOrderingEnabled(): boolean {
    return (this.#control() & DEVCTL_ENABLE_RELAXED_ORDERING) !== 0;
  }

  get noSnoopEnabled(): boolean {
    return (this.#control() & DEVCTL_ENABLE_NO_SNOOP) !== 0;
  }

  get unsupportedRequestReporting(): boolean {
    return (this.#control() & DEVCTL_UNSUPPORTED_REQUEST_REPORTING) !== 0;
  }

  get idoRequestEnabled(): boolean {
    return (this.#control2() & DEVCTL2_IDO_REQUEST_ENABLE) !== 0;
  }

  get idoCompletionEnabled(): boolean {
    return (this.#control2() & DEVCTL2_IDO_COMPLETION_ENABLE) !== 0;
  }

  get completionTimeoutDisabled(): boolean {
    return (this.#control2() & DEVCTL2_COMPLETION_TIMEOUT_DISABLE) !== 0;
  }

  /**
   * Width of the tags the function may put into requests: 5, 8 or 10. With 10, tags 0 to 255 are not
   * used (2.2.6.2), which leaves 768.
   */
  get tagBits(): 5 | 8 | 10 {
    if ((this.#control2() & DEVCTL2_10_BIT_TAG_REQUESTER_ENABLE) !== 0) return 10;
    return (this.#control() & DEVCTL_EXTENDED_TAG_ENABLE) !== 0 ? 8 : 5;
  }

  /** Sets bits of Device Status (`DEVSTA_…_DETECTED`); software clears them by writing 1. */
  setDeviceStatus(bits: number): void {
    this.#config.setBits(this.offset + DEVICE_CONTROL, bits);
  }

  /** Whether the function waits for completions; read by software before it resets or moves it. */
  setTransactionsPending(pending: boolean): void {
    const register = this.offset + DEVICE_CONTROL;
    if (pending) this.#config.setBits(register, DEVSTA_TRANSACTIONS_PENDING);
    else this.#config.clearBits(register, DEVSTA_TRANSACTIONS_PENDING);
  }

  #control(): number {
    return this.#config.read32(this.offset + DEVICE_CONTROL);
  }

  #control2(): number {
    return this.#config.read32(this.offset + DEVICE_CONTROL_2);
  }
}
