/**
 * The egress queue of a port: encoded TLPs waiting for flow-control credit, in three FIFOs that
 * overtake each other only as the ordering table lets them (PCIe 5.0 base, 2.4.1 and 2.6.1).
 *
 * Who owns what: `OrderedQueue` owns three `ClassRing`s; a ring owns the bytes of one flow class and
 * the metadata beside them. Everything is allocated at construction. Each TLP gets a number when it
 * is committed, counted across the classes; that number is what "earlier" means.
 *
 * What holds: within a class, first in, first out. Posted requests and completions never wait for a
 * non-posted request. Nothing leaves before an earlier posted request still here, unless its own RO
 * or IDO attribute frees it from every one of them. TLPs of different slots have no ordering, but
 * are not told apart: they wait for the same credits anyway.
 */
import { assert } from '#base/assert';
import { ClassRing, type QueueLimits } from './class-ring.ts';
import { OrderingClass, passesPosted } from './ordering.ts';
import { ATTR_ID_BASED_ORDERING, FlowClass } from './tlp.ts';

/** Asked by `next` whether the receiver has room. */
export interface CreditGate {
  allows(flow: FlowClass, payloadBytes: number): boolean;
}

/** Where to encode to. The object is reused by the next `reserve`. */
export interface Reservation {
  readonly buffer: Uint8Array;
  readonly offset: number;
}

/** What the queue keeps beside the bytes of a TLP. */
export interface EntryMetadata {
  slot: number;
  generation: number;
  /** Payload bytes, for credits; the encoded length is given to `commit` by `reserve`. */
  payloadBytes: number;
  /** A non-posted request that carries data (ordering row C) or does not (row B). */
  ordering: OrderingClass;
  /** Attr[2:0], as in `Tlp`. */
  attributes: number;
  /** Requester ID of a request, completer ID of a completion. */
  sourceId: number;
  /** Free for the queue's user: what the entry is when it is not a TLP. */
  mark: number;
}

/** The head of a class, as `peek` shows it. The object is reused by the next `peek`. */
export interface QueueEntry extends Readonly<EntryMetadata> {
  readonly flow: FlowClass;
  /** Counts commits across the classes, from 0. */
  readonly order: number;
  readonly buffer: Uint8Array;
  readonly offset: number;
  readonly length: number;
}

class Entry implements QueueEntry {
  flow: FlowClass = FlowClass.POSTED;
  order = 0;
  buffer: Uint8Array = new Uint8Array(0);
  offset = 0;
  length = 0;
  slot = 0;
  generation = 0;
  payloadBytes = 0;
  ordering: OrderingClass = OrderingClass.POSTED;
  attributes = 0;
  sourceId = 0;
  mark = 0;
}

export class OrderedQueue {
  readonly #posted: ClassRing;
  readonly #nonPosted: ClassRing;
  readonly #completion: ClassRing;
  readonly #entry = new Entry();
  readonly #reservation: { buffer: Uint8Array; offset: number };
  #reservedFlow: FlowClass | -1 = -1;
  #reservedBytes = 0;
  #nextOrder = 0;

  /** Limits for posted, non-posted, completion, as `FlowClass` numbers them. */
  constructor(limits: readonly [QueueLimits, QueueLimits, QueueLimits]) {
    this.#posted = new ClassRing(limits[0]);
    this.#nonPosted = new ClassRing(limits[1]);
    this.#completion = new ClassRing(limits[2]);
    this.#reservation = { buffer: this.#posted.bytes, offset: 0 };
  }

  /** Whether `reserve` of this many bytes would succeed now. */
  hasRoom(flow: FlowClass, bytes: number): boolean {
    return this.#ring(flow).place(bytes) >= 0;
  }

  /**
   * Room for one TLP of `bytes` encoded bytes (a multiple of 4), in one piece. Only after `hasRoom`.
   * Nothing is queued until `commit`; a second `reserve` forgets the first.
   */
  reserve(flow: FlowClass, bytes: number): Reservation {
    assert(bytes > 0 && (bytes & 3) === 0, 'a TLP is a whole number of double words');
    const ring = this.#ring(flow);
    const offset = ring.place(bytes);
    assert(offset >= 0, 'no room in the queue: hasRoom must be asked first');
    this.#reservedFlow = flow;
    this.#reservedBytes = bytes;
    this.#reservation.buffer = ring.bytes;
    this.#reservation.offset = offset;
    return this.#reservation;
  }

  /** Queues what was written to the last `reserve`, behind everything committed so far. */
  commit(
    slot: number,
    generation: number,
    payloadBytes: number,
    ordering: OrderingClass,
    attributes: number,
    sourceId: number,
    mark = 0,
  ): void {
    const flow = this.#reservedFlow;
    assert(flow !== -1, 'commit without reserve');
    this.#reservedFlow = -1;
    const ring = this.#ring(flow);
    const offset = this.#reservation.offset;
    const position = ring.position(ring.count);
    ring.orders[position] = this.#nextOrder++;
    ring.offsets[position] = offset;
    ring.lengths[position] = this.#reservedBytes;
    ring.slots[position] = slot;
    ring.generations[position] = generation;
    ring.payloads[position] = payloadBytes;
    ring.orderings[position] = ordering;
    ring.attributes[position] = attributes;
    ring.sources[position] = sourceId;
    ring.marks[position] = mark;
    ring.tail = offset + this.#reservedBytes;
    ring.queuedBytes += this.#reservedBytes;
    ring.count++;
  }

  /**
   * The class whose head is to leave next, or −1 when nothing can: the oldest of the three heads
   * that the gate has credit for and that no earlier posted request holds back. Changes nothing.
   */
  next(gate: CreditGate): FlowClass | -1 {
    let best: FlowClass | -1 = -1;
    let bestOrder = Infinity;
    const posted = this.#posted;
    if (posted.count > 0) {
      if (gate.allows(FlowClass.POSTED, posted.payloads[posted.head] as number)) {
        best = FlowClass.POSTED;
        bestOrder = posted.orders[posted.head] as number;
      }
    }
    const completion = this.#completion;
    if (completion.count > 0) {
      const order = completion.orders[completion.head] as number;
      if (
        order < bestOrder &&
        !this.#heldByPosted(completion, order) &&
        gate.allows(FlowClass.COMPLETION, completion.payloads[completion.head] as number)
      ) {
        best = FlowClass.COMPLETION;
        bestOrder = order;
      }
    }
    const nonPosted = this.#nonPosted;
    if (nonPosted.count > 0) {
      const order = nonPosted.orders[nonPosted.head] as number;
      if (
        order < bestOrder &&
        !this.#heldByPosted(nonPosted, order) &&
        gate.allows(FlowClass.NON_POSTED, nonPosted.payloads[nonPosted.head] as number)
      ) {
        best = FlowClass.NON_POSTED;
      }
    }
    return best;
  }

  /** The oldest TLP of a class, which must not be empty. Good until the next call on the queue. */
  peek(flow: FlowClass): QueueEntry {
    const ring = this.#ring(flow);
    assert(ring.count > 0, 'peek into an empty queue');
    const entry = this.#entry;
    const head = ring.head;
    entry.flow = flow;
    entry.order = ring.orders[head] as number;
    entry.buffer = ring.bytes;
    entry.offset = ring.offsets[head] as number;
    entry.length = ring.lengths[head] as number;
    entry.slot = ring.slots[head] as number;
    entry.generation = ring.generations[head] as number;
    entry.payloadBytes = ring.payloads[head] as number;
    entry.ordering = ring.orderings[head] as OrderingClass;
    entry.attributes = ring.attributes[head] as number;
    entry.sourceId = ring.sources[head] as number;
    entry.mark = ring.marks[head] as number;
    return entry;
  }

  /** Drops the oldest TLP of a class, which must not be empty; its bytes may be overwritten. */
  pop(flow: FlowClass): void {
    const ring = this.#ring(flow);
    assert(ring.count > 0, 'pop from an empty queue');
    ring.queuedBytes -= ring.lengths[ring.head] as number;
    ring.head = ring.position(1);
    ring.count--;
    if (ring.count === 0) ring.clear();
  }

  /** TLPs waiting, in one class or in all. */
  count(flow?: FlowClass): number {
    if (flow !== undefined) return this.#ring(flow).count;
    return this.#posted.count + this.#nonPosted.count + this.#completion.count;
  }

  /** Encoded bytes waiting in a class. */
  queuedBytes(flow: FlowClass): number {
    return this.#ring(flow).queuedBytes;
  }

  /** Forgets everything; order numbers go on. */
  clear(): void {
    this.#posted.clear();
    this.#nonPosted.clear();
    this.#completion.clear();
    this.#reservedFlow = -1;
  }

  /** Whether a posted request committed before `order` keeps the head of `ring` back. */
  #heldByPosted(ring: ClassRing, order: number): boolean {
    const posted = this.#posted;
    if (posted.count === 0 || (posted.orders[posted.head] as number) > order) return false;
    const ordering = ring.orderings[ring.head] as OrderingClass;
    const attributes = ring.attributes[ring.head] as number;
    const sourceId = ring.sources[ring.head] as number;
    // Without IDO the answer is the same for every posted request: the head stands for all.
    const limit = (attributes & ATTR_ID_BASED_ORDERING) === 0 ? 1 : posted.count;
    for (let index = 0; index < limit; index++) {
      const position = posted.position(index);
      if ((posted.orders[position] as number) > order) return false;
      const requesterId = posted.sources[position] as number;
      if (!passesPosted(ordering, attributes, false, sourceId, requesterId)) return true;
    }
    return false;
  }

  #ring(flow: FlowClass): ClassRing {
    if (flow === FlowClass.POSTED) return this.#posted;
    return flow === FlowClass.NON_POSTED ? this.#nonPosted : this.#completion;
  }
}
