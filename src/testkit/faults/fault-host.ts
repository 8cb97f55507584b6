/**
 * One host process of a fault world, from its start to its death: the real soft host, proxy and links
 * with observers between them, and the software that uses what is plugged in.
 */
import { assert } from '#base/assert';
import { Prng } from '#base/prng';
import type { Nanos } from '#base/units';
import type { VirtualHost, VirtualHostOptions } from '#emulator/virtual-host';
import type { VirtualPool } from '#emulator/virtual-pool';
import type { HostRow } from '#fabric/mapping-table';
import type { PciFunction } from '#host/pci-function';
import type { VirtualPortOptions } from '#host/virtual-port';
import { CompletionStatus, type Tlp, TlpKind, tlpAddress } from '#pcie/tlp';
import { useAccelerator } from './accel-tenant.ts';
import type { Binding } from './binding.ts';
import { HostCanaries, MEMORY_REGIONS } from './host-canaries.ts';
import { HOSTILE_DEVICE_ID } from './hostile-device.ts';
import { watchHostile } from './hostile-tenant.ts';
import type { LinkOwner } from './link-owner.ts';
import { LinkWatch } from './link-watch.ts';
import type { TlpOrigin, WatchedPort } from './watched-port.ts';
import { type FaultOracle, Invariant } from './oracle.ts';
import { PROBE_DEVICE_ID } from './probe-device.ts';
import { ProbeDriver, type TenantContext } from './probe-driver.ts';
import { type RootOwner, RootWatch } from './root-watch.ts';
import type { SessionBook } from './session-book.ts';

export interface FaultHostOptions {
  readonly id: string;
  readonly pool: VirtualPool;
  readonly oracle: FaultOracle;
  readonly book: SessionBook;
  readonly prng: Prng;
  readonly ports: readonly VirtualPortOptions[];
  readonly maxPayloadBytes: number;
  readonly maxReadRequestBytes: number;
  readonly link: NonNullable<VirtualHostOptions['link']>;
  readonly proxyFaults: NonNullable<NonNullable<VirtualHostOptions['proxy']>['faults']>;
  /** What a virtual slot is bound to in the world. */
  bindingAt(virtualSlot: number): Binding | undefined;
  /** Whether tenants go on although their work is done. */
  isWanted(): boolean;
  sessionEnding(peer: string): void;
}

export class FaultHost implements LinkOwner, RootOwner {
  readonly kind = 'host';
  readonly name: string;
  readonly virtual: VirtualHost;
  readonly canaries: HostCanaries;
  readonly root: RootWatch;
  alive = true;
  readonly #options: FaultHostOptions;
  readonly #oracle: FaultOracle;
  /** Generations that ended with their session: they must not be heard of again. */
  readonly #ended = new Set<number>();
  #watch: LinkWatch | undefined;
  /** What a stale write must leave as it is: the memory, and a copy from before. */
  #untouchable: { memory: Uint8Array; before: Uint8Array } | undefined;
  #endingSession = false;
  #readyBefore: readonly HostRow[] = [];

  constructor(options: FaultHostOptions) {
    this.#options = options;
    this.#oracle = options.oracle;
    this.name = options.id;
    const { oracle, book, link, maxPayloadBytes, maxReadRequestBytes } = options;
    const root = new RootWatch(this, oracle, options.ports);
    this.root = root;
    this.virtual = options.pool.startHost({
      id: options.id,
      soft: {
        ports: options.ports,
        memory: MEMORY_REGIONS,
        maxPayloadBytes,
        maxReadRequestBytes,
        tags: 64,
      },
      proxy: { maxPayloadBytes, faults: options.proxyFaults },
      link,
      hotPlug: { added: (now, fn) => this.#added(now, fn) },
      watch: {
        user: (proxy) => {
          this.#watch = new LinkWatch(proxy, this, oracle, book, options.link.windows);
          return this.#watch;
        },
        rootSide: (soft) => root.rootSide(soft),
        fabric: (proxy) => root.fabric(proxy),
      },
    });
    this.canaries = new HostCanaries(options.id, this.virtual, oracle);
  }

  get watch(): LinkWatch {
    assert(this.#watch !== undefined, 'the virtual host has asked for its observer');
    return this.#watch;
  }

  kill(): void {
    this.alive = false;
    this.watch.died();
    this.#options.pool.killHost(this.name);
  }

  /** The used row of a virtual slot, if TLPs may pass for it. */
  readyRow(virtualSlot: number): HostRow | undefined {
    const { proxy } = this.virtual;
    if (proxy.slotState(virtualSlot) !== 'ready') return undefined;
    return proxy.rows.find((row) => row.virtualSlot === virtualSlot && row.used);
  }

  settle(): void {
    this.virtual.settle();
  }

  entering(_now: Nanos, origin: TlpOrigin, tlp: Tlp | undefined): void {
    if (this.#rowOf(origin) !== undefined) return;
    this.#oracle.counts.stale++;
    const { memory } = this.virtual.soft;
    if (tlp === undefined || (tlp.kind !== TlpKind.MWr32 && tlp.kind !== TlpKind.MWr64)) return;
    const bytes = 4 * tlp.lengthDw;
    if (!memory.contains(tlpAddress(tlp), bytes)) return;
    const target = memory.view(tlpAddress(tlp), bytes);
    this.#untouchable = { memory: target, before: target.slice() };
  }

  entered(): void {
    const untouchable = this.#untouchable;
    if (untouchable === undefined) return;
    this.#untouchable = undefined;
    const { memory, before } = untouchable;
    if (memory.every((byte, index) => byte === before[index])) return;
    this.#oracle.fail(Invariant.FENCED, `${this.name}: a stale write reached memory`);
  }

  sending(_now: Nanos, peer: string, slot: number, generation: number, tlp: Tlp): void {
    if (this.#ended.has(generation) && !isError(tlp)) {
      this.#oracle.fail(Invariant.LOUD, `${this.name}: goes on with generation ${generation}`);
    } else if (this.#rowOf({ peer, slot, generation }) === undefined && !isError(tlp)) {
      this.#oracle.fail(
        Invariant.FENCED,
        `${this.name}: sends kind 0x${tlp.kind.toString(16)} to slot ${slot} under ${generation}`,
      );
    }
  }

  sessionUp(): void {}

  sessionEnding(_now: Nanos, { peer: { id: peer } }: WatchedPort): void {
    this.#endingSession = true;
    this.#options.sessionEnding(peer);
    const { rows } = this.virtual.proxy;
    this.#readyBefore = rows.filter(
      (row) => row.box === peer && this.readyRow(row.virtualSlot) === row,
    );
  }

  sessionEnded(): void {
    this.#endingSession = false;
    const { proxy, soft } = this.virtual;
    for (const { virtualSlot, generation } of this.#readyBefore) {
      this.#ended.add(generation);
      const name = `${this.name} virtual slot ${virtualSlot}`;
      const state = proxy.slotState(virtualSlot);
      if (state !== 'contained') {
        this.#oracle.fail(Invariant.LOUD, `${name}: ${state} after its session ended`);
      }
      if (soft.ports[virtualSlot]?.linkActive !== false) {
        this.#oracle.fail(Invariant.LOUD, `${name}: the host saw no link-down`);
      }
      const unanswered = this.root.unanswered(virtualSlot);
      if (unanswered > 0) {
        this.#oracle.fail(Invariant.LOUD, `${name}: ${unanswered} CPU requests left unanswered`);
      }
    }
  }

  refusal(virtualSlot: number): string | undefined {
    const { origin } = this.watch;
    if (origin === undefined) return 'out of nowhere';
    const row = this.#rowOf(origin);
    if (row === undefined) {
      return `of generation ${origin.generation} of slot ${origin.slot} of ${origin.peer}`;
    }
    return row.virtualSlot === virtualSlot ? undefined : `of virtual slot ${row.virtualSlot}`;
  }

  linkChanged(_now: Nanos, virtualSlot: number, active: boolean, surprise: boolean): void {
    this.#oracle.event(`link ${this.name} ${virtualSlot} ${active} ${surprise}`);
    if (!active) {
      this.#oracle.counts.linkDowns++;
      if (this.#endingSession && !surprise) {
        this.#oracle.fail(Invariant.LOUD, `${this.name}: a session's end was shown as asked for`);
      }
      return;
    }
    const row = this.readyRow(virtualSlot);
    const generation = row?.generation ?? 0;
    if (this.watch.portTo(row?.box ?? '')?.attached !== true) {
      const name = `${this.name} virtual slot ${virtualSlot}`;
      this.#oracle.fail(Invariant.LOUD, `${name}: came up over a session without a connection`);
    }
    if (this.#ended.has(generation)) {
      this.#oracle.fail(Invariant.LOUD, `${this.name}: generation ${generation} is up again`);
    }
  }

  #rowOf({ peer, slot, generation }: TlpOrigin): HostRow | undefined {
    const { proxy } = this.virtual;
    return proxy.rows.find(
      (row) =>
        row.used &&
        row.box === peer &&
        row.slot === slot &&
        row.generation === generation &&
        proxy.slotState(row.virtualSlot) === 'ready',
    );
  }

  #added(now: Nanos, fn: PciFunction): void {
    const { virtualSlot } = fn;
    const { soft } = this.virtual;
    const binding = this.#options.bindingAt(virtualSlot);
    const row = this.readyRow(virtualSlot);
    if (binding === undefined || row === undefined) return;
    this.#oracle.counts.bindings++;
    const context: TenantContext = {
      name: `${this.name} virtual slot ${virtualSlot} generation ${row.generation}`,
      oracle: this.#oracle,
      soft,
      prng: new Prng(this.#options.prng.uint32()),
      generation: row.generation,
      work: binding.work,
      isWanted: () => this.#options.isWanted(),
      retire: (buffer) => this.canaries.retire(buffer),
    };
    const task =
      fn.deviceId === PROBE_DEVICE_ID
        ? new ProbeDriver(context, fn).run()
        : fn.deviceId === HOSTILE_DEVICE_ID
          ? watchHostile(context, fn)
          : useAccelerator(context, fn);
    soft.tasks.run(
      now,
      task,
      (_at, outcome) => {
        if (outcome.ok || fn.scope.error !== undefined) return;
        this.#oracle.fail(Invariant.BUG, `${context.name}: ${String(outcome.error)}`);
      },
      fn.scope,
    );
  }
}

/** A completion that says no: the only thing that may still be sent for what has ended. */
export function isError(tlp: Tlp): boolean {
  return tlp.kind === TlpKind.Cpl && tlp.status !== CompletionStatus.SC;
}
