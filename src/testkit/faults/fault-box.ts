/** One box process of a fault world, from its start to its death. */
import { assert } from '#base/assert';
import type { Prng } from '#base/prng';
import type { Nanos } from '#base/units';
import { createAccelerator } from '#devices/accel';
import type { VirtualBox, VirtualBoxOptions } from '#emulator/virtual-box';
import type { VirtualPool } from '#emulator/virtual-pool';
import type { BoxRow } from '#fabric/mapping-table';
import type { Device } from '#pcie/device';
import type { Tlp } from '#pcie/tlp';
import type { Binding } from './binding.ts';
import { isError } from './fault-host.ts';
import { HostileDevice } from './hostile-device.ts';
import type { LinkOwner } from './link-owner.ts';
import { LinkWatch } from './link-watch.ts';
import type { TlpOrigin, WatchedPort } from './watched-port.ts';
import { type FaultOracle, Invariant } from './oracle.ts';
import { ProbeDevice } from './probe-device.ts';
import type { SessionBook } from './session-book.ts';
import { type DeviceOwner, WatchedDevice } from './watched-device.ts';

export interface FaultBoxOptions {
  readonly id: string;
  readonly pool: VirtualPool;
  readonly oracle: FaultOracle;
  readonly book: SessionBook;
  readonly prng: Prng;
  /** Kind of the device in each slot. */
  readonly slots: readonly Binding['kind'][];
  readonly accelTags: number;
  readonly outstandingReads: number | undefined;
  readonly fairShareBytes: number;
  readonly link: NonNullable<VirtualBoxOptions['link']>;
  readonly proxyFaults: NonNullable<VirtualBoxOptions['faults']>;
  /** Plants a device whose doings do not follow from the seed. */
  readonly unseeded: boolean;
}

export class FaultBox implements LinkOwner, DeviceOwner {
  readonly kind = 'box';
  readonly name: string;
  readonly virtual: VirtualBox;
  readonly devices: readonly WatchedDevice[];
  alive = true;
  readonly #options: FaultBoxOptions;
  readonly #oracle: FaultOracle;
  readonly #ended = new Set<number>();
  #watch: LinkWatch | undefined;
  #readyBefore: readonly BoxRow[] = [];
  /** Ready, but never announced in the session that ends: no part of it. */
  #spared: readonly BoxRow[] = [];

  constructor(options: FaultBoxOptions) {
    this.#options = options;
    this.#oracle = options.oracle;
    this.name = options.id;
    const { oracle, book, outstandingReads } = options;
    this.devices = options.slots.map(
      (kind, slot) => new WatchedDevice(this.#makeDevice(kind, slot), slot, this, oracle),
    );
    this.virtual = options.pool.startBox({
      id: options.id,
      devices: new Map(this.devices.map((device) => [device.slot, device])),
      link: options.link,
      faults: options.proxyFaults,
      fairShareBytes: options.fairShareBytes,
      ...(outstandingReads === undefined ? {} : { outstandingReads }),
      watch: (proxy) => {
        this.#watch = new LinkWatch(proxy, this, oracle, book, options.link.windows);
        return this.#watch;
      },
    });
  }

  get watch(): LinkWatch {
    assert(this.#watch !== undefined, 'the virtual box has asked for its observer');
    return this.#watch;
  }

  kill(): void {
    this.alive = false;
    this.watch.died();
    this.#options.pool.killBox(this.name);
  }

  hostileAt(slot: number): HostileDevice | undefined {
    const device = this.devices[slot]?.inner;
    return device instanceof HostileDevice ? device : undefined;
  }

  settle(): void {
    this.virtual.settle();
  }

  entering(_now: Nanos, { peer, slot, generation }: TlpOrigin): void {
    const row = this.#readyRow(slot);
    if (row?.generation !== generation || row.host !== peer) this.#oracle.counts.stale++;
  }

  entered(): void {}

  sending(_now: Nanos, peer: string, slot: number, generation: number, tlp: Tlp): void {
    if (isError(tlp)) return;
    if (this.#ended.has(generation)) {
      this.#oracle.fail(Invariant.LOUD, `${this.name}: goes on with generation ${generation}`);
      return;
    }
    const row = this.#readyRow(slot);
    if (row?.generation === generation && row.host === peer) return;
    this.#oracle.fail(
      Invariant.FENCED,
      `${this.name}: sends kind 0x${tlp.kind.toString(16)} of slot ${slot} under ${generation}`,
    );
  }

  sessionUp(): void {}

  sessionEnding(_now: Nanos, { peer: { id: peer }, announced }: WatchedPort): void {
    const { rows } = this.virtual.proxy;
    const ready = rows.filter((row) => row.host === peer && this.#readyRow(row.slot) === row);
    this.#readyBefore = ready.filter((row) => announced.has(row.generation));
    this.#spared = ready.filter((row) => !announced.has(row.generation));
  }

  sessionEnded(now: Nanos): void {
    for (const { slot, generation } of this.#spared) {
      this.#oracle.counts.spared++;
      const state = this.virtual.proxy.slotState(slot);
      if (state === 'ready') continue;
      this.#oracle.fail(
        Invariant.PROGRESS,
        `${this.name} slot ${slot}: ${state}, as a session ended in which ${generation} never ran`,
      );
    }
    for (const { slot, generation } of this.#readyBefore) {
      this.#ended.add(generation);
      const state = this.virtual.proxy.slotState(slot);
      if (state !== 'contained') {
        const name = `${this.name} slot ${slot}`;
        this.#oracle.fail(Invariant.LOUD, `${name}: ${state} after its session ended`);
      }
      const oldestNs = this.devices[slot]?.oldestNs ?? Infinity;
      if (oldestNs < now) {
        const name = `${this.name} slot ${slot}`;
        this.#oracle.fail(Invariant.LOUD, `${name}: a DMA request left without an answer`);
      }
    }
  }

  refusal(slot: number): string | undefined {
    const { origin } = this.watch;
    if (origin === undefined) return 'out of nowhere';
    const { peer, generation } = origin;
    const row = this.#readyRow(slot);
    if (
      origin.slot === slot &&
      row?.host === peer &&
      row.generation === generation &&
      !this.#ended.has(generation)
    ) {
      return undefined;
    }
    return `for slot ${origin.slot} under ${generation} from ${peer}`;
  }

  /** The row of a slot, if TLPs may pass for it. */
  #readyRow(slot: number): BoxRow | undefined {
    const { proxy } = this.virtual;
    if (proxy.slotState(slot) !== 'ready') return undefined;
    return proxy.rows.find((row) => row.slot === slot && row.valid && row.used);
  }

  #makeDevice(kind: Binding['kind'], slot: number): Device {
    const { oracle, prng, accelTags, unseeded } = this.#options;
    const name = `${this.name} slot ${slot}`;
    switch (kind) {
      case 'probe':
        return new ProbeDevice(name, oracle, prng.uint32(), unseeded);
      case 'hostile':
        return new HostileDevice(name, oracle, prng.fork());
      default:
        return createAccelerator({
          uuid: `00000000-0000-4000-8000-${slot.toString().padStart(12, '0')}`,
          memoryBytes: 2 ** 20,
          channels: 1,
          tags: accelTags,
          prefetchCommands: 4,
        });
    }
  }
}
