/**
 * A box proxy and its GPU nodes as far as a pool can tell: the rules of `fabric/box-proxy`, with a
 * reset and scrub that takes its time.
 *
 * `ModelBox` is one process over a `BoxHardware`, which outlives it.
 */
import type { BoxDataPlane, BoxRowOrder } from '#agent/core/data-plane';
import type { Prng } from '#base/prng';
import { type Nanos, nanos } from '#base/units';
import type { VirtualClock } from '#base/virtual-clock';
import type { BoxSlotReport, GpuNodeReport } from '#proto/agent-messages';
import { type BoxHardware, isSameBoxRow, ModelBoxSlot } from './model-box-slot.ts';
import type { LinkSide, ModelLinks } from './model-links.ts';
import type { ClusterPlan } from './plan.ts';
import { sameOrNew } from './same-or-new.ts';

/** Left out on purpose, to see that the cluster notices; `keepsRows` is a lie of a hostile box too. */
export interface ModelBoxFaults {
  /** A slot counts as clean, and is ready, without a scrub. */
  noScrub?: boolean;
  /** Rows that are taken away stay in force in secret. */
  keepsRows?: boolean;
  /** No table can be put in force. */
  refuses?: boolean;
}

/** Whoever sees all that passes. */
export interface SlotWatch {
  /** What may pass to a box slot has changed: `by` the agent of this proxy, or by itself (''). */
  slotChanged(box: string, slot: number, by: string): void;
}

export interface ModelBoxOptions {
  readonly hardware: BoxHardware;
  readonly clock: VirtualClock;
  readonly prng: Prng;
  readonly plan: ClusterPlan;
  readonly links: ModelLinks;
  readonly watch: SlotWatch;
  readonly faults: ModelBoxFaults;
  readonly onChange: () => void;
}

export class ModelBox implements BoxDataPlane, LinkSide {
  readonly id: string;
  readonly box: readonly ModelBoxSlot[];
  readonly faults: ModelBoxFaults;
  readonly #options: ModelBoxOptions;
  /** Before the first table nobody knows which slots have no row. */
  #hasTable = false;
  #isBehind = false;
  #dead = false;

  constructor(options: ModelBoxOptions) {
    this.#options = options;
    this.id = options.hardware.plan.id;
    this.faults = { ...options.faults };
    this.box = options.hardware.nodes.map((hardware) => new ModelBoxSlot(hardware));
  }

  slots(): readonly BoxSlotReport[] {
    return this.box.map((slot, number) => {
      const { row, state, reason, hardware } = slot;
      const isQuiet = row === undefined && state === 'unused';
      const clean = isQuiet && !slot.dirty && !slot.isScrubbing;
      return sameOrNew(slot, { slot: number, node: hardware.node, state, clean, row, reason });
    });
  }

  /** The newest table is not in force. */
  get isBehind(): boolean {
    return this.#isBehind;
  }

  setRows(_now: Nanos, rows: readonly BoxRowOrder[]): string {
    const refused = this.#setRows(rows);
    this.#isBehind = refused !== '';
    return refused;
  }

  #setRows(rows: readonly BoxRowOrder[]): string {
    if (this.faults.refuses === true) return 'slot 0: cannot be changed now';
    const next = new Map<number, BoxRowOrder>();
    for (const row of rows) {
      const slot = this.box[row.slot];
      if (slot === undefined) return `slot ${row.slot}: this box has slots 0 to 3`;
      if (next.has(row.slot)) return `slot ${row.slot}: has two rows`;
      next.set(row.slot, row);
      if (isSameBoxRow(slot.row, row)) continue;
      if (row.generation <= slot.highestGeneration) {
        return `slot ${row.slot}: generation ${row.generation} was used before`;
      }
    }
    this.#hasTable = true;
    for (const [number, slot] of this.box.entries()) {
      const after = next.get(number);
      if (slot.row !== undefined && !isSameBoxRow(slot.row, after)) this.#fence(slot, number);
      if (after !== undefined && slot.row === undefined) this.#bind(slot, number, after);
      else if (after === undefined && slot.dirty) this.#scrub(slot, number);
    }
    return '';
  }

  sessionUp(_now: Nanos, host: string): void {
    for (const [number, slot] of this.box.entries()) {
      if (slot.row?.host !== host) continue;
      if (slot.state === 'ready') this.#join(slot, number);
      else this.#say(slot, number, false);
    }
  }

  sessionResumed(_now: Nanos, host: string): void {
    for (const [number, slot] of this.box.entries()) {
      if (slot.row?.host !== host || slot.state !== 'ready' || slot.session !== 0) continue;
      this.#join(slot, number);
    }
  }

  sessionDown(_now: Nanos, host: string, why: string): void {
    for (const [number, slot] of this.box.entries()) {
      // What became ready during a session without connection never ran in it.
      if (slot.row?.host !== host || slot.session === 0) continue;
      slot.session = 0;
      slot.state = 'contained';
      slot.reason = `link to host ${host} is down: ${why}`;
      this.#changed(number, false);
    }
  }

  /** The GPU node leaves its slot, or another is put in. */
  replaceNode(number: number, node: GpuNodeReport | undefined): void {
    const slot = this.box[number];
    if (slot === undefined || this.#dead) return;
    slot.hardware.node = node;
    slot.hardware.content = 0;
    slot.dirty = true;
    slot.session = 0;
    if (slot.row !== undefined) {
      slot.state = 'contained';
      slot.reason = 'the GPU node left';
      this.#say(slot, number, false);
    } else if (this.#hasTable) {
      this.#scrub(slot, number);
    }
    this.#changed(number, false);
  }

  kill(): void {
    this.#dead = true;
    for (const [number, slot] of this.box.entries()) {
      slot.row = undefined;
      slot.secret = [];
      slot.state = 'unused';
      this.#options.watch.slotChanged(this.id, number, '');
    }
    this.#options.links.died(this.id);
  }

  #fence(slot: ModelBoxSlot, number: number): void {
    const { row } = slot;
    if (row === undefined) return;
    if (this.faults.keepsRows === true) slot.secret.push(row);
    this.#say(slot, number, false);
    slot.row = undefined;
    slot.session = 0;
    if (slot.state !== 'quarantined') {
      slot.state = 'unused';
      slot.reason = '';
    }
    this.#changed(number, true);
  }

  #bind(slot: ModelBoxSlot, number: number, order: BoxRowOrder): void {
    slot.highestGeneration = order.generation;
    slot.row = { host: order.host, generation: order.generation };
    if (slot.state === 'quarantined') this.#say(slot, number, false);
    else if (slot.dirty) this.#scrub(slot, number);
    else this.#makeReady(slot, number);
    this.#changed(number, true);
  }

  #scrub(slot: ModelBoxSlot, number: number): void {
    if (slot.isScrubbing || slot.state === 'quarantined') return;
    const { hardware } = slot;
    if (hardware.node === undefined) return;
    const { clock, prng, plan } = this.#options;
    if (this.faults.noScrub === true) {
      this.#scrubbed(slot, number);
      return;
    }
    slot.isScrubbing = true;
    const fails = hardware.defect === 'fails' || prng.chance(plan.scrubFails);
    const isSlow = hardware.defect === 'hangs' || prng.chance(plan.scrubHangs);
    const takesNs = isSlow ? 150e9 : plan.scrubNs * (0.5 + prng.float());
    const { node } = hardware;
    clock.at(nanos(clock.now() + takesNs), () => {
      if (this.#dead) return;
      slot.isScrubbing = false;
      if (hardware.node !== node) {
        this.#scrub(slot, number);
      } else if (fails) {
        slot.state = 'quarantined';
        slot.reason = 'scrub failed: words that do not read back';
        slot.session = 0;
        this.#say(slot, number, false);
      } else {
        hardware.content = 0;
        this.#scrubbed(slot, number);
      }
      this.#changed(number, false);
    });
  }

  #scrubbed(slot: ModelBoxSlot, number: number): void {
    slot.dirty = false;
    if (slot.row !== undefined && slot.state !== 'contained') this.#makeReady(slot, number);
  }

  #makeReady(slot: ModelBoxSlot, number: number): void {
    if (slot.row === undefined || slot.state === 'quarantined') return;
    if (slot.hardware.node === undefined) return;
    slot.dirty = true;
    slot.state = 'ready';
    slot.reason = '';
    const link = this.#options.links.of(slot.row.host, this.id);
    if (link?.boxUp === true && !link.isCut) this.#join(slot, number);
  }

  #join(slot: ModelBoxSlot, number: number): void {
    const { row } = slot;
    if (row === undefined) return;
    slot.session = this.#options.links.of(row.host, this.id)?.session ?? 0;
    this.#say(slot, number, true);
    this.#options.watch.slotChanged(this.id, number, '');
  }

  #say(slot: ModelBoxSlot, number: number, isReady: boolean): void {
    const { row } = slot;
    if (row === undefined) return;
    this.#options.links.say(this.id, row.host, number, row.generation, isReady);
  }

  #changed(number: number, ordered: boolean): void {
    if (this.#dead) return;
    this.#options.watch.slotChanged(this.id, number, ordered ? this.id : '');
    this.#options.onChange();
  }
}
