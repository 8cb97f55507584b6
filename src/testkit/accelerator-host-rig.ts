/** A soft host with the reference accelerator in slot 0, enumerated, on a `FakeFabric`. */
import { type AcceleratorOptions, createAccelerator } from '#devices/accel';
import { AccelDriver, type AccelDriverOptions } from '#host/accel-driver';
import type { PciFunction } from '#host/pci-function';
import type { SoftHostOptions } from '#host/root-complex';
import type { Device } from '#pcie/device';
import { HostRig } from './host-rig.ts';

export const ACCELERATOR_UUID = '00112233-4455-6677-8899-aabbccddeeff';

export interface AcceleratorHostRig {
  readonly rig: HostRig;
  readonly fn: PciFunction;
  /** Free host memory before any driver was opened. */
  readonly freeBytes: number;
  readonly open: (options?: AccelDriverOptions) => AccelDriver;
}

/** Device memory is 1 MiB unless `options` say otherwise. */
export function newAccelerator(options: Partial<AcceleratorOptions> = {}): Device {
  return createAccelerator({ uuid: ACCELERATOR_UUID, memoryBytes: 2 ** 20, ...options });
}

export function rigWithAccelerator(
  device: Partial<AcceleratorOptions> = {},
  host: Partial<SoftHostOptions> = {},
): AcceleratorHostRig {
  const rig = new HostRig(host);
  rig.fabric.plug(0, newAccelerator(device));
  const fn = rig.run(rig.hotPlug.waitForFunction(0, 1e9));
  const freeBytes = rig.host.memory.freeBytes;
  const open = (options: AccelDriverOptions = {}): AccelDriver =>
    rig.run(AccelDriver.open(rig.host, fn, options));
  return { rig, fn, freeBytes, open };
}
