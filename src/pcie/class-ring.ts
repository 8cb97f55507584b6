/**
 * The storage of one flow class in an `OrderedQueue`, which alone uses it: a byte ring of encoded
 * TLPs and, beside it, rings of what the queue must know about each. Everything is allocated here.
 */
import { assert } from '#base/assert';

/** Room for TLPs of one flow class. */
export interface QueueLimits {
  /** Bytes of encoded TLPs, a multiple of 4; at least the largest TLP. */
  readonly bytes: number;
  readonly entries: number;
}

/** One FIFO: a byte ring whose entries never wrap, and a ring of metadata. */
export class ClassRing {
  readonly bytes: Uint8Array;
  readonly orders: Float64Array;
  readonly generations: Float64Array;
  readonly offsets: Uint32Array;
  readonly lengths: Uint32Array;
  readonly payloads: Uint32Array;
  readonly slots: Uint32Array;
  readonly marks: Uint32Array;
  readonly sources: Uint16Array;
  readonly orderings: Uint8Array;
  readonly attributes: Uint8Array;
  readonly capacity: number;
  /** Ring position of the oldest entry, and how many there are. */
  head = 0;
  count = 0;
  /** Where the next entry would start if it fits before the end, and bytes in live entries. */
  tail = 0;
  queuedBytes = 0;

  constructor(limits: QueueLimits) {
    assert(
      Number.isInteger(limits.bytes) && limits.bytes >= 4 && limits.bytes % 4 === 0,
      `queue bytes must be a positive multiple of 4: ${limits.bytes}`,
    );
    assert(
      Number.isInteger(limits.entries) && limits.entries >= 1,
      `a queue needs at least one entry: ${limits.entries}`,
    );
    this.bytes = new Uint8Array(limits.bytes);
    this.capacity = limits.entries;
    this.orders = new Float64Array(limits.entries);
    this.generations = new Float64Array(limits.entries);
    this.offsets = new Uint32Array(limits.entries);
    this.lengths = new Uint32Array(limits.entries);
    this.payloads = new Uint32Array(limits.entries);
    this.slots = new Uint32Array(limits.entries);
    this.marks = new Uint32Array(limits.entries);
    this.sources = new Uint16Array(limits.entries);
    this.orderings = new Uint8Array(limits.entries);
    this.attributes = new Uint8Array(limits.entries);
  }

  /** Where an entry of `length` bytes would lie, or −1. */
  place(length: number): number {
    if (this.count === this.capacity) return -1;
    if (this.count === 0) return length <= this.bytes.length ? 0 : -1;
    const oldest = this.offsets[this.head] as number;
    // Live bytes run from `oldest` to `tail`, possibly around the end. Equal means full here, for
    // the ring is not empty.
    if (this.tail > oldest) {
      if (this.tail + length <= this.bytes.length) return this.tail;
      return length <= oldest ? 0 : -1;
    }
    return this.tail + length <= oldest ? this.tail : -1;
  }

  /** Ring position of the `index`-th oldest entry. */
  position(index: number): number {
    const position = this.head + index;
    return position < this.capacity ? position : position - this.capacity;
  }

  clear(): void {
    this.head = 0;
    this.count = 0;
    this.tail = 0;
    this.queuedBytes = 0;
  }
}
