/**
 * Advanced error reporting extended capability, version 2, as an endpoint has it (PCIe 5.0 base,
 * 7.8.4 and 6.2): status, mask and severity of each error, and the header of the first TLP that
 * caused an uncorrectable one.
 */
import { assert } from '#base/assert';
import type { ConfigSpace } from './config-space.ts';

export const AER_CAPABILITY_ID = 0x0001;
export const AER_CAPABILITY_BYTES = 0x2c;

export const UNCORRECTABLE_ERROR_STATUS = 0x04;
export const UNCORRECTABLE_ERROR_MASK = 0x08;
export const UNCORRECTABLE_ERROR_SEVERITY = 0x0c;
export const CORRECTABLE_ERROR_STATUS = 0x10;
export const CORRECTABLE_ERROR_MASK = 0x14;
export const AER_CAPABILITIES_AND_CONTROL = 0x18;
export const HEADER_LOG = 0x1c;

/** Bit numbers in the three uncorrectable error registers. */
export const UncorrectableError = {
  DATA_LINK_PROTOCOL: 4,
  SURPRISE_DOWN: 5,
  POISONED_TLP: 12,
  FLOW_CONTROL_PROTOCOL: 13,
  COMPLETION_TIMEOUT: 14,
  COMPLETER_ABORT: 15,
  UNEXPECTED_COMPLETION: 16,
  RECEIVER_OVERFLOW: 17,
  MALFORMED_TLP: 18,
  ECRC: 19,
  UNSUPPORTED_REQUEST: 20,
  INTERNAL: 22,
} as const;
export type UncorrectableError = (typeof UncorrectableError)[keyof typeof UncorrectableError];

/** Bit numbers in the two correctable error registers. */
export const CorrectableError = {
  RECEIVER: 0,
  BAD_TLP: 6,
  BAD_DLLP: 7,
  REPLAY_NUM_ROLLOVER: 8,
  REPLAY_TIMER_TIMEOUT: 12,
  ADVISORY_NON_FATAL: 13,
  CORRECTED_INTERNAL: 14,
  HEADER_LOG_OVERFLOW: 15,
} as const;
export type CorrectableError = (typeof CorrectableError)[keyof typeof CorrectableError];

// Bits of Advanced Error Capabilities and Control.
export const AER_FIRST_ERROR_POINTER = 0x1f;
export const AER_ECRC_GENERATION_CAPABLE = 1 << 5;
export const AER_ECRC_GENERATION_ENABLE = 1 << 6;
export const AER_ECRC_CHECK_CAPABLE = 1 << 7;
export const AER_ECRC_CHECK_ENABLE = 1 << 8;

/** Which message, if any, an error is to be reported with; Device Control decides whether it is. */
export const ErrorReport = { NONE: 0, CORRECTABLE: 1, NON_FATAL: 2, FATAL: 3 } as const;
export type ErrorReport = (typeof ErrorReport)[keyof typeof ErrorReport];

/** Fatal after reset (7.8.4.4): DLP, Surprise Down, FC Protocol, Overflow, Malformed, Internal. */
const DEFAULT_SEVERITY = bits(
  UncorrectableError.DATA_LINK_PROTOCOL,
  UncorrectableError.SURPRISE_DOWN,
  UncorrectableError.FLOW_CONTROL_PROTOCOL,
  UncorrectableError.RECEIVER_OVERFLOW,
  UncorrectableError.MALFORMED_TLP,
  UncorrectableError.INTERNAL,
);
/** Masked after reset (7.8.4.3). */
const DEFAULT_UNCORRECTABLE_MASK = bits(UncorrectableError.INTERNAL);
/** Masked after reset (7.8.4.6). */
const DEFAULT_CORRECTABLE_MASK = bits(
  CorrectableError.ADVISORY_NON_FATAL,
  CorrectableError.CORRECTED_INTERNAL,
  CorrectableError.HEADER_LOG_OVERFLOW,
);

export interface AerOptions {
  /** Whether the function can append and check ECRCs (software enables it). */
  readonly ecrc: boolean;
}

export class AdvancedErrorReporting {
  readonly offset: number;
  readonly #config: ConfigSpace;

  constructor(config: ConfigSpace, options: AerOptions) {
    const uncorrectable = bits(...Object.values(UncorrectableError));
    const correctable = bits(...Object.values(CorrectableError));
    this.#config = config;
    this.offset = config.addExtendedCapability(AER_CAPABILITY_ID, 2, AER_CAPABILITY_BYTES);
    config.define(this.offset + UNCORRECTABLE_ERROR_STATUS, 0, 0, uncorrectable);
    config.define(
      this.offset + UNCORRECTABLE_ERROR_MASK,
      DEFAULT_UNCORRECTABLE_MASK,
      uncorrectable,
    );
    config.define(this.offset + UNCORRECTABLE_ERROR_SEVERITY, DEFAULT_SEVERITY, uncorrectable);
    config.define(this.offset + CORRECTABLE_ERROR_STATUS, 0, 0, correctable);
    config.define(this.offset + CORRECTABLE_ERROR_MASK, DEFAULT_CORRECTABLE_MASK, correctable);
    config.define(
      this.offset + AER_CAPABILITIES_AND_CONTROL,
      options.ecrc ? AER_ECRC_GENERATION_CAPABLE | AER_ECRC_CHECK_CAPABLE : 0,
      options.ecrc ? AER_ECRC_GENERATION_ENABLE | AER_ECRC_CHECK_ENABLE : 0,
    );
    for (let dw = 0; dw < 4; dw++) config.define(this.offset + HEADER_LOG + 4 * dw, 0, 0);
  }

  /**
   * Records an uncorrectable error: its status bit, and, unless it is masked or an earlier error's
   * header is still there, the First Error Pointer and the header log. `header` is the offending TLP
   * from `headerOffset` on (its 12 or 16 header bytes count), or `undefined` for an error without one.
   */
  logUncorrectable(error: UncorrectableError, header?: Uint8Array, headerOffset = 0): ErrorReport {
    const masked = this.#isSet(UNCORRECTABLE_ERROR_MASK, error);
    // A masked error shows in its status bit alone (6.2.3.2.2).
    if (!masked) this.#logHeader(error, header, headerOffset);
    this.#config.setBits(this.offset + UNCORRECTABLE_ERROR_STATUS, 1 << error);
    if (masked) return ErrorReport.NONE;
    return this.#isSet(UNCORRECTABLE_ERROR_SEVERITY, error)
      ? ErrorReport.FATAL
      : ErrorReport.NON_FATAL;
  }

  /**
   * Records an uncorrectable error that somebody else will deal with (6.2.3.2.4): a function that
   * answers a non-posted request with UR or CA leaves the reporting to the requester. One whose
   * severity is fatal is recorded as by `logUncorrectable`.
   */
  logAdvisory(error: UncorrectableError, header?: Uint8Array, headerOffset = 0): ErrorReport {
    if (this.#isSet(UNCORRECTABLE_ERROR_SEVERITY, error)) {
      return this.logUncorrectable(error, header, headerOffset);
    }
    const report = this.logCorrectable(CorrectableError.ADVISORY_NON_FATAL);
    if (report !== ErrorReport.NONE) this.logUncorrectable(error, header, headerOffset);
    return report;
  }

  /** Records a correctable error. */
  logCorrectable(error: CorrectableError): ErrorReport {
    this.#config.setBits(this.offset + CORRECTABLE_ERROR_STATUS, 1 << error);
    return this.#isSet(CORRECTABLE_ERROR_MASK, error) ? ErrorReport.NONE : ErrorReport.CORRECTABLE;
  }

  /** Bit number of the first uncorrectable error not yet cleared, or −1. */
  get firstError(): number {
    const pointer =
      this.#config.read32(this.offset + AER_CAPABILITIES_AND_CONTROL) & AER_FIRST_ERROR_POINTER;
    return this.#isSet(UNCORRECTABLE_ERROR_STATUS, pointer) ? pointer : -1;
  }

  /** Severity of an uncorrectable error, as software has set it. */
  isFatal(error: UncorrectableError): boolean {
    return this.#isSet(UNCORRECTABLE_ERROR_SEVERITY, error);
  }

  get ecrcGenerationEnabled(): boolean {
    const control = this.#config.read32(this.offset + AER_CAPABILITIES_AND_CONTROL);
    return (control & AER_ECRC_GENERATION_ENABLE) !== 0;
  }

  get ecrcCheckEnabled(): boolean {
    const control = this.#config.read32(this.offset + AER_CAPABILITIES_AND_CONTROL);
    return (control & AER_ECRC_CHECK_ENABLE) !== 0;
  }

  #logHeader(error: UncorrectableError, header: Uint8Array | undefined, at: number): void {
    // The pointer is valid, and the log taken, while the status bit it names is set (6.2.4.2).
    if (this.firstError >= 0) {
      if (header !== undefined) this.logCorrectable(CorrectableError.HEADER_LOG_OVERFLOW);
      return;
    }
    const control = this.offset + AER_CAPABILITIES_AND_CONTROL;
    this.#config.clearBits(control, AER_FIRST_ERROR_POINTER);
    this.#config.setBits(control, error);
    for (let dw = 0; dw < 4; dw++) {
      this.#config.set32(
        this.offset + HEADER_LOG + 4 * dw,
        header === undefined ? 0 : headerWord(header, at, dw),
      );
    }
  }

  #isSet(register: number, bit: number): boolean {
    return ((this.#config.read32(this.offset + register) >>> bit) & 1) !== 0;
  }
}

/** Header byte 0 is in bits 31:24 of the first log register, as headers are drawn (7.8.4.8). */
function headerWord(header: Uint8Array, offset: number, dw: number): number {
  // Fmt[0] says whether there is a fourth word; what follows a shorter header is not logged.
  if (dw === 3 && ((header[offset] ?? 0) & 0x20) === 0) return 0;
  const at = offset + 4 * dw;
  let word = 0;
  for (let byte = 0; byte < 4; byte++) word = word * 256 + (header[at + byte] ?? 0);
  return word;
}

function bits(...numbers: number[]): number {
  let word = 0;
  for (const number of numbers) {
    assert(number >= 0 && number < 32, `not a bit number: ${number}`);
    word += 2 ** number;
  }
  return word;
}
