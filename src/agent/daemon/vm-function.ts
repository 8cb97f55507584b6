/**
 * The function of a virtual slot as a VM's QEMU uses it over vfio-user: accesses of its regions become
 * accesses of the root complex, its memory is what the function may reach by DMA, its interrupts are the
 * function's.
 */
import type { Nanos } from '#base/units';
import { AccessStatus } from '#host/cpu-access';
import { resetFunction } from '#host/function-reset';
import type { FunctionSurvey } from '#host/function-survey';
import type { SoftHost } from '#host/root-complex';
import type { VirtualPort } from '#host/virtual-port';
import { isBarRegister } from '#pcie/bar';
import { COMMAND } from '#pcie/config-space';
import type { DmaRegion } from '#vfio-user/dma-map';
import { IRQ_MSI } from '#vfio-user/irq-info';
import { REGION_CONFIG } from '#vfio-user/region-info';
import type {
  DeviceClient,
  DeviceSpec,
  RegionRead,
  RegionWriteAccess,
  ResetAccess,
  ServedDevice,
} from '#vfio-user/served-device';
import { registersOf, registerWrites } from './config-span.ts';
import { functionSpec } from './function-spec.ts';
import { GuestRegisters } from './guest-registers.ts';
import type { Logger } from './logger.ts';
import { type SlotMemory, VmMemory } from './vm-memory.ts';

export interface VmFunctionOptions {
  readonly soft: SoftHost;
  readonly port: VirtualPort;
  readonly proxy: SlotMemory;
  readonly survey: FunctionSurvey;
  readonly log: Logger;
  /** A BAR or Command was written, or the VM has come or gone. */
  readonly onChanged: (now: Nanos) => void;
  /** Sends what a turn has caused. */
  readonly settle: () => void;
}

export class VmFunction implements ServedDevice {
  readonly spec: DeviceSpec;
  readonly survey: FunctionSurvey;
  readonly #options: VmFunctionOptions;
  readonly #soft: SoftHost;
  readonly #port: VirtualPort;
  readonly #registers: GuestRegisters;
  readonly #word = new Uint8Array(4);
  readonly #wordView = new DataView(this.#word.buffer);
  readonly #memory: VmMemory;
  #client: DeviceClient | undefined;
  #isGone = false;
  /** QEMU has taken it in. */
  #isAdded = false;
  /** It went, or did not answer, before that. */
  #isRemembered = false;

  constructor(options: VmFunctionOptions) {
    const { survey } = options;
    this.#options = options;
    this.survey = survey;
    this.#soft = options.soft;
    this.#port = options.port;
    this.#memory = new VmMemory(options.proxy, options.port.virtualSlot, options.log);
    this.#registers = new GuestRegisters(survey);
    this.spec = functionSpec({ ...survey, msiVectors: survey.msi?.vectors ?? 0 });
  }

  /** QEMU is connected to it. */
  get isUsed(): boolean {
    return this.#client !== undefined;
  }

  /**
   * The BARs with their addresses, once the guest has given all of them one in the windows of the port;
   * what it writes to learn their sizes is none.
   */
  get placedBars(): { index: number; address: number; sizeBytes: number }[] | undefined {
    const placed = this.survey.bars.map(({ index, sizeBytes }) => ({
      index,
      address: this.#registers.addressOf(index),
      sizeBytes,
    }));
    const isPlaced = ({ address, sizeBytes }: { address: number; sizeBytes: number }): boolean =>
      address > 0 && address % sizeBytes === 0 && this.#port.forwards(address, sizeBytes);
    return placed.every(isPlaced) ? placed : undefined;
  }

  /**
   * QEMU has answered to `device_add`. Until then configuration space reads as it was surveyed where the function
   * is gone: QEMU 11.1.3 follows capabilities that are all ones for ever, and ends by a fault of its memory after a
   * device it could not take in.
   */
  added(): void {
    this.#isAdded = true;
  }

  /**
   * The function has left the slot, while QEMU may still have it: from here on it reads as all ones, and
   * reaches neither the slot's next function nor any memory.
   */
  end(): void {
    this.#isGone = true;
    this.#memory.removeAll();
    this.#client?.setIntx(false);
  }

  /** The function has written its MSI message. */
  interrupt(data: number): void {
    if (this.#isGone) return;
    const { msi } = this.survey;
    const vector = data - this.#registers.msiData;
    if (msi !== undefined && vector >= 0 && vector < msi.vectors) {
      this.#client?.trigger(IRQ_MSI, vector);
    }
  }

  setPin(asserted: boolean): void {
    if (!this.#isGone) this.#client?.setIntx(asserted);
  }

  attached(now: Nanos, client: DeviceClient): void {
    this.#client = client;
    this.#options.onChanged(now);
  }

  detached(now: Nanos): void {
    this.#client = undefined;
    this.#registers.reset();
    this.#options.onChanged(now);
  }

  read(now: Nanos, access: RegionRead): void {
    const { region, offset, count } = access;
    if (region === REGION_CONFIG && (this.#isGone || this.#isRemembered) && !this.#isAdded) {
      access.complete(now, this.#surveyed(offset, count));
      return;
    }
    if (!this.#isGone && region === REGION_CONFIG) {
      this.#readConfig(now, access);
      return;
    }
    const address = this.#registers.addressOf(region) + offset;
    if (this.#isGone || !this.#port.forwards(address, count)) {
      access.complete(now, new Uint8Array(count).fill(0xff));
      return;
    }
    if (count === 4 && address % 4 === 0) {
      this.#soft.readMmio32(now, address, (then, value) => {
        this.#wordView.setUint32(0, value, true);
        access.complete(then, this.#word);
      });
      return;
    }
    const bytes = new Uint8Array(count);
    this.#soft.readMemory(now, address, bytes, (then) => access.complete(then, bytes));
  }

  write(now: Nanos, access: RegionWriteAccess): void {
    const { region, offset, count, bytes } = access;
    if (!this.#isGone && region === REGION_CONFIG) {
      this.#writeConfig(now, access);
      return;
    }
    const address = this.#registers.addressOf(region) + offset;
    if (this.#isGone || !this.#port.forwards(address, count)) {
      access.done(now);
      return;
    }
    if (count === 4 && address % 4 === 0) {
      this.#word.set(bytes.subarray(0, 4));
      this.#soft.writeMmio32(now, address, this.#wordView.getUint32(0, true));
      access.done(now);
      return;
    }
    // Posted, as on a bus: it is done once it is on its way, and stays in order.
    this.#soft.writeMemory(now, address, bytes.slice(0, count));
    access.done(now);
  }

  reset(now: Nanos, access: ResetAccess): void {
    if (this.#isGone) {
      access.done(now);
      return;
    }
    this.#registers.reset();
    this.#soft.tasks.run(now, resetFunction(this.#soft, this.#bdf(), this.survey), (then) => {
      access.done(then);
      this.#options.onChanged(then);
      this.#options.settle();
    });
  }

  memoryAdded(_now: Nanos, region: DmaRegion): void {
    if (!this.#isGone) this.#memory.add(region);
  }

  memoryRemoved(_now: Nanos, region: DmaRegion): void {
    this.#memory.remove(region);
  }

  turnEnd(): void {
    this.#options.settle();
  }

  #bdf(): number {
    return this.#port.routing.secondaryBus << 8;
  }

  /** All registers that the span touches, at once. */
  #readConfig(now: Nanos, access: RegionRead): void {
    const { offset, count } = access;
    const registers = registersOf(offset, count);
    const bytes = new Uint8Array(4 * registers.length);
    const view = new DataView(bytes.buffer);
    let open = registers.length;
    let isAnswered = false;
    for (const [index, register] of registers.entries()) {
      this.#soft.configRead(now, this.#bdf(), register, (then, value, status) => {
        view.setUint32(4 * index, value, true);
        open--;
        if (isAnswered) return;
        if (status !== AccessStatus.OK && !this.#isAdded) {
          isAnswered = true;
          this.#isRemembered = true;
          access.complete(then, this.#surveyed(offset, count));
          return;
        }
        if (open === 0) access.complete(then, bytes, offset % 4);
      });
    }
  }

  /** Configuration space as it was surveyed: zeros behind its first 256 bytes. */
  #surveyed(offset: number, count: number): Uint8Array {
    const bytes = new Uint8Array(count);
    bytes.set(this.survey.config.subarray(offset, offset + count));
    return bytes;
  }

  #writeConfig(now: Nanos, access: RegionWriteAccess): void {
    const writes = registerWrites(access.offset, access.bytes, access.count);
    let open = writes.length;
    for (const { register, value, byteEnables } of writes) {
      this.#registers.write(register, value, byteEnables);
      if (isBarRegister(register) || register === COMMAND) this.#options.onChanged(now);
      this.#soft.configWrite(now, this.#bdf(), register, value, byteEnables, (then) => {
        open--;
        if (open === 0) access.done(then);
      });
    }
  }
}
