/**
 * Messages from a stream, half ones included. The caller asks what is `wanted`, receives no more than
 * that, and says how much came: so nothing of the next message is read early, and descriptors that come
 * with any byte of a message belong to it.
 */
import { assert } from '#base/assert';
import { HEADER_BYTES, messageSize, viewOf } from './message.ts';

const FIRST_BUFFER_BYTES = 4096;

export type Assembled = 'more' | 'message' | 'bad-size';

export class MessageAssembler {
  /** The longest message taken; may be changed between messages. */
  limitBytes: number;
  #bytes = new Uint8Array(new ArrayBuffer(FIRST_BUFFER_BYTES));
  #view = viewOf(this.#bytes);
  #have = 0;
  #size = HEADER_BYTES;

  constructor(limitBytes: number) {
    this.limitBytes = limitBytes;
  }

  /** Where the next bytes go, at `offset`. */
  get buffer(): Uint8Array {
    return this.#bytes;
  }

  get offset(): number {
    return this.#have;
  }

  /** How many bytes to receive next, at most. Never 0. */
  get wanted(): number {
    return this.#size - this.#have;
  }

  /** Some bytes of a message have come, but not all. */
  get isMidway(): boolean {
    return this.#have > 0;
  }

  /**
   * `count` bytes have come. On `message` it is whole: call `take`. On `bad-size` the header states a
   * length that cannot be, and the stream has lost its boundaries; `take` gives the header.
   */
  received(count: number): Assembled {
    assert(count > 0 && count <= this.wanted, 'no more than was wanted');
    this.#have += count;
    if (this.#have < this.#size) return 'more';
    if (this.#size > HEADER_BYTES) return 'message';
    const size = messageSize(this.#view, 0);
    if (size < HEADER_BYTES || size > this.limitBytes) return 'bad-size';
    if (size === HEADER_BYTES) return 'message';
    this.#size = size;
    if (size > this.#bytes.length) this.#grow(size);
    return 'more';
  }

  /** The whole message, good until the next bytes are received. */
  take(): Uint8Array {
    const message = this.#bytes.subarray(0, this.#have);
    this.#have = 0;
    this.#size = HEADER_BYTES;
    return message;
  }

  #grow(size: number): void {
    const bytes = new Uint8Array(new ArrayBuffer(2 ** Math.ceil(Math.log2(size))));
    bytes.set(this.#bytes.subarray(0, this.#have));
    this.#bytes = bytes;
    this.#view = viewOf(bytes);
  }
}
