/** The slots of a VM on a `FakeFabric`, with a `FakeQemu`, in virtual time. */
import { TimerDriver } from '#base/clock';
import { VirtualClock } from '#base/virtual-clock';
import type { Logger } from '#agent/daemon/logger';
import { unknownPorts } from '#agent/daemon/unknown-ports';
import { VmSlots } from '#agent/daemon/vm-slots';
import { SoftHost } from '#host/root-complex';
import type { RootSide } from '#pcie/root-port';
import { FakeFabric } from './fake-fabric.ts';
import { FakeFunction } from './fake-function.ts';
import { FakeQemu } from './fake-qemu.ts';

const MIB = 2 ** 20;
/** Windows a guest gives its ports: 32 MiB and 256 MiB, as the reserves of docs/vm.md ask for. */
export const MEMORY_BASE = 0xfc00_0000;
export const PREFETCHABLE_BASE = 2 ** 39;

export class VmSlotsRig {
  readonly clock = new VirtualClock();
  readonly qemu = new FakeQemu(this.clock);
  readonly soft: SoftHost;
  readonly fabric: FakeFabric;
  readonly slots: VmSlots;
  /** What the fabric tells. */
  readonly root: RootSide;
  readonly log: string[] = [];
  /** Memory the slots may reach, as `slot: base+bytes`. */
  readonly memory = new Set<string>();
  routings = 0;
  readonly #driver: TimerDriver | undefined;

  constructor(count = 1) {
    this.soft = new SoftHost({
      ports: unknownPorts(count),
      memory: [],
      onDeadline: () => this.#driver?.update(),
    });
    const { soft, clock, qemu } = this;
    this.#driver = new TimerDriver(clock, soft);
    this.root = VmSlots.rootSide(soft, () => this.slots);
    this.fabric = new FakeFabric(clock, this.root, soft.ports);
    soft.attach(this.fabric);
    const say = (one: object | string, text?: string): void => {
      this.log.push(text ?? (one as string));
    };
    const log: Logger = { debug: say, info: say, warn: say, error: say };
    const rootPorts = Array.from({ length: count }, (_, slot) => `rp${slot}`);
    this.slots = new VmSlots({
      soft,
      clock,
      log,
      qmp: '/vm/qmp',
      rootPorts,
      socketPrefix: '/vm/vfio',
      serve: (device, path) => qemu.serve(device, path),
      monitor: (user) => qemu.monitor(user),
      proxy: {
        registerSlotMemory: (slot, base, bytes) =>
          this.memory.add(`${slot}: ${base}+${bytes.length}`),
        unregisterSlotMemory: (slot, base) => {
          for (const one of this.memory) {
            if (one.startsWith(`${slot}: ${base}+`)) this.memory.delete(one);
          }
        },
      },
      onChanged: () => {},
      onRouting: () => {
        this.routings++;
      },
      settle: () => {},
    });
    for (let slot = 0; slot < count; slot++) this.bootPort(slot);
  }

  /** What the guest's firmware does for a port: bus `slot + 1`, windows one behind the other. */
  bootPort(slot: number, bus = slot + 1): void {
    const memory = MEMORY_BASE + slot * 32 * MIB;
    const prefetchable = PREFETCHABLE_BASE + slot * 256 * MIB;
    this.qemu.ports.set(`rp${slot}`, {
      bus,
      memory: [memory, memory + 32 * MIB - 1],
      prefetchable: [prefetchable, prefetchable + 256 * MIB - 1],
    });
  }

  /** As before its firmware has run: QEMU shows registers of 0. */
  blankPort(slot: number): void {
    this.qemu.ports.set(`rp${slot}`, {
      bus: 0,
      memory: [0, 0xf_ffff],
      prefetchable: [0, 0xf_ffff],
    });
  }

  pass(durationNs: number): void {
    this.clock.runUntil(this.clock.now() + durationNs);
  }

  /** Puts a function with one 64-bit prefetchable BAR into a slot. */
  plug(slot = 0, sizeBytes = 16 * MIB, vectors = 4): FakeFunction {
    const fn = new FakeFunction({
      bars: [{ index: 0, sizeBytes, is64Bit: true, prefetchable: true }],
      vectors,
    });
    this.fabric.plug(slot, fn);
    return fn;
  }

  /** Connected, a function plugged, and used by the guest at the start of its window. */
  use(slot = 0): FakeFunction {
    this.qemu.connect();
    this.pass(0.1e9);
    const fn = this.plug(slot);
    this.pass(0.1e9);
    this.place(slot);
    return fn;
  }

  /** Has the function of a slot leave. */
  leave(slot = 0): { readonly hasLeft: boolean } {
    const leaving = { hasLeft: false };
    this.slots.leave(this.clock.now(), slot, () => {
      leaving.hasLeft = true;
    });
    return leaving;
  }

  place(slot = 0, address = PREFETCHABLE_BASE + slot * 256 * MIB): void {
    const device = this.qemu.device(slot);
    device.place(new Map([[0, address]]));
    device.configWrite(0x04, 0x0006);
  }
}
