/** The options that models share, and checks of options. Every failure is a `DxpuError` `invalid_argument`. */
import { DxpuError } from '#base/errors';
import { MAX_EDID_HEIGHT, MAX_EDID_WIDTH } from './edid.ts';

/** Options of every model. */
export interface ModelOptions {
  /** Lower-case 8-4-4-4-12. */
  readonly uuid: string;
  /** Device serial number (DSN capability), 64 bits. Default: the first eight bytes of the UUID. */
  readonly serial?: bigint;
  /** Default: the name of the kind, which the model says. */
  readonly model?: string;
  /** Largest Max_Payload_Size supported, a power of two from 128 to 4096. Default 512. */
  readonly maxPayloadBytes?: number;
  /** Told of accesses to unknown registers, and of what else the model says. */
  readonly log?: (message: string) => void;
}

/** Options of models that read host memory by DMA. */
export interface DmaOptions {
  /** DMA reads the function can have outstanding, 1 to 768. Default 256. */
  readonly tags?: number;
  /** Bounds Max_Read_Request_Size as the host sets it. Default 4096. */
  readonly maxReadRequestBytes?: number;
  /** Default 4 s. */
  readonly completionTimeoutNs?: number;
}

/** The preferred mode of a display. */
export interface ModeOptions {
  /** In pixels: 64 to 3840, 64 to 2160. Default 1024 × 768. */
  readonly width?: number;
  readonly height?: number;
}

/** Smaller modes are not shown. */
export const LEAST_PIXELS = 64;

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

  /** What the `Endpoint` of any model is told. */
  endpoint(options: ModelOptions): { serial: bigint; maxPayloadBytes: number } {
    const { maxPayloadBytes = 512 } = options;
    this.powerOfTwo('maxPayloadBytes', maxPayloadBytes, 128, 4096);
    const uuidBytes = this.uuid(options.uuid);
    const serial = options.serial ?? new DataView(uuidBytes.buffer).getBigUint64(0);
    return { serial, maxPayloadBytes };
  }

  /** What the `Endpoint` of a model with DMA is told besides. */
  dma(options: DmaOptions): Required<DmaOptions> {
    const { tags = 256, maxReadRequestBytes = 4096, completionTimeoutNs = 4e9 } = options;
    this.integer('tags', tags, 1, 768);
    this.powerOfTwo('maxReadRequestBytes', maxReadRequestBytes, 128, 4096);
    if (!(completionTimeoutNs > 0 && completionTimeoutNs < Infinity)) {
      throw this.invalid(`completionTimeoutNs must be a number above 0: ${completionTimeoutNs}`);
    }
    return { tags, maxReadRequestBytes, completionTimeoutNs };
  }

  /** A mode an EDID can show, of which `memoryBytes` hold a picture. */
  mode(options: ModeOptions, memoryBytes: number): Required<ModeOptions> {
    const { width = 1024, height = 768 } = options;
    this.integer('width', width, LEAST_PIXELS, MAX_EDID_WIDTH);
    this.integer('height', height, LEAST_PIXELS, MAX_EDID_HEIGHT);
    const bytes = 4 * width * height;
    if (bytes > memoryBytes) {
      throw this.invalid(
        `memoryBytes must hold a picture of ${width} x ${height}, ${bytes} bytes: ${memoryBytes}`,
      );
    }
    return { width, height };
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
