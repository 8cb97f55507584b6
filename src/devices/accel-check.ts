/** What a command must satisfy before the accelerator starts it. */
import {
  type AccelCommand,
  FLAG_ACCUMULATE,
  FLAG_FENCE,
  KNOWN_FLAGS,
  MAX_KERNEL_FLOPS,
  Opcode,
} from './accel-command.ts';
import { AccelError, EVENT_COUNT } from './accel-registers.ts';
import { HOST_ADDRESS_END } from './device-model.ts';

/**
 * Checks one command after another against a device memory of `memoryBytes`. When `check` finds
 * an error, `faultAddress` holds the operand it is about, or 0.
 */
export class CommandChecker {
  faultAddress = 0;
  readonly #memoryBytes: number;

  constructor(memoryBytes: number) {
    this.#memoryBytes = memoryBytes;
  }

  check(command: Readonly<AccelCommand>): AccelError {
    this.faultAddress = 0;
    const { opcode, flags } = command;
    if ((flags & ~KNOWN_FLAGS) !== 0) return AccelError.BAD_COMMAND;
    if ((flags & FLAG_ACCUMULATE) !== 0 && opcode !== Opcode.SGEMM) return AccelError.BAD_COMMAND;
    if ((flags & FLAG_FENCE) !== 0) {
      if (command.fenceAddress % 8 !== 0) {
        return this.#fault(AccelError.MISALIGNED, command.fenceAddress);
      }
      const error = this.#host(command.fenceAddress, 8);
      if (error !== AccelError.NONE) return error;
    }
    return this.#checkOperands(command);
  }

  #checkOperands(command: Readonly<AccelCommand>): AccelError {
    const { operand0, operand1, operand2 } = command;
    switch (command.opcode) {
      case Opcode.NOP:
        return AccelError.NONE;
      case Opcode.EVENT_SIGNAL:
      case Opcode.EVENT_WAIT:
        return operand0 < EVENT_COUNT ? AccelError.NONE : AccelError.OUT_OF_RANGE;
      case Opcode.COPY_HTOD:
        return this.#host(operand0, operand2) || this.#device(operand1, operand2);
      case Opcode.COPY_DTOH:
        return this.#device(operand0, operand2) || this.#host(operand1, operand2);
      case Opcode.COPY_DTOD:
        return this.#device(operand0, operand2) || this.#device(operand1, operand2);
      case Opcode.FILL:
        return this.#words(operand1, operand2);
      case Opcode.SAXPY:
        if (2 * operand2 > MAX_KERNEL_FLOPS) return AccelError.TOO_LARGE;
        return this.#words(operand0, operand2) || this.#words(operand1, operand2);
      case Opcode.SGEMM:
        return this.#checkSgemm(command);
      default:
        return AccelError.BAD_COMMAND;
    }
  }

  #checkSgemm(command: Readonly<AccelCommand>): AccelError {
    const { operand0: a, operand1: b, operand2: c, m, n, k } = command;
    if (2 * m * n * k > MAX_KERNEL_FLOPS) return AccelError.TOO_LARGE;
    const error = this.#words(a, m * k) || this.#words(b, k * n) || this.#words(c, m * n);
    if (error !== AccelError.NONE) return error;
    if (overlap(c, m * n, a, m * k) || overlap(c, m * n, b, k * n)) {
      return this.#fault(AccelError.OVERLAP, c);
    }
    return AccelError.NONE;
  }

  #words(address: number, count: number): AccelError {
    if (address % 4 !== 0) return this.#fault(AccelError.MISALIGNED, address);
    return this.#device(address, 4 * count);
  }

  #device(address: number, bytes: number): AccelError {
    if (address + bytes <= this.#memoryBytes) return AccelError.NONE;
    return this.#fault(AccelError.OUT_OF_RANGE, address);
  }

  #host(address: number, bytes: number): AccelError {
    if (address + bytes < HOST_ADDRESS_END) return AccelError.NONE;
    return this.#fault(AccelError.OUT_OF_RANGE, address);
  }

  #fault(error: AccelError, address: number): AccelError {
    this.faultAddress = address;
    return error;
  }
}

/** Whether two ranges of words, at byte addresses, share a word. */
function overlap(left: number, leftWords: number, right: number, rightWords: number): boolean {
  return (
    leftWords > 0 && rightWords > 0 && left < right + 4 * rightWords && right < left + 4 * leftWords
  );
}
