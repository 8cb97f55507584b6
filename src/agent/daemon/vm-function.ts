/**
 * The function of a virtual slot as a VM's QEMU uses it over vfio-user: accesses of its regions become
 * accesses of the root complex, its memory is what the function may reach by DMA, its interrupts are the
 * function's.
 */
import type { Nanos } from '#base/units';
import { resetFunction } from '#host/function-reset';
import type { FunctionSurvey } from '#host/function-survey';
import type { SoftHost } from '#host/root-complex';
import type { VirtualPort } from '#host/virtual-port';
import type { DmaRegion } from '#vfio-user/dma-map';
import { IRQ_MSI } from '#vfio-user/irq-info';
import { REGION_CONFIG } from '#vfio-user/region-info';
import type {
  DeviceClient,
  DeviceSpec,
  RegionRead,
  RegionSpec,
  RegionWriteAccess,
  ResetAccess,
  ServedDevice,
} from '#vfio-user/served-device';
import type { Logger } from './logger.ts';
import { type SlotMemory, VmMemory } from './vm-memory.ts';

const COMMAND = 0x04;
const BASE_ADDRESS_0 = 0x10;
const BAR_COUNT = 6;
const ALL_ONES = 0xffff_ffff;
const TWO_TO_32 = 0x1_0000_0000;

export interface VmFunctionOptions {
  readonly soft: SoftHost;
  readonly port: VirtualPort;
  readonly proxy: SlotMemory;
  readonly survey: FunctionSurvey;
  readonly log: Logger;
  /** A BAR was written, or the VM has come or gone. */
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
  /** As the guest wrote them; by BAR, with the flags in their low bits left out. */
  readonly #bars = new Uint32Array(BAR_COUNT);
  /** Of a memory BAR that is `mem64`, its upper half is the BAR after it. */
  readonly #isWide: readonly boolean[];
  readonly #word = new Uint8Array(4);
  readonly #wordView = new DataView(this.#word.buffer);
  readonly #memory: VmMemory;
  #msiData = 0;
  #client: DeviceClient | undefined;
  #isGone = false;

  constructor(options: VmFunctionOptions) {
    const { survey } = options;
    this.#options = options;
    this.survey = survey;
    this.#soft = options.soft;
    this.#port = options.port;
    this.#memory = new VmMemory(options.proxy, options.port.virtualSlot, options.log);
    this.#isWide = Array.from({ length: BAR_COUNT }, (_, index) =>
      survey.bars.some((bar) => bar.index === index && bar.kind === 'mem64'),
    );
    const region = (sizeBytes: number): RegionSpec => ({ sizeBytes, read: true, write: true });
    this.spec = {
      regions: new Map([
        ...survey.bars.map((bar) => [bar.index, region(bar.sizeBytes)] as const),
        [REGION_CONFIG, region(survey.configBytes)],
      ]),
      irqs: { intx: survey.hasPin ? 1 : 0, msi: survey.msi?.vectors ?? 0, msix: 0, err: 0, req: 0 },
      resettable: true,
      config: survey.config,
    };
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
      address: this.#baseOf(index),
      sizeBytes,
    }));
    const isPlaced = ({ address, sizeBytes }: { address: number; sizeBytes: number }): boolean =>
      address > 0 && address % sizeBytes === 0 && this.#port.forwards(address, sizeBytes);
    return placed.every(isPlaced) ? placed : undefined;
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
    const vector = data - this.#msiData;
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
    this.#bars.fill(0);
    this.#msiData = 0;
    this.#options.onChanged(now);
  }

  read(now: Nanos, access: RegionRead): void {
    const { region, offset, count } = access;
    if (this.#isGone) {
      access.complete(now, new Uint8Array(count).fill(0xff));
      return;
    }
    if (region === REGION_CONFIG) {
      this.#readConfig(now, access);
      return;
    }
    const address = this.#baseOf(region) + offset;
    if (!this.#port.forwards(address, count)) {
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
    if (this.#isGone) {
      access.done(now);
      return;
    }
    if (region === REGION_CONFIG) {
      this.#writeConfig(now, access);
      return;
    }
    const address = this.#baseOf(region) + offset;
    if (!this.#port.forwards(address, count)) {
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
    this.#bars.fill(0);
    this.#msiData = 0;
    this.#soft.tasks.run(now, resetFunction(this.#soft, this.#bdf, this.survey), (then) => {
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

  get #bdf(): number {
    return this.#port.routing.secondaryBus << 8;
  }

  #baseOf(bar: number): number {
    const low = this.#bars[bar] ?? 0;
    const high = this.#isWide[bar] === true ? (this.#bars[bar + 1] ?? 0) : 0;
    // While a guest learns a size, the address is none.
    return low >= 0xffff_fff0 || high === ALL_ONES ? 0 : high * TWO_TO_32 + low;
  }

  /** All registers that the span touches, at once. */
  #readConfig(now: Nanos, access: RegionRead): void {
    const { offset, count } = access;
    const first = offset & ~3;
    const registers = Math.ceil((offset + count - first) / 4);
    const bytes = new Uint8Array(4 * registers);
    const view = new DataView(bytes.buffer);
    let open = registers;
    for (let index = 0; index < registers; index++) {
      this.#soft.configRead(now, this.#bdf, first + 4 * index, (then, value) => {
        view.setUint32(4 * index, value, true);
        open--;
        if (open === 0) access.complete(then, bytes, offset - first);
      });
    }
  }

  #writeConfig(now: Nanos, access: RegionWriteAccess): void {
    const { offset, count, bytes } = access;
    const first = offset & ~3;
    const registers = Math.ceil((offset + count - first) / 4);
    let open = registers;
    for (let index = 0; index < registers; index++) {
      const register = first + 4 * index;
      let value = 0;
      let enables = 0;
      for (let lane = 0; lane < 4; lane++) {
        const at = register + lane - offset;
        if (at < 0 || at >= count) continue;
        value += (bytes[at] as number) * 2 ** (8 * lane);
        enables |= 1 << lane;
      }
      this.#note(now, register, value, enables);
      this.#soft.configWrite(now, this.#bdf, register, value, enables, (then) => {
        open--;
        if (open === 0) access.done(then);
      });
    }
  }

  #note(now: Nanos, register: number, value: number, enables: number): void {
    const { msi } = this.survey;
    if (register >= BASE_ADDRESS_0 && register < BASE_ADDRESS_0 + 4 * BAR_COUNT) {
      const bar = (register - BASE_ADDRESS_0) / 4;
      const isUpper = bar > 0 && this.#isWide[bar - 1] === true;
      const merged = merge(this.#bars[bar] as number, value, enables);
      this.#bars[bar] = isUpper ? merged : merged & ~15;
      this.#options.onChanged(now);
    } else if (msi !== undefined && register === msi.dataOffset) {
      this.#msiData = merge(this.#msiData, value, enables) & 0xffff;
    } else if (register === COMMAND) {
      this.#options.onChanged(now);
    }
  }
}

function merge(before: number, value: number, enables: number): number {
  let mask = 0;
  for (let lane = 0; lane < 4; lane++)
    if ((enables & (1 << lane)) !== 0) mask |= 0xff << (8 * lane);
  return ((before & ~mask) | (value & mask)) >>> 0;
}
