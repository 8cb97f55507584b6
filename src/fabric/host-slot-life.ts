/**
 * The life of a host proxy's virtual slots: bound to a row, ready when the box says so, contained when
 * the session or the box ends it; and the function behind it plugged in and taken out. State is changed
 * before anybody is told: an effect may call back.
 */
import type { Nanos } from '#base/units';
import type { HostDownstream } from './host-downstream.ts';
import type { HostProxyOptions } from './host-proxy-options.ts';
import { type FunctionPlace, type HostPeer, HostSlot, type HostSlotState } from './host-slot.ts';
import { HostTableHistory, isSameHostBinding } from './host-table-history.ts';
import { SlotState } from './link-user.ts';
import type { HostRow } from './mapping-table.ts';
import { MemoryMap } from './memory-map.ts';
import type { TableError } from './table-check.ts';

/** A slot through which nothing passes any more, as it was before. */
interface FencedSlot {
  readonly slot: HostSlot;
  readonly generation: number;
  readonly wasReady: boolean;
  readonly wasIn: boolean;
}

export class HostSlotLife {
  readonly #options: HostProxyOptions;
  readonly #memory: MemoryMap;
  readonly #downstream: HostDownstream;
  readonly #slots = new Map<number, HostSlot>();
  readonly #history = new HostTableHistory();

  /** `memory` is of all slots, unless each has its own. */
  constructor(options: HostProxyOptions, memory: MemoryMap, downstream: HostDownstream) {
    this.#options = options;
    this.#memory = memory;
    this.#downstream = downstream;
  }

  /** `undefined` for a slot nobody has asked `slot` for, nor bound. */
  known(virtualSlot: number): HostSlot | undefined {
    return this.#slots.get(virtualSlot);
  }

  slot(virtualSlot: number): HostSlot {
    let slot = this.#slots.get(virtualSlot);
    if (slot === undefined) {
      const { ownMemory = false, aer } = this.#options;
      const memory = ownMemory ? new MemoryMap() : this.#memory;
      slot = new HostSlot(virtualSlot, memory, aer?.(virtualSlot));
      this.#slots.set(virtualSlot, slot);
    }
    return slot;
  }

  checkHistory(rows: readonly HostRow[]): TableError[] {
    return this.#history.check(rows);
  }

  /** Fences the slots whose binding is not among `rows`. `unbound` tells of it, once the table is new. */
  unbind(rows: readonly HostRow[]): FencedSlot[] {
    const next = new Map(rows.filter((row) => row.used).map((row) => [row.virtualSlot, row]));
    const left: FencedSlot[] = [];
    for (const slot of this.#slots.values()) {
      if (slot.row === undefined) continue;
      if (isSameHostBinding(slot.row, next.get(slot.virtualSlot))) continue;
      left.push(fence(slot, 'unused'));
      this.#history.unbound(slot.virtualSlot);
      slot.row = undefined;
    }
    return left;
  }

  /** The slot of a row, which is bound now if it is used. */
  bind(row: HostRow): HostSlot {
    const slot = this.slot(row.virtualSlot);
    if (!row.used) return slot;
    if (slot.row === undefined) {
      slot.bind(row, this.#options.holdsFunctions === true ? 'held' : 'in');
      this.#history.bound(row);
    } else {
      slot.row = row;
    }
    return slot;
  }

  unbound(now: Nanos, left: readonly FencedSlot[]): void {
    this.#downstream.abort(
      now,
      left.map(({ slot }) => slot),
    );
    const surprise = this.#options.holdsFunctions === true;
    const reason = 'the row was taken out of the table';
    for (const one of left) this.#tellDown(now, one, surprise, reason);
  }

  contain(now: Nanos, slots: readonly HostSlot[], reason: string): void {
    const contained = slots.map((slot) => fence(slot, 'contained'));
    if (this.#options.faults?.noAbort !== true) this.#downstream.abort(now, slots);
    for (const one of contained) this.#tellDown(now, one, true, reason);
  }

  /** Lets what the box said of its slots take effect (`applyState`). */
  applyStates(now: Nanos, peer: HostPeer): void {
    for (const slot of peer.slots.keys()) this.applyState(now, peer, slot);
  }

  /** Lets what the box said of a slot take effect, if it speaks of the generation in the table. */
  applyState(now: Nanos, peer: HostPeer, boxSlot: number): void {
    const { onEvent, rootSide, faults } = this.#options;
    const slot = peer.slots.get(boxSlot);
    const said = peer.states.get(boxSlot);
    if (slot?.row === undefined || said === undefined || !peer.live) return;
    if (said.generation !== slot.row.generation) return;
    if (said.state === SlotState.GONE) {
      this.contain(now, [slot], `box ${peer.box} has contained slot ${boxSlot}`);
      return;
    }
    const again = slot.state === 'contained' && faults?.noContainment === true;
    if (slot.state !== 'waiting' && !again) return;
    if (!peer.link.attached) {
      // Should the session end, it must not take a binding with it that never ran in it.
      peer.deferred = true;
      return;
    }
    slot.state = 'ready';
    slot.session = peer.link;
    if (slot.place === 'in') slot.link = peer.link;
    const { virtualSlot, generation } = slot;
    onEvent?.(now, { kind: 'slot-up', virtualSlot, generation });
    // Whoever was told may have moved it.
    if (slot.link !== undefined) rootSide.linkActive(now, virtualSlot, true, false);
  }

  plug(now: Nanos, virtualSlot: number): void {
    const slot = this.#slots.get(virtualSlot);
    if (slot?.row === undefined || slot.place !== 'held') return;
    slot.place = 'in';
    if (slot.state !== 'ready') return;
    slot.link = slot.session;
    this.#options.rootSide.linkActive(now, virtualSlot, true, false);
  }

  unplug(now: Nanos, virtualSlot: number, surprise: boolean): void {
    const slot = this.#slots.get(virtualSlot);
    if (slot?.row === undefined || slot.place !== 'in') return;
    const wasIn = slot.link !== undefined;
    slot.place = wasIn ? 'left' : 'held';
    if (!wasIn) return;
    slot.link = undefined;
    this.#downstream.abort(now, [slot]);
    this.#gone(now, slot, surprise);
  }

  place(virtualSlot: number): FunctionPlace | undefined {
    const slot = this.#slots.get(virtualSlot);
    return slot?.row === undefined ? undefined : slot.place;
  }

  /** `surprise` counts where the function was in its slot. */
  #tellDown(now: Nanos, fenced: FencedSlot, surprise: boolean, reason: string): void {
    const { generation, wasReady, wasIn } = fenced;
    if (!wasReady) return;
    const { onEvent } = this.#options;
    const { virtualSlot } = fenced.slot;
    onEvent?.(now, {
      kind: 'slot-down',
      virtualSlot,
      generation,
      surprise: surprise && wasIn,
      reason,
    });
    if (wasIn) this.#gone(now, fenced.slot, surprise);
  }

  /** The root hears of it last: nothing of the function is left by then. */
  #gone(now: Nanos, slot: HostSlot, surprise: boolean): void {
    const { rootSide } = this.#options;
    slot.intx.release(now, rootSide);
    rootSide.linkActive(now, slot.virtualSlot, false, surprise);
  }
}

function fence(slot: HostSlot, state: HostSlotState): FencedSlot {
  const { generation } = slot;
  const fenced = {
    slot,
    generation,
    wasReady: slot.state === 'ready',
    wasIn: slot.link !== undefined,
  };
  slot.state = state;
  slot.session = undefined;
  slot.link = undefined;
  return fenced;
}
