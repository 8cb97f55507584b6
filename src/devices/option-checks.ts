/** What device models check of their options. Every failure is a `DxpuError` `invalid_argument`. */
import { assert } from '#base/assert';
import { DxpuError } from '#base/errors';

const UUID_PATTERN = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

export class OptionChecks {
  readonly #model: string;

  /** `model` begins each message. */
  constructor(model: string) {
    this.#model = model;
  }

  invalid(message: string): DxpuError {
    return new DxpuError('invalid_argument', `${this.#model}: ${message}`);
  }

  integer(name: string, value: number, low: number, high: number): void {
    if (!Number.isInteger(value) || value < low || value > high) {
      throw this.invalid(`${name} must be a whole number from ${low} to ${high}: ${value}`);
    }
  }

  powerOfTwo(name: string, value: number, low: number, high: number): void {
    if (!Number.isInteger(Math.log2(value)) || value < low || value > high) {
      throw this.invalid(`${name} must be a power of two from ${low} to ${high}: ${value}`);
    }
  }

  /** The 16 bytes of a UUID in the order they are written. */
  uuid(uuid: string): Uint8Array {
    if (!UUID_PATTERN.test(uuid)) {
      throw this.invalid(`uuid must be lower-case hexadecimal, 8-4-4-4-12: ${uuid}`);
    }
    const bytes = new Uint8Array(16);
    const digits = uuid.replaceAll('-', '');
    for (let i = 0; i < 16; i++) bytes[i] = Number.parseInt(digits.slice(2 * i, 2 * i + 2), 16);
    return bytes;
  }
}

/** The device serial number a model has unless it is told another: the first eight bytes of its UUID. */
export function serialOf(uuidBytes: Uint8Array): bigint {
  assert(uuidBytes.length === 16, 'a UUID has 16 bytes');
  return new DataView(uuidBytes.buffer).getBigUint64(0);
}
