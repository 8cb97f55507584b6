/**
 * A host proxy with its soft host as far as a pool can tell: the rules of `fabric/host-proxy`, a system
 * that takes its time to find functions, and programs that hold them for a while.
 */
import type { HostDataPlane, HostPeer, HostRowOrder } from '#agent/core/data-plane';
import type { Prng } from '#base/prng';
import { type Nanos, nanos } from '#base/units';
import type { VirtualClock } from '#base/virtual-clock';
import type { GpuNodeReport, HostSlotReport, PathReport } from '#proto/agent-messages';
import { type SlotWatch, sameOrNew } from './model-box.ts';
import { isSameHostRow, ModelHostSlot, placeBars } from './model-host-slot.ts';
import type { HostSide, ModelLinks } from './model-links.ts';
import type { ClusterPlan, HostPlan } from './plan.ts';

export const PATH = 'net0';

/** Config reads that nobody answers are tried again. */
const RETRY_NS = 200e6;

export interface ModelHostFaults {
  /** Rows that are taken away stay in force in secret. */
  keepsRows?: boolean;
  /** No table can be put in force. */
  refuses?: boolean;
}

export interface ModelHostOptions {
  readonly host: HostPlan;
  readonly clock: VirtualClock;
  readonly prng: Prng;
  readonly plan: ClusterPlan;
  readonly links: ModelLinks;
  readonly watch: SlotWatch;
  readonly faults: ModelHostFaults;
  /** The GPU node in a box slot, as config reads show it. */
  readonly nodeAt: (box: string, slot: number) => GpuNodeReport | undefined;
  readonly onChange: () => void;
}

export class ModelHost implements HostDataPlane, HostSide {
  readonly id: string;
  readonly host: readonly ModelHostSlot[];
  readonly faults: ModelHostFaults;
  readonly #options: ModelHostOptions;
  readonly #peers = new Set<string>();
  /** What each box said of its slots in the session of now. */
  readonly #said = new Map<string, Map<number, { generation: number; isReady: boolean }>>();
  readonly #highestOfBoxSlot = new Map<string, number>();
  #isBehind = false;
  #dead = false;

  constructor(options: ModelHostOptions) {
    this.#options = options;
    this.id = options.host.id;
    this.faults = { ...options.faults };
    this.host = options.host.windows.map((plan, number) => new ModelHostSlot(number, plan));
  }

  slots(): readonly HostSlotReport[] {
    return this.host.map((slot) =>
      sameOrNew(slot, {
        slot: slot.number,
        secondaryBus: slot.plan.secondaryBus,
        nonPrefetchable: slot.nonPrefetchable,
        prefetchable: slot.prefetchable,
        row: slot.row,
        state: slot.state,
        function: slot.fn,
        inUse: slot.inUse,
        problem: slot.problem,
        reason: slot.reason,
      }),
    );
  }

  paths(): readonly PathReport[] {
    const { links } = this.#options;
    return [...this.#peers].map((box) => {
      const link = links.of(this.id, box);
      const up = link?.hostUp === true;
      const problem = up ? '' : 'no session';
      return { box, path: PATH, up, rttNs: link?.rttNs ?? 0, bitsPerSecond: 100e9, problem };
    });
  }

  /** The newest table is not in force. */
  get isBehind(): boolean {
    return this.#isBehind;
  }

  setRows(now: Nanos, rows: readonly HostRowOrder[]): string {
    const refused = this.#setRows(now, rows);
    this.#isBehind = refused !== '';
    return refused;
  }

  #setRows(now: Nanos, rows: readonly HostRowOrder[]): string {
    if (this.faults.refuses === true) return 'virtual slot 0: memory is where its window is';
    const next = new Map<number, HostRowOrder>();
    const boxSlots = new Set<string>();
    for (const row of rows) {
      const slot = this.host[row.slot];
      if (slot === undefined) return `virtual slot ${row.slot}: there is none`;
      if (next.has(row.slot)) return `virtual slot ${row.slot}: has two rows`;
      next.set(row.slot, row);
      const key = `${row.box} ${row.boxSlot}`;
      if (boxSlots.has(key)) return `virtual slot ${row.slot}: ${key} has a row already`;
      boxSlots.add(key);
      if (isSameHostRow(slot.row, row)) continue;
      const highest = Math.max(slot.highestGeneration, this.#highestOfBoxSlot.get(key) ?? 0);
      if (row.generation <= highest) {
        return `virtual slot ${row.slot}: generation ${row.generation} was used before`;
      }
    }
    for (const slot of this.host) {
      if (slot.row !== undefined && !isSameHostRow(slot.row, next.get(slot.number)))
        this.#unbind(slot);
    }
    for (const slot of this.host) {
      const after = next.get(slot.number);
      if (after === undefined || slot.row !== undefined) continue;
      const { box, boxSlot, generation } = after;
      slot.row = { box, boxSlot, generation };
      slot.state = 'waiting';
      slot.reason = 'the box has not said that the slot is ready';
      slot.highestGeneration = generation;
      this.#highestOfBoxSlot.set(`${box} ${boxSlot}`, generation);
      this.#applySaid(now, slot);
      this.#changed(slot, true);
    }
    return '';
  }

  setPeers(_now: Nanos, peers: readonly HostPeer[]): void {
    this.#peers.clear();
    for (const { box } of peers) this.#peers.add(box);
    this.#options.links.setPeers(this.id, this.#peers);
  }

  plug(_now: Nanos, number: number): void {
    const slot = this.host[number];
    if (slot?.row === undefined) return;
    slot.plugged = true;
    slot.leaving = false;
    this.#enumerate(slot);
  }

  unplug(_now: Nanos, number: number, surprise: boolean): void {
    const slot = this.host[number];
    if (slot?.row === undefined) return;
    slot.plugged = false;
    if (surprise || slot.fn === undefined) {
      this.#removeFunction(slot, true);
      return;
    }
    slot.leaving = true;
    if (!slot.inUse) this.#leave(slot);
  }

  sessionUp(_now: Nanos, box: string): void {
    this.#said.set(box, new Map());
    this.#options.onChange();
  }

  sessionResumed(now: Nanos, box: string): void {
    for (const slot of this.host) if (slot.row?.box === box) this.#applySaid(now, slot);
  }

  sessionDown(_now: Nanos, box: string, why: string): void {
    this.#said.delete(box);
    for (const slot of this.host) {
      if (slot.row?.box !== box || slot.session === 0) continue;
      this.#contain(slot, `link to box ${box} is down: ${why}`);
    }
    this.#options.onChange();
  }

  boxSaid(now: Nanos, box: string, number: number, generation: number, isReady: boolean): void {
    this.#said.get(box)?.set(number, { generation, isReady });
    for (const slot of this.host) {
      if (slot.row?.box === box && slot.row.boxSlot === number) this.#applySaid(now, slot);
    }
  }

  kill(): void {
    this.#dead = true;
    for (const slot of this.host) {
      const { row } = slot;
      slot.row = undefined;
      slot.secret = [];
      slot.fn = undefined;
      slot.state = 'unused';
      slot.epoch++;
      if (row !== undefined) this.#options.watch.slotChanged(row.box, row.boxSlot, '');
    }
    this.#options.links.died(this.id);
  }

  #applySaid(_now: Nanos, slot: ModelHostSlot): void {
    const { row } = slot;
    if (row === undefined) return;
    const said = this.#said.get(row.box)?.get(row.boxSlot);
    if (said?.generation !== row.generation) return;
    if (!said.isReady) {
      if (slot.state !== 'contained') {
        this.#contain(slot, `box ${row.box} has contained slot ${row.boxSlot}`);
      }
      return;
    }
    const link = this.#options.links.of(this.id, row.box);
    if (slot.state !== 'waiting' || link === undefined || link.isCut) return;
    slot.state = 'ready';
    slot.reason = '';
    slot.session = link.session;
    this.#enumerate(slot);
    this.#changed(slot, false);
  }

  #contain(slot: ModelHostSlot, reason: string): void {
    slot.state = 'contained';
    slot.reason = reason;
    slot.session = 0;
    this.#dropFunction(slot);
    this.#changed(slot, false);
  }

  #unbind(slot: ModelHostSlot): void {
    const { row } = slot;
    if (row === undefined) return;
    if (this.faults.keepsRows === true) slot.secret.push(row);
    this.#dropFunction(slot);
    slot.row = undefined;
    slot.state = 'unused';
    slot.reason = '';
    slot.session = 0;
    slot.plugged = false;
    this.#options.watch.slotChanged(row.box, row.boxSlot, this.id);
    this.#options.onChange();
  }

  #dropFunction(slot: ModelHostSlot): void {
    slot.epoch++;
    slot.fn = undefined;
    slot.problem = undefined;
    slot.inUse = false;
    slot.leaving = false;
  }

  #removeFunction(slot: ModelHostSlot, ordered: boolean): void {
    this.#dropFunction(slot);
    this.#changed(slot, ordered);
  }

  #leave(slot: ModelHostSlot): void {
    const { epoch } = slot;
    this.#after(100e6 * this.#options.prng.float(), () => {
      if (slot.epoch !== epoch || !slot.leaving || slot.inUse) return;
      this.#removeFunction(slot, true);
    });
  }

  #enumerate(slot: ModelHostSlot): void {
    const { prng, plan } = this.#options;
    if (!slot.plugged || slot.state !== 'ready' || slot.fn !== undefined) return;
    slot.problem = undefined;
    slot.epoch++;
    const takesNs = prng.chance(0.02) ? 70e9 : plan.enumerationNs * (0.2 + prng.float());
    this.#whenReached(slot, takesNs, () => {
      if (slot.row === undefined) return;
      const node = this.#options.nodeAt(slot.row.box, slot.row.boxSlot);
      if (node === undefined) return;
      const bdf = slot.plan.secondaryBus << 8;
      const ids = { bdf, vendorId: 0xddb0, deviceId: 1 };
      slot.fn = { ...ids, bars: [], memoryEnable: false, busMaster: false };
      this.#changed(slot, false);
      this.#whenReached(slot, takesNs / 4, () => this.#setUp(slot, node));
    });
  }

  /** Behind so much work on the function, all of which needs its box to answer. */
  #whenReached(slot: ModelHostSlot, takesNs: number, fn: () => void): void {
    const { epoch } = slot;
    this.#after(takesNs, () => {
      if (slot.epoch !== epoch || slot.row === undefined) return;
      const link = this.#options.links.of(this.id, slot.row.box);
      if (link?.isUp === true && !link.isCut) fn();
      else this.#whenReached(slot, RETRY_NS, fn);
    });
  }

  #setUp(slot: ModelHostSlot, node: GpuNodeReport): void {
    const { prng, plan } = this.#options;
    const { fn } = slot;
    if (fn === undefined) return;
    const bars = placeBars(slot, node.bars);
    if (bars === undefined) {
      slot.problem = { kind: 'no-space', message: 'the BARs do not fit into the windows' };
    } else if (prng.chance(plan.unusable)) {
      slot.problem = { kind: 'not-ready', message: 'the function kept answering: retry' };
    } else {
      slot.fn = { ...fn, bars, memoryEnable: true, busMaster: true };
      this.#startProgram(slot);
    }
    this.#changed(slot, false);
  }

  /** Some functions are used for a while, some for longer than anybody waits. */
  #startProgram(slot: ModelHostSlot): void {
    const { prng, plan } = this.#options;
    const { epoch } = slot;
    if (prng.chance(plan.unusable)) {
      this.#after(10e9 * prng.float(), () => {
        if (slot.epoch !== epoch) return;
        const kind = prng.pick(['no-space', 'gone-bad']);
        slot.problem = { kind, message: 'the function cannot be used any more' };
        this.#changed(slot, false);
      });
    }
    if (!prng.chance(0.5)) return;
    const usedNs = prng.chance(0.15) ? 60e9 : 5e9 * prng.float();
    this.#after(3e9 * prng.float(), () => {
      if (slot.epoch !== epoch || slot.leaving) return;
      slot.inUse = true;
      this.#changed(slot, false);
      this.#after(usedNs, () => {
        if (slot.epoch !== epoch) return;
        slot.inUse = false;
        this.#changed(slot, false);
        if (slot.leaving) this.#leave(slot);
      });
    });
  }

  #changed(slot: ModelHostSlot, ordered: boolean): void {
    if (this.#dead) return;
    const { row } = slot;
    const by = ordered ? this.id : '';
    if (row !== undefined) this.#options.watch.slotChanged(row.box, row.boxSlot, by);
    this.#options.onChange();
  }

  #after(afterNs: number, fn: () => void): void {
    const { clock } = this.#options;
    clock.at(nanos(clock.now() + afterNs), () => {
      if (!this.#dead) fn();
    });
  }
}
