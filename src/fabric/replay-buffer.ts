/**
 * Frames sent and not yet acknowledged, in one ring of bytes: a frame is built where it will lie until
 * its acknowledgement, so nothing is copied and nothing is allocated. As acknowledgements are
 * cumulative, space comes free in the order it was taken.
 *
 * Three marks, each a sequence number: `base` ≤ `cursor` ≤ `next`. Frames below `base` are
 * acknowledged and gone; `cursor` is the next to hand to the transport (a replay sets it back to
 * `base`); `next` is the number the frame now being built will have. `sent` is how far the cursor ever
 * came: an acknowledgement beyond it is a lie.
 */
import { assert } from '#base/assert';
import { advance, distance } from './sequence.ts';

export const Ack = { OLD: 0, NEWS: 1, LIE: 2 } as const;
export type Ack = (typeof Ack)[keyof typeof Ack];

export class ReplayBuffer {
  readonly bytes: Uint8Array;
  readonly view: DataView;
  readonly #offsets: Int32Array;
  readonly #lengths: Int32Array;
  readonly #mask: number;
  readonly #maxFrameBytes: number;
  /** Start again at 0 beyond this when there is room: a small working set stays in the cache. */
  readonly #wrapBytes: number;
  base: number;
  cursor: number;
  next: number;
  sent: number;
  /** Where the frame being built begins, or −1. */
  openOffset = -1;
  #head = 0;

  /** `frames` is a power of two; `bytes` at least 4 × `maxFrameBytes`. */
  constructor(bytes: number, frames: number, maxFrameBytes: number, firstSequence: number) {
    assert(frames > 0 && (frames & (frames - 1)) === 0, `not a power of two: ${frames}`);
    assert(bytes >= 4 * maxFrameBytes, 'a replay buffer holds at least four frames');
    const buffer = new ArrayBuffer(bytes);
    // A `Buffer`, whose parts sockets take as they are.
    this.bytes = Buffer.from(buffer);
    this.view = new DataView(buffer);
    this.#offsets = new Int32Array(frames);
    this.#lengths = new Int32Array(frames);
    this.#mask = frames - 1;
    this.#maxFrameBytes = maxFrameBytes;
    this.#wrapBytes = Math.min(bytes >> 1, 8 * maxFrameBytes);
    this.base = firstSequence;
    this.cursor = firstSequence;
    this.next = firstSequence;
    this.sent = firstSequence;
  }

  /** Begins a frame. False when there is no room for one of the largest size. */
  open(): boolean {
    const held = distance(this.next, this.base);
    if (held > this.#mask) return false;
    const offset = this.#place(held);
    if (offset < 0) return false;
    this.openOffset = offset;
    return true;
  }

  #place(held: number): number {
    if (held === 0) return 0;
    const oldest = this.#offsets[this.base & this.#mask] as number;
    const head = this.#head;
    if (head <= oldest) return head + this.#maxFrameBytes <= oldest ? head : -1;
    const fitsAtStart = this.#maxFrameBytes <= oldest;
    // Not before twice of what is held has room there: it bounds what can be held until the next wrap.
    if (head >= this.#wrapBytes && oldest >= 2 * (head - oldest) + this.#maxFrameBytes) return 0;
    if (head + this.#maxFrameBytes <= this.bytes.length) return head;
    return fitsAtStart ? 0 : -1;
  }

  /** Ends the frame being built at `length` bytes; it takes the number `next`. */
  seal(length: number): void {
    assert(this.openOffset >= 0, 'no frame is open');
    assert(length <= this.#maxFrameBytes, 'a frame grew beyond its bound');
    const index = this.next & this.#mask;
    this.#offsets[index] = this.openOffset;
    this.#lengths[index] = length;
    this.#head = this.openOffset + length;
    this.openOffset = -1;
    this.next = advance(this.next);
  }

  offsetOf(sequence: number): number {
    return this.#offsets[sequence & this.#mask] as number;
  }

  lengthOf(sequence: number): number {
    return this.#lengths[sequence & this.#mask] as number;
  }

  /** The frame at the cursor has been handed to the transport. True if never before. */
  passCursor(): boolean {
    this.cursor = advance(this.cursor);
    if (distance(this.cursor, this.sent) <= 0) return false;
    this.sent = this.cursor;
    return true;
  }

  /** Everything below `sequence` has arrived. */
  ack(sequence: number): Ack {
    if (distance(sequence, this.sent) > 0) return Ack.LIE;
    if (distance(sequence, this.base) <= 0) return Ack.OLD;
    this.base = sequence;
    if (distance(this.cursor, sequence) < 0) this.cursor = sequence;
    return Ack.NEWS;
  }

  /** What is not acknowledged is to be sent again, from the oldest on. */
  rewind(): void {
    this.cursor = this.base;
  }

  /** Test only: goes on at `sequence` as if what was sent had never been. */
  forget(sequence: number): void {
    this.base = sequence;
    this.cursor = sequence;
    this.next = sequence;
    this.sent = sequence;
  }

  /** Frames handed to the transport and not acknowledged. */
  get inFlight(): number {
    return distance(this.cursor, this.base);
  }
}
