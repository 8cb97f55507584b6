/**
 * A virtual downstream port: the slot a GPU can appear behind. To host software it is a bridge on
 * bus 0 with a hot-plug slot. Its bus number and windows are set aside at boot, by what would be the
 * firmware of a machine; a function that appears later must fit into them.
 */
import { assert } from '#base/assert';
import { DxpuError } from '#base/errors';
import { COMMAND, ConfigSpace } from '#pcie/config-space';
import { PcieCapability, PortType } from '#pcie/pcie-capability';
import {
  HotPlugSlot,
  SLOT_CONTROL,
  SLTCTL_DATA_LINK_LAYER_STATE_CHANGED_ENABLE,
  SLTCTL_HOT_PLUG_INTERRUPT_ENABLE,
  SLTCTL_PRESENCE_DETECT_CHANGED_ENABLE,
} from '#pcie/pcie-slot';
import { addSecondaryPcie } from '#pcie/secondary-pcie';
import {
  type AddressRange,
  EMPTY_WINDOW,
  encodeWindow,
  MEMORY_BASE,
  PREFETCHABLE_BASE_UPPER_32,
  PREFETCHABLE_LIMIT_UPPER_32,
  PREFETCHABLE_MEMORY_BASE,
  PRIMARY_BUS_NUMBER,
  Type1Header,
} from '#pcie/type1-header';

/** What the firmware sets aside for a slot. A size of 0 leaves a window out. */
export interface VirtualPortOptions {
  /** Bus behind the port, 1 to 255, unique. */
  readonly secondaryBus: number;
  /** Below 4 GiB, base and size multiples of 1 MiB. */
  readonly nonPrefetchableBase: number;
  readonly nonPrefetchableBytes: number;
  /** 64 bit, base and size multiples of 1 MiB, below 2^53. */
  readonly prefetchableBase: number;
  readonly prefetchableBytes: number;
}

export const PORT_VENDOR_ID = 0xddb0;
export const PORT_DEVICE_ID = 0x00ff;
/** PCI-to-PCI bridge, normal decode. */
const PORT_CLASS_CODE = 0x060400;

/** Shown in the link registers, whatever carries the TLPs. */
const LANES = 16;
const MIB = 0x10_0000;
const TWO_TO_32 = 0x1_0000_0000;
const COMMAND_MEMORY_AND_BUS_MASTER = 6;
/** What `EMPTY_WINDOW` stands for. */
const EMPTY_RANGE: AddressRange = { base: MIB, limit: MIB - 1 };

export class VirtualPort {
  readonly virtualSlot: number;
  readonly options: VirtualPortOptions;
  /** The port's own bus, device and function: device `virtualSlot + 1` of bus 0. */
  readonly bdf: number;
  readonly config: ConfigSpace;
  readonly #slot: HotPlugSlot;
  readonly #pcieOffset: number;
  readonly #header: Type1Header;
  // The registers' meaning, kept as numbers: each load and store of the CPU asks.
  #memoryBase = 0;
  #memoryLimit = -1;
  #prefetchableBase = 0;
  #prefetchableLimit = -1;
  #secondaryBus = 0;
  #subordinateBus = -1;

  /** Fails with `invalid_argument` for windows and bus numbers a type 1 header cannot express. */
  constructor(virtualSlot: number, options: VirtualPortOptions, maxPayloadBytes = 512) {
    assert(virtualSlot >= 0 && virtualSlot < 31, 'a root complex has room for 31 ports');
    checkPortOptions(virtualSlot, options);
    this.virtualSlot = virtualSlot;
    this.options = options;
    this.bdf = (virtualSlot + 1) << 3;
    const identity = {
      vendorId: PORT_VENDOR_ID,
      deviceId: PORT_DEVICE_ID,
      revisionId: 1,
      classCode: PORT_CLASS_CODE,
    };
    this.config = new ConfigSpace(identity, 1);
    this.#header = new Type1Header(this.config);
    const pcie = new PcieCapability(this.config, {
      portType: PortType.ROOT_PORT,
      maxPayloadBytes,
      extendedTag: true,
      tenBitTagCompleter: true,
      tenBitTagRequester: false,
      generation: 3,
      lanes: LANES,
      portNumber: virtualSlot + 1,
      slotImplemented: true,
    });
    addSecondaryPcie(this.config, LANES, true);
    this.#pcieOffset = pcie.offset;
    this.#slot = new HotPlugSlot(this.config, pcie, {
      physicalSlotNumber: virtualSlot + 1,
      surprise: true,
    });
    this.#boot();
  }

  /** Offset of the port's PCI Express capability. */
  get pcieOffset(): number {
    return this.#pcieOffset;
  }

  get present(): boolean {
    return this.#slot.present;
  }

  get linkActive(): boolean {
    return this.#slot.linkActive;
  }

  /**
   * Bus and windows as the registers have them now. An empty window has its base above its limit, in
   * whole granules, as the registers express it.
   */
  get routing(): {
    readonly secondaryBus: number;
    readonly nonPrefetchable: AddressRange;
    readonly prefetchable: AddressRange;
  } {
    return {
      secondaryBus: this.#header.secondaryBus,
      nonPrefetchable: this.#header.memoryWindow ?? EMPTY_RANGE,
      prefetchable: this.#header.prefetchableWindow ?? EMPTY_RANGE,
    };
  }

  /**
   * Bus and windows as whoever programs the port has them now: for hosts whose guest does. An empty window
   * has its base above its limit.
   */
  setRouting(routing: VirtualPort['routing']): void {
    this.#program(routing.secondaryBus, routing.nonPrefetchable, routing.prefetchable);
    this.#readRouting();
  }

  /** Hardware's side: presence and data link follow the fabric. */
  setLinkActive(active: boolean): void {
    this.#slot.setPresent(active);
    this.#slot.setLinkActive(active);
  }

  /** Software's write to the port's own config space. */
  writeConfig(register: number, value: number, byteEnables: number): void {
    this.config.write(register, value, byteEnables);
    this.#readRouting();
  }

  /** Whether the port sends a memory access of `bytes` at `address` downwards. */
  forwards(address: number, bytes: number): boolean {
    const last = address + bytes - 1;
    return (
      (address >= this.#memoryBase && last <= this.#memoryLimit) ||
      (address >= this.#prefetchableBase && last <= this.#prefetchableLimit)
    );
  }

  /** Whether `bus` is behind the port. */
  routesBus(bus: number): boolean {
    return bus >= this.#secondaryBus && bus <= this.#subordinateBus;
  }

  #boot(): void {
    const { secondaryBus, nonPrefetchableBase, prefetchableBase } = this.options;
    const { nonPrefetchableBytes, prefetchableBytes } = this.options;
    const { config } = this;
    this.#program(
      secondaryBus,
      { base: nonPrefetchableBase, limit: nonPrefetchableBase + nonPrefetchableBytes - 1 },
      { base: prefetchableBase, limit: prefetchableBase + prefetchableBytes - 1 },
    );
    config.write(
      this.#pcieOffset + SLOT_CONTROL,
      SLTCTL_PRESENCE_DETECT_CHANGED_ENABLE |
        SLTCTL_DATA_LINK_LAYER_STATE_CHANGED_ENABLE |
        SLTCTL_HOT_PLUG_INTERRUPT_ENABLE,
      3,
    );
    this.writeConfig(COMMAND, COMMAND_MEMORY_AND_BUS_MASTER, 3);
  }

  #program(secondaryBus: number, memory: AddressRange, prefetchable: AddressRange): void {
    const { config } = this;
    config.write(PRIMARY_BUS_NUMBER, (secondaryBus << 16) | (secondaryBus << 8), 15);
    config.write(MEMORY_BASE, encoded(memory), 15);
    config.write(PREFETCHABLE_MEMORY_BASE, encoded(prefetchable), 15);
    const { base, limit } = isEmpty(prefetchable) ? { base: 0, limit: 0 } : prefetchable;
    config.write(PREFETCHABLE_BASE_UPPER_32, Math.floor(base / TWO_TO_32), 15);
    config.write(PREFETCHABLE_LIMIT_UPPER_32, Math.floor(limit / TWO_TO_32), 15);
  }

  #readRouting(): void {
    const enabled = this.config.memoryEnable;
    const memory = enabled ? this.#header.memoryWindow : undefined;
    const prefetchable = enabled ? this.#header.prefetchableWindow : undefined;
    this.#memoryBase = memory?.base ?? 0;
    this.#memoryLimit = memory?.limit ?? -1;
    this.#prefetchableBase = prefetchable?.base ?? 0;
    this.#prefetchableLimit = prefetchable?.limit ?? -1;
    this.#secondaryBus = this.#header.secondaryBus;
    this.#subordinateBus = this.#secondaryBus === 0 ? -1 : this.#header.subordinateBus;
  }
}

const isEmpty = ({ base, limit }: AddressRange): boolean => limit < base;

const encoded = (range: AddressRange): number =>
  isEmpty(range) ? EMPTY_WINDOW : encodeWindow(range.base, range.limit);

function checkPortOptions(virtualSlot: number, options: VirtualPortOptions): void {
  const fail = (what: string): never => {
    throw new DxpuError('invalid_argument', `virtual slot ${virtualSlot}: ${what}`);
  };
  const { secondaryBus } = options;
  if (!Number.isInteger(secondaryBus) || secondaryBus < 1 || secondaryBus > 255) {
    fail(`secondary bus ${secondaryBus} is not from 1 to 255`);
  }
  const check = (name: string, base: number, bytes: number, end: number): void => {
    if (base < 0 || bytes < 0 || base % MIB !== 0 || bytes % MIB !== 0) {
      fail(`the ${name} window must start at, and measure, a multiple of 1 MiB`);
    }
    if (base + bytes > end) fail(`the ${name} window reaches beyond 0x${end.toString(16)}`);
  };
  check('non-prefetchable', options.nonPrefetchableBase, options.nonPrefetchableBytes, TWO_TO_32);
  check('prefetchable', options.prefetchableBase, options.prefetchableBytes, 2 ** 53);
}
