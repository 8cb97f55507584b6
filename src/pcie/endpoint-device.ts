import type { Nanos } from '#base/units';
import type { Device, DeviceIdentity, DevicePort } from './device.ts';
import type { Endpoint } from './endpoint.ts';
import type { Tlp } from './tlp.ts';

/** A device whose PCIe is an `Endpoint`'s business: everything of a `Device` that goes straight to it. */
export abstract class EndpointDevice implements Device {
  abstract readonly identity: DeviceIdentity;
  abstract readonly endpoint: Endpoint;

  /** Bus, device and function as captured from the last config write. */
  get bdf(): number {
    return this.endpoint.config.bdf;
  }

  /** A config register as the host would read it, without a TLP and without effects. */
  readConfig(register: number): number {
    return this.endpoint.config.read32(register);
  }

  plug(port: DevicePort): void {
    this.endpoint.plug(port);
  }

  receive(now: Nanos, tlp: Tlp): void {
    this.endpoint.receive(now, tlp);
  }

  receiveRun(now: Nanos, first: Tlp, stride: number, count: number): boolean {
    return this.endpoint.receiveRun(now, first, stride, count);
  }

  resume(now: Nanos): void {
    this.endpoint.resume(now);
  }

  nextDeadlineNs(): number {
    return this.endpoint.nextDeadlineNs();
  }

  tick(now: Nanos): void {
    this.endpoint.tick(now);
  }

  /** Resets the endpoint, and what the device has beside it. */
  abstract reset(now: Nanos): void;
  abstract scrub(now: Nanos): void;
}
