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
import { RingBuffer } from '#base/ring-buffer';
import type { Nanos } from '#base/units';
import type { Device, DeviceIdentity, DevicePort } from './device.ts';
import { FlowClass, type Tlp } from './tlp.ts';
import { type Flight, Flights, Line } from './wire-line.ts';

export interface PcieWireOptions {
  readonly device: Device;
  /** What each direction carries, in bytes of TLPs and their framing per ns. */
  readonly bytesPerNs: number;
  /** From the end of a TLP on one side to its arrival on the other. Default 0. */
  readonly latencyNs?: number;
  /**
   * Posted and non-posted requests, each, that wait for the line or at its far end before `canSend`
   * says no. Those flying do not count. Default 32: enough that a line never runs dry. The device is told to
   * go on when half of them have left, as credits come back in batches.
   */
  readonly queueTlps?: number;
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
  readonly #flights = new Flights();
  /** TLPs of the device that count against `queueTlps`, by `FlowClass`. */
  readonly #held = [0, 0, 0];
  /** With no more of them the device, once refused, goes on. */
  readonly #lowTlps: number;
  #isDelivering = false;
  /** What the device was told that it cannot send, and not yet to go on: a bit a `FlowClass`. */
  #refused = 0;
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
    this.#lowTlps = queueTlps >> 1;
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
    this.#down.push(now, this.#flights.take(tlp));
  }

  canSend(flow: FlowClass, _payloadBytes: number): boolean {
    if (flow === FlowClass.COMPLETION || (this.#held[flow] as number) < this.#queueTlps)
      return true;
    this.#refused |= 1 << flow;
    return false;
  }

  /** From the device. */
  send(now: Nanos, tlp: Tlp): void {
    const flight = this.#flights.take(tlp);
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
    this.#refused = 0;
    this.#isDeviceNsOld = true;
    for (const line of [this.#down, this.#up]) {
      for (let flight = line.drop(); flight !== undefined; flight = line.drop()) {
        this.#flights.giveBack(flight);
      }
    }
    for (const queue of [this.#arrived, this.#aside]) {
      for (let flight = queue.shift(); flight !== undefined; flight = queue.shift()) {
        this.#flights.giveBack(flight);
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
      if (this.#handOnAtOnce(now, flight)) continue;
      this.#hold(flight, 1);
      this.#arrived.push(flight);
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
    let nextNs = this.#deviceDeadlineNs();
    const arrivalNs = this.#down.nextArrivalNs;
    if (arrivalNs < nextNs) nextNs = arrivalNs;
    if (this.#refused === 0) return nextNs;
    // Of what leaves some may be of another class: then this is asked again.
    const leaveNs = this.#up.leaveNsOf(Math.max(0, this.#excess() - 1));
    return leaveNs < nextNs ? leaveNs : nextNs;
  }

  /** How many TLPs have to leave, at least, until a device that was refused goes on; none from 0 down. */
  #excess(): number {
    let excess = Infinity;
    for (let flow = 0; flow < this.#held.length; flow++) {
      if ((this.#refused & (1 << flow)) === 0) continue;
      excess = Math.min(excess, (this.#held[flow] as number) - this.#lowTlps);
    }
    return excess;
  }

  /** As the device says: asked only if it was called since. */
  #deviceDeadlineNs(): number {
    if (this.#isDeviceNsOld) {
      this.#isDeviceNsOld = false;
      this.#deviceNs = this.#device.nextDeadlineNs();
    }
    return this.#deviceNs;
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
      this.#flights.giveBack(flight);
    }
    if (this.#deviceDeadlineNs() <= now) {
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
    if (this.#refused === 0) return;
    while (this.#up.nextLeaveNs <= now) this.#leave();
    if (this.#excess() > 0) return;
    this.#refused = 0;
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
    this.#flights.giveBack(flight);
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
    this.#flights.giveBack(flight);
  }

  #hold(flight: Flight, change: 1 | -1): void {
    this.#held[flight.flow] = (this.#held[flight.flow] as number) + change;
  }
}
