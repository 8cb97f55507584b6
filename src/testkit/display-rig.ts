/** A soft host with a display in slot 0, enumerated, on a `FakeFabric` in virtual time. */
import type { DisplayModel } from '#devices/device-model';
import type { Screenshot } from '#devices/screenshot';
import { memoryRead, memoryWrite } from '#host/host-operations';
import type { PciFunction } from '#host/pci-function';
import type { Task } from '#host/task';
import { HostRig } from './host-rig.ts';
import { VirtioGpuDriver, type VirtioGpuDriverOptions } from './virtio-gpu-driver.ts';

export class DisplayRig extends HostRig {
  readonly device: DisplayModel;
  readonly fn: PciFunction;

  constructor(device: DisplayModel) {
    super();
    this.device = device;
    this.fabric.plug(0, device);
    this.fn = this.run(this.hotPlug.waitForFunction(0, 1e9));
  }

  /** Where BAR `index` is. */
  bar(index: number): number {
    const bar = this.fn.bars.find((one) => one.index === index);
    if (bar === undefined) throw new Error(`no BAR ${index}`);
    return bar.address;
  }

  load(address: number, bytes: number): Uint8Array {
    const into = new Uint8Array(bytes);
    const status = this.run(memoryRead(this.host, address, into));
    if (status !== 0) throw new Error(`a load ended with ${status}`);
    return into;
  }

  store(address: number, from: Uint8Array): void {
    this.run(memoryWrite(this.host, address, from));
  }

  /** What is seen once all posted writes have arrived. */
  screenshot(): Screenshot | undefined {
    this.pass(1e6);
    return this.device.screenshot();
  }

  openVirtioGpu(options: VirtioGpuDriverOptions = {}): VirtioGpuDriver {
    return this.run(VirtioGpuDriver.open(this.host, this.fn, options));
  }
}

/** Mode registers of a bochs-display by their index: one 16-bit store each, to 500h of BAR2. */
export function* setBochsMode(
  host: DisplayRig['host'],
  registers: number,
  values: Readonly<Record<number, number>>,
): Task<void> {
  for (const [index, value] of Object.entries(values)) {
    const address = registers + 0x500 + 2 * Number(index);
    yield* memoryWrite(host, address, Uint8Array.of(value & 255, value >> 8));
  }
}
