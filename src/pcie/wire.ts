/**
 * A device behind a PCIe link, in virtual time: what passes takes the time it takes on the wires.
 *
 * Timing. Each direction is one line of `bytesPerNs`, the rate the transaction layer is left with
 * (`tlpLayerGbps(link) / 8` of bandwidth.ts). A TLP takes its encoded bytes plus 8 of framing (start,
 * sequence number, LCRC, end): with 64-bit addresses and without ECRC a memory write of n bytes takes
 * 24 + n, a memory read 24, a completion with n bytes 20 + n. TLPs go one after another, in order; one
 * handed over at t when the line is free from f on starts at s = max(t, f), the line is free again at
 * e = s + bytes ÷ bytesPerNs, and the TLP arrives, whole, at e + `latencyNs`. So one read of n bytes,
 * answered at once in one completion, has a round trip of (24 + 20 + n) ÷ bytesPerNs + 2 × latencyNs
 * on idle lines.
 *
 * Who owns what: the wire copies every TLP into a `Flight`, which waits for its line, is on it, flies for
 * `latencyNs`, and is handed on. What has arrived upstream and is not taken waits in the wire: posted
 * requests and completions in order, non-posted requests aside, so that they hold nobody up.
 *
 * Catching up: what happens at the device's end (a TLP arrives there or leaves, the device is due) shows
 * upstream only by TLPs behind all that are under way. While one is, the wire asks for no `tick` before it
 * arrives; then all that was due before is done, in order, each with the time it was due as `now`. So the
 * device sees what it would have seen, but may be behind the clock by as much as a TLP takes. Who looks
 * into it from outside calls `catchUp` before. Nobody but the wire calls the device.
 */
import { assert, assertDefined } from '#base/assert';
import { copyBytes } from '#base/copy-bytes';
import { RingBuffer } from '#base/ring-buffer';
import { Slab } from '#base/slab';
import type { Nanos } from '#base/units';
import { TLP_FRAMING_BYTES } from './bandwidth.ts';
import type { Device, DeviceIdentity, DevicePort } from './device.ts';
import { copyTlp, FlowClass, flowClassOf, Tlp } from './tlp.ts';
import { encodedTlpBytes } from './tlp-codec.ts';

export interface PcieWireOptions {
  readonly device: Device;
  /** What each direction carries, in bytes of TLPs and their framing per ns. */
  readonly bytesPerNs: number;
  /** From the end of a TLP on one side to its arrival on the other. Default 0. */
  readonly latencyNs?: number;
  /**
   * Posted and non-posted requests, each, that wait for the line or at its far end before `canSend`
   * says no. Those flying do not count. Default 32: enough that a line never runs dry.
   */
  readonly queueTlps?: number;
}

/** One TLP on its way, in a record and a place for its payload that are used again. */
class Flight {
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
class Line {
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
    return this.#flights.at(this.#left)?.leavesAtNs ?? Infinity;
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

  /** Any of them, for a reset. */
  drop(): Flight | undefined {
    this.#left = 0;
    this.nextArrivalNs = Infinity;
    return this.#flights.shift();
  }
}

/**
 * Downstream nothing is bounded, for a `Device` cannot refuse: completions are bounded by the device's
 * tags, MMIO by what the host sends. Upstream `queueTlps` bounds requests; completions are always
 * taken, as `DevicePort` demands.
 */
export class PcieWire implements Device, DevicePort {
  readonly identity: DeviceIdentity;
  readonly #device: Device;
  readonly #queueTlps: number;
  readonly #down: Line;
  readonly #up: Line;
  /** Arrived upstream and not taken: in order, and the non-posted requests that others passed. */
  readonly #arrived = new RingBuffer<Flight>();
  readonly #aside = new RingBuffer<Flight>();
  readonly #pool: Flight[] = [];
  readonly #slab = new Slab(SLAB_BYTES);
  /** TLPs of the device that count against `queueTlps`, by `FlowClass`. */
  readonly #held = [0, 0, 0];
  #isDelivering = false;
  /** The device was told that it cannot send, and not yet to go on. */
  #isRefused = false;
  /** Of the device, unless it was called since. */
  #deviceNs = Infinity;
  #isDeviceNsOld = true;
  #port: DevicePort | undefined;

  constructor(options: PcieWireOptions) {
    const { device, bytesPerNs, latencyNs = 0, queueTlps = 32 } = options;
    assert(bytesPerNs > 0 && bytesPerNs < Infinity, `not a rate: ${bytesPerNs}`);
    assert(latencyNs >= 0 && latencyNs < Infinity, `not a latency: ${latencyNs}`);
    assert(Number.isInteger(queueTlps) && queueTlps >= 1, `not a queue length: ${queueTlps}`);
    this.#device = device;
    this.#queueTlps = queueTlps;
    this.#down = new Line(bytesPerNs, latencyNs);
    this.#up = new Line(bytesPerNs, latencyNs);
    this.identity = device.identity;
  }

  plug(port: DevicePort): void {
    this.#port = port;
    this.#device.plug(this);
  }

  /** From upstream; reaches the device when it has crossed the wire. */
  receive(now: Nanos, tlp: Tlp): void {
    this.#down.push(now, this.#take(tlp));
  }

  canSend(flow: FlowClass, _payloadBytes: number): boolean {
    if (flow === FlowClass.COMPLETION || (this.#held[flow] as number) < this.#queueTlps)
      return true;
    this.#isRefused = true;
    return false;
  }

  /** From the device. */
  send(now: Nanos, tlp: Tlp): void {
    const flight = this.#take(tlp);
    this.#hold(flight, 1);
    this.#up.push(now, flight);
  }

  resume(now: Nanos): void {
    this.catchUp(now);
    if (this.#handOnArrived(now)) this.#resumeDevice(now);
  }

  /** What is on the wires in either direction is lost with everything else. */
  reset(now: Nanos): void {
    this.catchUp(now);
    this.#isRefused = false;
    this.#isDeviceNsOld = true;
    for (const line of [this.#down, this.#up]) {
      for (let flight = line.drop(); flight !== undefined; flight = line.drop()) {
        this.#pool.push(flight);
      }
    }
    for (const queue of [this.#arrived, this.#aside]) {
      for (let flight = queue.shift(); flight !== undefined; flight = queue.shift()) {
        this.#pool.push(flight);
      }
    }
    this.#held.fill(0);
    this.#device.reset(now);
  }

  scrub(now: Nanos): void {
    this.catchUp(now);
    this.#isDeviceNsOld = true;
    this.#device.scrub(now);
  }

  nextDeadlineNs(): number {
    const arrivalNs = this.#up.nextArrivalNs;
    return arrivalNs === Infinity ? this.#nextInsideNs() : arrivalNs;
  }

  tick(now: Nanos): void {
    this.catchUp(now);
    let isRoomMade = this.#inside(now);
    for (let flight = this.#up.arrive(now); flight !== undefined; flight = this.#up.arrive(now)) {
      if (this.#handOnAtOnce(now, flight)) {
        isRoomMade = true;
      } else {
        this.#hold(flight, 1);
        this.#arrived.push(flight);
      }
    }
    if (this.#handOnArrived(now)) isRoomMade = true;
    if (isRoomMade) this.#resumeDevice(now);
  }

  /** Does what is due at the device's end before `now`. */
  catchUp(now: Nanos): void {
    for (let atNs = this.#nextInsideNs(); atNs < now; atNs = this.#nextInsideNs()) {
      if (this.#inside(atNs as Nanos)) this.#resumeDevice(atNs as Nanos);
    }
  }

  /** When something is due at the device's end. */
  #nextInsideNs(): number {
    if (this.#isDeviceNsOld) {
      this.#isDeviceNsOld = false;
      this.#deviceNs = this.#device.nextDeadlineNs();
    }
    let nextNs = this.#deviceNs;
    const arrivalNs = this.#down.nextArrivalNs;
    if (arrivalNs < nextNs) nextNs = arrivalNs;
    const leaveNs = this.#isRefused ? this.#up.nextLeaveNs : Infinity;
    return leaveNs < nextNs ? leaveNs : nextNs;
  }

  /** Does what is due at the device's end by `now`; true when a TLP has left. */
  #inside(now: Nanos): boolean {
    while (this.#up.nextLeaveNs < now) this.#leave();
    for (
      let flight = this.#down.arrive(now);
      flight !== undefined;
      flight = this.#down.arrive(now)
    ) {
      this.#isDeviceNsOld = true;
      this.#device.receive(now, flight.tlp);
      this.#pool.push(flight);
    }
    if (this.#isDeviceNsOld) {
      this.#isDeviceNsOld = false;
      this.#deviceNs = this.#device.nextDeadlineNs();
    }
    if (this.#deviceNs <= now) {
      this.#isDeviceNsOld = true;
      this.#device.tick(now);
    }
    let hasLeft = false;
    while (this.#up.nextLeaveNs <= now) {
      this.#leave();
      hasLeft = true;
    }
    return hasLeft;
  }

  #leave(): void {
    const flight = this.#up.leave();
    if (flight !== undefined) this.#hold(flight, -1);
  }

  #resumeDevice(now: Nanos): void {
    if (!this.#isRefused) return;
    this.#isRefused = false;
    this.#isDeviceNsOld = true;
    this.#device.resume(now);
  }

  /** Hands on what has just arrived if nothing waits and it is taken, which is mostly so. */
  #handOnAtOnce(now: Nanos, flight: Flight): boolean {
    const port = this.#port;
    if (port === undefined || this.#isDelivering) return false;
    if (this.#arrived.size > 0 || this.#aside.size > 0) return false;
    if (!port.canSend(flight.flow, flight.tlp.payloadBytes)) return false;
    this.#isDelivering = true;
    port.send(now, flight.tlp);
    this.#isDelivering = false;
    this.#pool.push(flight);
    return true;
  }

  /** Hands on what has arrived upstream, as far as it is taken. Returns whether that made room. */
  #handOnArrived(now: Nanos): boolean {
    if (this.#arrived.size === 0 && this.#aside.size === 0) return false;
    // Upstream may call `resume` from inside a send: the loop that runs finds the room that made.
    if (this.#isDelivering) return false;
    this.#isDelivering = true;
    const port = assertDefined(this.#port, 'the wire is not plugged in');
    let isRoomMade = false;
    for (let flight = this.#aside.peek(); flight !== undefined; flight = this.#aside.peek()) {
      if (!port.canSend(FlowClass.NON_POSTED, flight.tlp.payloadBytes)) break;
      this.#aside.shift();
      this.#handOn(now, port, flight);
      isRoomMade = true;
    }
    for (let flight = this.#arrived.peek(); flight !== undefined; flight = this.#arrived.peek()) {
      const { flow } = flight;
      const isTaken =
        (flow !== FlowClass.NON_POSTED || this.#aside.size === 0) &&
        port.canSend(flow, flight.tlp.payloadBytes);
      if (!isTaken && flow !== FlowClass.NON_POSTED) break;
      this.#arrived.shift();
      if (isTaken) {
        this.#handOn(now, port, flight);
        isRoomMade = true;
      } else {
        // Posted requests and completions behind it must be able to pass (2.4.1).
        this.#aside.push(flight);
      }
    }
    this.#isDelivering = false;
    return isRoomMade;
  }

  #handOn(now: Nanos, port: DevicePort, flight: Flight): void {
    this.#hold(flight, -1);
    port.send(now, flight.tlp);
    this.#pool.push(flight);
  }

  #hold(flight: Flight, change: 1 | -1): void {
    this.#held[flight.flow] = (this.#held[flight.flow] as number) + change;
  }

  /** What the flight had is not used again. */
  #makeRoom(flight: Flight, bytes: number): void {
    flight.room = 2 ** Math.ceil(Math.log2(Math.max(LEAST_ROOM_BYTES, bytes)));
    const place = this.#slab.take(flight.room);
    flight.bytes = place.bytes;
    flight.offset = place.offset;
  }

  #take(tlp: Tlp): Flight {
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
