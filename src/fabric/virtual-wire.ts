/**
 * One direction of a virtual path: which frames are still going out, and those that fly.
 *
 * Only the first of the frames that fly is an event of the clock; the others wait behind it, each with the
 * turn it took when it was sent. So do the ends of frames going out, which are events only while somebody
 * waits for one. What runs, and in which order, is the same as with an event for each.
 *
 * The two ends may live by different clocks (#base/virtual-clock): frames go out by the sender's, and land by
 * the receiver's.
 */
import { assert } from '#base/assert';
import { ClockEvent } from '#base/clock-queue';
import { copyBytes } from '#base/copy-bytes';
import { RingBuffer } from '#base/ring-buffer';
import { Slab, type SlabPlace } from '#base/slab';
import type { Nanos } from '#base/units';
import type { VirtualClock } from '#base/virtual-clock';

/** Takes a frame that has arrived; the bytes are good during the call. */
export type Landing<T> = (
  now: Nanos,
  from: T,
  epoch: number,
  bytes: Uint8Array,
  offset: number,
  length: number,
) => void;

/** A frame that flies, in a record and a place that are used again. */
class Flight<T> implements SlabPlace {
  readonly bytes: Uint8Array;
  /** Where its place begins, and where in it the frame does. */
  readonly offset: number;
  begin = 0;
  /** The logarithm of the bytes its place has. */
  readonly size: number;
  from: T;
  epoch = 0;
  length = 0;
  atNs = 0;
  takenNs = 0;
  turn = 0;

  constructor(place: SlabPlace, size: number, from: T) {
    this.bytes = place.bytes;
    this.offset = place.offset;
    this.size = size;
    this.from = from;
  }
}

/** The end of a frame that goes out; pooled. */
class Departure {
  atNs = 0;
  takenNs = 0;
  turn = 0;
}

const SLAB_BYTES = 1 << 20;

export class VirtualWire<T> {
  /** When the wire is free again. */
  freeAtNs = 0;
  readonly #sender: VirtualClock;
  readonly #receiver: VirtualClock;
  readonly #land: Landing<T>;
  readonly #thinned: (now: Nanos) => void;
  readonly #flying = new RingBuffer<Flight<T>>();
  readonly #arrival = new ClockEvent((now) => this.#arrive(now));
  /** By the logarithm of their size. */
  readonly #free: Flight<T>[][] = Array.from({ length: 32 }, () => []);
  readonly #slab = new Slab(SLAB_BYTES);
  #lastAtNs = 0;
  readonly #outgoing = new RingBuffer<Departure>();
  readonly #departures: Departure[] = [];
  readonly #thinning = new ClockEvent((now) => this.#thin(now));

  /** `thinned` is called as `callWhenThin` asks. */
  constructor(
    sender: VirtualClock,
    receiver: VirtualClock,
    land: Landing<T>,
    thinned: (now: Nanos) => void,
  ) {
    this.#sender = sender;
    this.#receiver = receiver;
    this.#land = land;
    this.#thinned = thinned;
  }

  /** A frame flies until `atNs`; its bytes are copied. */
  fly(
    from: T,
    epoch: number,
    bytes: Uint8Array,
    offset: number,
    length: number,
    atNs: number,
  ): void {
    assert(atNs >= this.#receiver.now(), 'a sender that lags was heard of before it sent');
    const flight = this.#take(from, length);
    // As far from a multiple of 8 as where it comes from: it is copied quickest so (copy-bytes.ts).
    flight.begin = flight.offset + (offset & 4);
    copyBytes(flight.bytes, flight.begin, bytes, offset, length);
    flight.epoch = epoch;
    flight.length = length;
    flight.atNs = atNs;
    flight.takenNs = this.#sender.now();
    flight.turn = this.#sender.takeTurn();
    if (atNs < this.#lastAtNs) {
      // It overtakes one that flies: an event of its own.
      const alone = new ClockEvent((now) => this.#landed(now, flight));
      this.#receiver.schedule(alone, atNs, flight.turn, flight.takenNs);
      return;
    }
    this.#lastAtNs = atNs;
    this.#flying.push(flight);
    if (this.#flying.size === 1) this.#await(flight);
  }

  /** A frame goes out until `atNs`, which is behind those before it. */
  goOut(atNs: number): void {
    const departure = this.#departures.pop() ?? new Departure();
    departure.atNs = atNs;
    departure.takenNs = this.#sender.now();
    departure.turn = this.#sender.takeTurn();
    this.#outgoing.push(departure);
  }

  /** Frames going out now. */
  get outgoing(): number {
    const outgoing = this.#outgoing;
    for (;;) {
      const departure = outgoing.peek();
      if (departure === undefined) return 0;
      const { atNs, takenNs, turn } = departure;
      if (!this.#sender.hasPassed(atNs, takenNs, turn)) return outgoing.size;
      outgoing.shift();
      this.#departures.push(departure);
    }
  }

  /** Has `thinned` called as soon as less than two frames go out; two or more do now. */
  callWhenThin(): void {
    if (this.#thinning.isScheduled) return;
    const last = this.#outgoing.at(this.#outgoing.size - 2);
    if (last === undefined) return;
    this.#sender.schedule(this.#thinning, last.atNs, last.turn, last.takenNs);
  }

  #thin(now: Nanos): void {
    // More may have begun to go out meanwhile.
    if (this.outgoing >= 2) this.callWhenThin();
    else this.#thinned(now);
  }

  #arrive(now: Nanos): void {
    const flight = this.#flying.shift();
    if (flight === undefined) return;
    const next = this.#flying.peek();
    if (next !== undefined) this.#await(next);
    this.#landed(now, flight);
  }

  #await({ atNs, turn, takenNs }: Flight<T>): void {
    this.#receiver.schedule(this.#arrival, atNs, turn, takenNs);
  }

  #landed(now: Nanos, flight: Flight<T>): void {
    this.#land(now, flight.from, flight.epoch, flight.bytes, flight.begin, flight.length);
    this.#free[flight.size]?.push(flight);
  }

  #take(from: T, length: number): Flight<T> {
    const size = sizeClass(length);
    const flight = this.#free[size]?.pop();
    if (flight === undefined) return new Flight(this.#slab.take(2 ** size), size, from);
    flight.from = from;
    return flight;
  }
}

/** With room to begin 4 bytes later. */
function sizeClass(bytes: number): number {
  return 32 - Math.clz32(Math.max(bytes + 4, 64) - 1);
}
