import type { Nanos } from '#base/units';
import type { Device, DeviceIdentity, DevicePort, Outage } from './device.ts';
import type { FlowClass, Tlp } from './tlp.ts';

/**
 * Between a device and its link, to look at what passes: lets everything through, takes no time. What
 * extends it overrides what it wants to see. Runs of TLPs come one by one.
 */
export class DeviceTap implements Device, DevicePort {
  readonly identity: DeviceIdentity;
  readonly #device: Device;
  #port: DevicePort | undefined;

  constructor(device: Device) {
    this.#device = device;
    this.identity = device.identity;
  }

  get outage(): Outage | undefined {
    return this.#device.outage;
  }

  plug(port: DevicePort): void {
    this.#port = port;
    this.#device.plug(this);
  }

  canSend(flow: FlowClass, payloadBytes: number): boolean {
    return this.#port?.canSend(flow, payloadBytes) === true;
  }

  /** From the device. */
  send(now: Nanos, tlp: Tlp): void {
    this.#port?.send(now, tlp);
  }

  /** To the device. */
  receive(now: Nanos, tlp: Tlp): void {
    this.#device.receive(now, tlp);
  }

  resume(now: Nanos): void {
    this.#device.resume(now);
  }

  reset(now: Nanos): void {
    this.#device.reset(now);
  }

  scrub(now: Nanos): void {
    this.#device.scrub(now);
  }

  nextDeadlineNs(): number {
    return this.#device.nextDeadlineNs();
  }

  tick(now: Nanos): void {
    this.#device.tick(now);
  }
}
