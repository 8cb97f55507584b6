/**
 * What a box slot holds: one PCIe function, seen from its link. A `Device` is a synchronous state
 * machine; its effects are calls on the `DevicePort` it is plugged into.
 */
import type { Timed } from '#base/clock';
import type { Nanos } from '#base/units';
import type { FlowClass, Tlp } from './tlp.ts';

export interface DeviceIdentity {
  /** `accel`, `virtio-gpu`, `bochs-display`. */
  readonly kind: string;
  readonly model: string;
  readonly memoryBytes: number;
  /** Lower-case 8-4-4-4-12. */
  readonly uuid: string;
}

/** The upstream side of a device's link. */
export interface DevicePort {
  /**
   * Whether a TLP of this flow class with this payload would be taken now. Completions are always
   * taken: they are bounded by the non-posted requests the device has been given.
   */
  canSend(flow: FlowClass, payloadBytes: number): boolean;
  /** Takes a TLP upstream; copied before the call returns. Only after `canSend`. */
  send(now: Nanos, tlp: Tlp): void;
  /**
   * Takes a run of memory writes (tlp-run.ts) upstream: `first`, and up to `count` − 1 more; copied
   * before the call returns. Only after `canSend` for the first. Returns how many it took; 0 when the
   * first is to be sent by itself. Calls nothing back. A port need not have it.
   */
  sendWrites?(now: Nanos, first: Tlp, count: number): number;
}

/** Why a device cannot be used for the time being. */
export interface Outage {
  /**
   * - `absent`: it is not there. What it was asked has been answered; what comes now is dropped, and
   *   requests are answered UR.
   * - `resetting`: a `reset` and `scrub` that outlast their calls.
   */
  readonly kind: 'absent' | 'resetting';
  /** For people. */
  readonly reason: string;
}

export interface Device extends Timed {
  readonly identity: DeviceIdentity;
  /**
   * `undefined` while the device can be used: it is there, and a reset and scrub are done. Who owns the
   * device tells its slot of changes. A device that is always there, and resets within the call, need not
   * have it.
   */
  readonly outage?: Outage | undefined;
  /** Called once, before anything else. */
  plug(port: DevicePort): void;
  /**
   * A TLP from upstream: config requests are type 0, and have set the function's bus and device
   * number (2.2.6.2). The record and its payload are valid during the call alone.
   */
  receive(now: Nanos, tlp: Tlp): void;
  /**
   * A run of `count` valid TLPs (tlp-run.ts) from upstream; of completions none is the last of its
   * request. `first` is the record of the first; the payloads lie `stride` bytes apart. Returns true when
   * all are done as `receive` would have done them, false when nothing was. Calls nothing of the port. A
   * device need not have it.
   */
  receiveRun?(now: Nanos, first: Tlp, stride: number, count: number): boolean;
  /** `canSend` may have become true again. */
  resume(now: Nanos): void;
  /**
   * Conventional reset: config space and registers as at power-on, everything outstanding forgotten
   * and nothing sent of it afterwards.
   */
  reset(now: Nanos): void;
  /** Wipes what a tenant could have left in the device's memory. Called after `reset`. */
  scrub(now: Nanos): void;
}
