/** Parts of a wire (wire.ts): TLPs on their way, and one direction. */
import { copyBytes } from '#base/copy-bytes';
import { RingBuffer } from '#base/ring-buffer';
import { Slab } from '#base/slab';
import { TLP_FRAMING_BYTES } from './bandwidth.ts';
import { copyTlp, FlowClass, flowClassOf, Tlp } from './tlp.ts';
import { encodedTlpBytes } from './tlp-codec.ts';

/** One TLP on its way, in a record and a place for its payload that are used again. */
export class Flight {
  readonly tlp = new Tlp();
  bytes: Uint8Array = new Uint8Array(0);
  /** Where in `bytes` its payload is, and how much may be there. */
  offset = 0;
  room = 0;
  /** Of the TLP as it is encoded. */
  length = 0;
  flow: FlowClass = FlowClass.POSTED;
  /** When its last byte leaves, and when that arrives. */
  leavesAtNs = 0;
  arrivesAtNs = 0;
}

const SLAB_BYTES = 256 * 1024;
const LEAST_ROOM_BYTES = 128;

/** One direction: TLPs that wait for the line, are on it, or fly, oldest first. */
export class Line {
  nextArrivalNs = Infinity;
  readonly #flights = new RingBuffer<Flight>();
  readonly #bytesPerNs: number;
  readonly #latencyNs: number;
  /** How many of the flights, from the oldest on, are known to have left. */
  #left = 0;
  #freeAtNs = 0;

  constructor(bytesPerNs: number, latencyNs: number) {
    this.#bytesPerNs = bytesPerNs;
    this.#latencyNs = latencyNs;
  }

  push(now: number, flight: Flight): void {
    const startNs = now > this.#freeAtNs ? now : this.#freeAtNs;
    const leavesAtNs = startNs + (flight.length + TLP_FRAMING_BYTES) / this.#bytesPerNs;
    this.#freeAtNs = leavesAtNs;
    flight.leavesAtNs = leavesAtNs;
    flight.arrivesAtNs = leavesAtNs + this.#latencyNs;
    if (this.#flights.size === 0) this.nextArrivalNs = flight.arrivesAtNs;
    this.#flights.push(flight);
  }

  /** When the next TLP leaves that is not known to have left. */
  get nextLeaveNs(): number {
    return this.leaveNsOf(0);
  }

  /** When the one leaves that is `count` behind it; Infinity when that is not known. */
  leaveNsOf(count: number): number {
    return this.#flights.at(this.#left + count)?.leavesAtNs ?? Infinity;
  }

  /** The next TLP, whose last byte has left. */
  leave(): Flight | undefined {
    return this.#flights.at(this.#left++);
  }

  /** The next TLP that has arrived by `now`; that it has left is known, or never asked for. */
  arrive(now: number): Flight | undefined {
    if (now < this.nextArrivalNs) return undefined;
    const flight = this.#flights.shift();
    if (this.#left > 0) this.#left--;
    this.nextArrivalNs = this.#flights.peek()?.arrivesAtNs ?? Infinity;
    return flight;
  }

  /** Any of them, for a reset: the line is free at once. */
  drop(): Flight | undefined {
    this.#left = 0;
    this.#freeAtNs = 0;
    this.nextArrivalNs = Infinity;
    return this.#flights.shift();
  }
}

/** Flights not in use. */
export class Flights {
  readonly #pool: Flight[] = [];
  readonly #slab = new Slab(SLAB_BYTES);

  giveBack(flight: Flight): void {
    this.#pool.push(flight);
  }

  /** What the flight had is not used again. */
  #makeRoom(flight: Flight, bytes: number): void {
    flight.room = 2 ** Math.ceil(Math.log2(Math.max(LEAST_ROOM_BYTES, bytes)));
    const place = this.#slab.take(flight.room);
    flight.bytes = place.bytes;
    flight.offset = place.offset;
  }

  /** A copy of `tlp`. */
  take(tlp: Tlp): Flight {
    const flight = this.#pool.pop() ?? new Flight();
    const { payloadBytes } = tlp;
    copyTlp(flight.tlp, tlp);
    if (payloadBytes > 0) {
      if (flight.room < payloadBytes) this.#makeRoom(flight, payloadBytes);
      copyBytes(flight.bytes, flight.offset, tlp.payload, tlp.payloadOffset, payloadBytes);
    }
    flight.tlp.payload = flight.bytes;
    flight.tlp.payloadOffset = flight.offset;
    flight.length = encodedTlpBytes(tlp);
    flight.flow = flowClassOf(tlp.kind);
    return flight;
  }
}
