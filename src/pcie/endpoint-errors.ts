/**
 * What goes wrong at an endpoint, told where software looks for it: AER, Device Status, the Status
 * register, and counters. It answers nothing.
 */
import { type AdvancedErrorReporting, UncorrectableError } from './aer.ts';
import {
  type ConfigSpace,
  STATUS_DETECTED_PARITY_ERROR,
  STATUS_RECEIVED_MASTER_ABORT,
  STATUS_RECEIVED_TARGET_ABORT,
  STATUS_SIGNALED_TARGET_ABORT,
} from './config-space.ts';
import { DmaStatus } from './endpoint-transfer.ts';
import {
  DEVSTA_CORRECTABLE_ERROR_DETECTED,
  DEVSTA_FATAL_ERROR_DETECTED,
  DEVSTA_NON_FATAL_ERROR_DETECTED,
  DEVSTA_UNSUPPORTED_REQUEST_DETECTED,
  type PcieCapability,
} from './pcie-capability.ts';
import { FlowClass, flowClassOf, type Tlp } from './tlp.ts';
import { encodeTlp, MAX_TLP_BYTES } from './tlp-codec.ts';

/** What came that should not have. */
export class EndpointCounters {
  unsupportedRequests = 0;
  completerAborts = 0;
  poisoned = 0;
  unexpectedCompletions = 0;
  /** Payloads above Max_Payload_Size (2.2.2). Whatever else is malformed is found before. */
  malformed = 0;
}

export class EndpointErrors {
  readonly counters = new EndpointCounters();
  readonly #config: ConfigSpace;
  readonly #pcie: PcieCapability;
  readonly #aer: AdvancedErrorReporting;
  readonly #header = new Uint8Array(MAX_TLP_BYTES);

  constructor(config: ConfigSpace, pcie: PcieCapability, aer: AdvancedErrorReporting) {
    this.#config = config;
    this.#pcie = pcie;
    this.#aer = aer;
  }

  malformed(tlp: Tlp): void {
    this.counters.malformed++;
    this.#log(UncorrectableError.MALFORMED_TLP, tlp, false);
  }

  unexpectedCompletion(tlp: Tlp): void {
    this.counters.unexpectedCompletions++;
    this.#log(UncorrectableError.UNEXPECTED_COMPLETION, tlp, true);
  }

  poisonedRequest(tlp: Tlp): void {
    this.counters.poisoned++;
    this.#log(UncorrectableError.POISONED_TLP, tlp, isAnswered(tlp));
    this.#config.setStatus(STATUS_DETECTED_PARITY_ERROR);
  }

  unsupportedRequest(tlp: Tlp): void {
    this.counters.unsupportedRequests++;
    this.#pcie.setDeviceStatus(DEVSTA_UNSUPPORTED_REQUEST_DETECTED);
    this.#log(UncorrectableError.UNSUPPORTED_REQUEST, tlp, isAnswered(tlp));
  }

  completerAbort(tlp: Tlp): void {
    this.counters.completerAborts++;
    this.#config.setStatus(STATUS_SIGNALED_TARGET_ABORT);
    this.#log(UncorrectableError.COMPLETER_ABORT, tlp, true);
  }

  /** How a request of the endpoint's own ended. */
  dma(status: DmaStatus): void {
    switch (status) {
      case DmaStatus.OK:
        break;
      case DmaStatus.UNSUPPORTED:
        this.#config.setStatus(STATUS_RECEIVED_MASTER_ABORT);
        break;
      case DmaStatus.ABORTED:
        this.#config.setStatus(STATUS_RECEIVED_TARGET_ABORT);
        break;
      case DmaStatus.TIMEOUT:
        this.#aer.logUncorrectable(UncorrectableError.COMPLETION_TIMEOUT);
        this.#pcie.setDeviceStatus(DEVSTA_NON_FATAL_ERROR_DETECTED);
        break;
      case DmaStatus.POISONED:
        this.counters.poisoned++;
        this.#aer.logUncorrectable(UncorrectableError.POISONED_TLP);
        this.#config.setStatus(STATUS_DETECTED_PARITY_ERROR);
        this.#pcie.setDeviceStatus(DEVSTA_NON_FATAL_ERROR_DETECTED);
        break;
    }
  }

  /** Logs an error about `tlp`; advisory when somebody else will report it (6.2.3.2.4). */
  #log(error: UncorrectableError, tlp: Tlp, advisory: boolean): void {
    encodeTlp(tlp, this.#header, 0);
    if (advisory) this.#aer.logAdvisory(error, this.#header);
    else this.#aer.logUncorrectable(error, this.#header);
    const fatal = this.#aer.isFatal(error);
    const serious = fatal ? DEVSTA_FATAL_ERROR_DETECTED : DEVSTA_NON_FATAL_ERROR_DETECTED;
    // An advisory error is one of severity non-fatal (6.2.3.2.4).
    const mild = advisory && !fatal;
    this.#pcie.setDeviceStatus(mild ? DEVSTA_CORRECTABLE_ERROR_DETECTED : serious);
  }
}

/** Whether a request is to be answered, so that its requester can report what is wrong with it. */
export function isAnswered(tlp: Tlp): boolean {
  return flowClassOf(tlp.kind) === FlowClass.NON_POSTED;
}
