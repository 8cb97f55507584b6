/** A host proxy as far as a pool can tell: the rules of `fabric/host-proxy`. Its `ModelSystem` finds functions. */
import type { HostDataPlane, HostPeer, HostRowOrder } from '#agent/core/data-plane';
import type { Prng } from '#base/prng';
import type { Nanos } from '#base/units';
import type { VirtualClock } from '#base/virtual-clock';
import type { GpuNodeReport, HostSlotReport, PathReport } from '#proto/agent-messages';
import type { SlotWatch } from './model-box.ts';
import { isSameHostRow, ModelHostSlot } from './model-host-slot.ts';
import type { HostSide, ModelLinks } from './model-links.ts';
import { ModelSystem } from './model-system.ts';
import type { ClusterPlan, HostPlan } from './plan.ts';
import { sameOrNew } from './same-or-new.ts';

export const PATH = 'net0';

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
  readonly #system: ModelSystem;
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
    const { clock, prng, plan } = options;
    this.#system = new ModelSystem({
      clock,
      prng,
      plan,
      nodeBehind: (slot) => this.#nodeBehind(slot),
      isReached: (slot) => this.#isReached(slot),
      onChange: (slot, ordered) => this.#changed(slot, ordered),
    });
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

  setRows(_now: Nanos, rows: readonly HostRowOrder[]): string {
    const refused = this.#setRows(rows);
    this.#isBehind = refused !== '';
    return refused;
  }

  #setRows(rows: readonly HostRowOrder[]): string {
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
      this.#applySaid(slot);
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
    this.#system.enumerate(slot);
  }

  unplug(_now: Nanos, number: number, surprise: boolean): void {
    const slot = this.host[number];
    if (slot?.row === undefined) return;
    slot.plugged = false;
    if (surprise || slot.fn === undefined) {
      slot.dropFunction();
      this.#changed(slot, true);
      return;
    }
    slot.leaving = true;
    if (!slot.inUse) this.#system.leave(slot);
  }

  sessionUp(_now: Nanos, box: string): void {
    this.#said.set(box, new Map());
    this.#options.onChange();
  }

  sessionResumed(_now: Nanos, box: string): void {
    for (const slot of this.host) if (slot.row?.box === box) this.#applySaid(slot);
  }

  sessionDown(_now: Nanos, box: string, why: string): void {
    this.#said.delete(box);
    for (const slot of this.host) {
      if (slot.row?.box !== box || slot.session === 0) continue;
      this.#contain(slot, `link to box ${box} is down: ${why}`);
    }
    this.#options.onChange();
  }

  boxSaid(_now: Nanos, box: string, number: number, generation: number, isReady: boolean): void {
    this.#said.get(box)?.set(number, { generation, isReady });
    for (const slot of this.host) {
      if (slot.row?.box === box && slot.row.boxSlot === number) this.#applySaid(slot);
    }
  }

  kill(): void {
    this.#dead = true;
    this.#system.kill();
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

  #applySaid(slot: ModelHostSlot): void {
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
    this.#system.enumerate(slot);
    this.#changed(slot, false);
  }

  #contain(slot: ModelHostSlot, reason: string): void {
    slot.state = 'contained';
    slot.reason = reason;
    slot.session = 0;
    slot.dropFunction();
    this.#changed(slot, false);
  }

  #unbind(slot: ModelHostSlot): void {
    const { row } = slot;
    if (row === undefined) return;
    if (this.faults.keepsRows === true) slot.secret.push(row);
    slot.dropFunction();
    slot.row = undefined;
    slot.state = 'unused';
    slot.reason = '';
    slot.session = 0;
    slot.plugged = false;
    this.#options.watch.slotChanged(row.box, row.boxSlot, this.id);
    this.#options.onChange();
  }

  #nodeBehind({ row }: ModelHostSlot): GpuNodeReport | undefined {
    return row && this.#options.nodeAt(row.box, row.boxSlot);
  }

  #isReached({ row }: ModelHostSlot): boolean {
    const link = row && this.#options.links.of(this.id, row.box);
    return link?.isUp === true && !link.isCut;
  }

  #changed(slot: ModelHostSlot, ordered: boolean): void {
    if (this.#dead) return;
    const { row } = slot;
    const by = ordered ? this.id : '';
    if (row !== undefined) this.#options.watch.slotChanged(row.box, row.boxSlot, by);
    this.#options.onChange();
  }
}
