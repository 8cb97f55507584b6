/**
 * The receiving end of a byte stream: bytes are put behind those that wait, frames are taken from the
 * front, all in one buffer that stays. So no frame has to be put together from pieces, views of the
 * buffer stay good, and a busy connection leaves nothing to collect.
 */
import { assert } from '#base/assert';
import { FRAME_HEADER_BYTES, MAX_FRAME_BYTES } from './frame-bounds.ts';
import { frameLengthAt } from './frame.ts';

/** A read may bring this much at once. */
const ROOM_BYTES = 64 * 1024;
/** Until a first frame has come: whoever only connects gets no more. */
const FIRST_ROOM_BYTES = 1024;

/** What `nextFrame` returns while the frame is not whole. */
export const NO_FRAME = -1;

export class StreamInput {
  /** Replaced when it has to grow, for a frame larger than usual. */
  bytes = new Uint8Array(FIRST_ROOM_BYTES);
  /** Where the oldest byte not taken lies. */
  begin = 0;
  /** No longer frame is taken. */
  limitBytes = MAX_FRAME_BYTES;
  #end = 0;
  #roomBytes = FIRST_ROOM_BYTES;

  /**
   * Where to put what comes next: at least 1 KiB, once a frame has been taken 64 KiB. Good until the next
   * call of anything here.
   */
  room(): Uint8Array {
    this.#reserve(this.#roomBytes);
    return this.#end === 0 ? this.bytes : this.bytes.subarray(this.#end);
  }

  /** `count` bytes have been put into the room. */
  added(count: number): void {
    assert(count <= this.bytes.length - this.#end, 'more bytes than there was room for');
    this.#end += count;
  }

  /** Adds a copy of `chunk`. */
  append(chunk: Uint8Array): void {
    this.#reserve(chunk.length);
    this.bytes.set(chunk, this.#end);
    this.#end += chunk.length;
  }

  /** Bytes not taken, mostly of a frame that is not whole. */
  get available(): number {
    return this.#end - this.begin;
  }

  /**
   * Length of the frame at `begin` of `bytes`, or `NO_FRAME` while it is not whole. A length no frame
   * can have is returned as it is, as soon as it can be read: nothing more can be taken then.
   */
  nextFrame(): number {
    const { available } = this;
    if (available < FRAME_HEADER_BYTES) return NO_FRAME;
    const length = frameLengthAt(this.bytes, this.begin);
    return length > available && length <= this.limitBytes ? NO_FRAME : length;
  }

  /** Takes the frame at `begin` away; its bytes stay where they are until more come. */
  take(length: number): void {
    this.begin += length;
    this.#roomBytes = ROOM_BYTES;
  }

  /** Forgets what waits. */
  clear(): void {
    this.begin = 0;
    this.#end = 0;
  }

  #reserve(count: number): void {
    const { begin } = this;
    const held = this.#end - begin;
    if (held === 0) {
      this.begin = 0;
      this.#end = 0;
    }
    if (this.bytes.length - this.#end >= count) return;
    const { bytes } = this;
    if (bytes.length - held < count) this.bytes = new Uint8Array(held + count + ROOM_BYTES);
    this.bytes.set(bytes.subarray(begin, begin + held));
    this.begin = 0;
    this.#end = held;
  }
}
