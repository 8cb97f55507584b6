/** A remote device in virtual time, its server in the same process, and a host in the small above it. */
import { RemoteDevice, type RemoteDeviceOptions } from '#agent/daemon/remote-device';
import { ServedModel } from '#agent/daemon/served-model';
import { TimerDriver } from '#base/clock';
import { VirtualClock } from '#base/virtual-clock';
import type { DeviceModel } from '#devices/device-model';
import type { Device } from '#pcie/device';
import type { ServedDevice } from '#vfio-user/served-device';
import { FakeHost } from './fake-host.ts';
import { ServedInProcess } from './served-in-process.ts';

export const REMOTE_UUID = '00112233-4455-6677-8899-aabbccddeeff';
export const REMOTE_HOST_BASE = 0x1_0000_0000;

export class RemoteRig {
  readonly clock: VirtualClock;
  readonly served: ServedInProcess;
  readonly device: RemoteDevice;
  readonly host = new FakeHost(REMOTE_HOST_BASE, 1 << 20);
  /** What `outage` became, one after another. */
  readonly changes: string[] = [];
  readonly #driver: TimerDriver;
  #isRunning = false;

  /** With a device it is served at once; `run` connects to it. */
  constructor(served?: ServedDevice, options: Partial<RemoteDeviceOptions> = {}) {
    this.clock = new VirtualClock();
    this.served = new ServedInProcess(this.clock, served);
    const device: RemoteDevice = new RemoteDevice({
      path: '/run/device.sock',
      uuid: REMOTE_UUID,
      clock: this.clock,
      onWork: () => this.#driver.update(),
      onChanged: () => this.changes.push(device.outage?.reason ?? 'ready'),
      ...options,
    });
    this.device = device;
    this.#driver = new TimerDriver(this.clock, device);
    this.host.plug(this.settling);
    device.start(this.clock.now(), this.served);
  }

  /** The device, with all that an event causes done within the event. */
  get settling(): Device {
    const { device, clock } = this;
    const settle = (act: () => void): void => {
      act();
      this.run();
    };
    return {
      identity: device.identity,
      plug: (port) => device.plug(port),
      receive: (_now, tlp) => settle(() => device.receive(clock.now(), tlp)),
      resume: () => settle(() => device.resume(clock.now())),
      reset: () => settle(() => device.reset(clock.now())),
      scrub: () => {},
      nextDeadlineNs: () => Infinity,
      tick: () => {},
    };
  }

  /** Lets `ms` pass. */
  run(ms = 0): void {
    this.#driver.update();
    if (this.#isRunning) return;
    this.#isRunning = true;
    this.clock.runUntil(this.clock.now() + ms * 1e6);
    this.#driver.update();
    this.#isRunning = false;
    this.host.now = this.clock.now();
  }

  get reason(): string | undefined {
    return this.device.outage?.reason;
  }
}

/** A model behind vfio-user, as a `Device` of a box slot would see it. */
export function throughVfioUser(model: DeviceModel): Device {
  const rig = new RemoteRig();
  rig.served.device = new ServedModel({ model, clock: rig.clock });
  rig.run(200);
  return rig.settling;
}
