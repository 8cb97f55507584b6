/**
 * The life of a box proxy's slots: ready under a row, in a session when there is one, fenced when either
 * goes, then reset and scrubbed. State is changed before anybody is told: an effect may call back.
 */
import { AssertionError } from '#base/assert';
import type { Nanos } from '#base/units';
import type { BoxProxyFaults, BoxProxyOptions } from './box-proxy-options.ts';
import type { BoxPeer, BoxSlot, BoxSlots, BoxSlotState } from './box-slot.ts';
import { isActiveRow } from './box-table.ts';
import { SlotState } from './link-user.ts';
import type { BoxRow } from './mapping-table.ts';
import { type OutstandingRequest, setAbort } from './outstanding-requests.ts';
import type { Peers } from './peers.ts';
import type { ScratchTlps } from './scratch-tlps.ts';
import { TableChecker, type TableError } from './table-check.ts';

/** Between two answers to a device that asks again and again while nothing can pass. */
const ABORT_INTERVAL_NS = 1000;

interface SlotAndRow {
  readonly slot: BoxSlot;
  readonly row: BoxRow;
}

/** Slots whose binding ends, with the row it had, and those whose binding begins. */
interface Turnover {
  readonly left: readonly SlotAndRow[];
  readonly entered: readonly SlotAndRow[];
}

export class BoxSlotLife {
  readonly #slots: BoxSlots;
  readonly #peers: Peers<BoxPeer>;
  readonly #scratch: ScratchTlps;
  readonly #options: BoxProxyOptions;
  readonly #faults: BoxProxyFaults;
  /** When devices are answered that have asked while nothing can pass. */
  abortAtNs = Infinity;

  constructor(
    slots: BoxSlots,
    peers: Peers<BoxPeer>,
    scratch: ScratchTlps,
    options: BoxProxyOptions,
  ) {
    this.#slots = slots;
    this.#peers = peers;
    this.#scratch = scratch;
    this.#options = options;
    this.#faults = options.faults ?? {};
  }

  checkHistory(rows: readonly BoxRow[]): TableError[] {
    const check = new TableChecker();
    for (const [index, row] of rows.entries()) {
      const slot = this.#slots.at(row.slot);
      if (!isActiveRow(row) || slot === undefined || isSameBinding(row, slot.row)) continue;
      check.newGeneration(index, row.generation, slot.highestGeneration);
    }
    return check.errors;
  }

  /** Fences the slots whose row goes or changes. `turnOver` does the rest, once the table is new. */
  unbind(rows: readonly BoxRow[]): Turnover {
    const left: SlotAndRow[] = [];
    const entered: SlotAndRow[] = [];
    const next = new Map(rows.filter(isActiveRow).map((row) => [row.slot, row]));
    for (const slot of this.#slots.list) {
      const { row } = slot;
      const after = next.get(slot.slot);
      if (row !== undefined && isSameBinding(row, after)) {
        slot.row = after;
        continue;
      }
      if (row !== undefined) left.push({ slot, row });
      if (after !== undefined) entered.push({ slot, row: after });
      fence(slot, slot.state === 'quarantined' ? 'quarantined' : 'unused');
      slot.row = undefined;
      slot.rowWaits = false;
    }
    return { left, entered };
  }

  turnOver(now: Nanos, { left, entered }: Turnover): void {
    for (const { slot, row } of left) {
      this.#say(now, row, SlotState.GONE);
      this.#tellGone(now, slot, row.generation, 'the row was taken out of the table');
      this.#forget(now, slot);
      this.#scrub(now, slot);
    }
    for (const { slot, row } of entered) this.#bind(now, slot, row);
  }

  /** A slot without a device can never be ready; its host should know. */
  sayMissing(now: Nanos, rows: readonly BoxRow[], before: readonly BoxRow[]): void {
    for (const row of rows) {
      const known = before.some((old) => old.slot === row.slot && isSameBinding(old, row));
      if (this.#slots.at(row.slot) === undefined && isActiveRow(row) && !known) {
        this.#say(now, row, SlotState.GONE);
      }
    }
  }

  scrubUnbound(now: Nanos): void {
    for (const slot of this.#slots.list) {
      if (slot.row !== undefined || !slot.dirty || slot.state === 'quarantined') continue;
      this.#forget(now, slot);
      this.#scrub(now, slot);
    }
  }

  /** A session begins: what is ready for its host belongs to it. */
  join(now: Nanos, peer: BoxPeer, rows: readonly BoxRow[]): void {
    for (const row of rows) {
      if (row.host !== peer.host || !isActiveRow(row)) continue;
      const slot = this.#slots.at(row.slot);
      const ready = slot?.state === 'ready';
      if (slot !== undefined && ready) slot.peer = peer;
      if (slot?.rowWaits === true) continue;
      this.#say(now, row, ready ? SlotState.READY : SlotState.GONE);
    }
  }

  /** The session goes on: what became ready for its host meanwhile joins it. */
  admit(now: Nanos, peer: BoxPeer): void {
    peer.newcomers = false;
    for (const slot of this.#slots.list) {
      const { row, state } = slot;
      if (state !== 'ready' || slot.peer !== undefined || row?.host !== peer.host) continue;
      slot.peer = peer;
      this.#say(now, row, SlotState.READY);
    }
  }

  /** Its session is over. */
  contain(now: Nanos, peer: BoxPeer, reason: string): void {
    const slots = this.#slots.list.filter((slot) => slot.peer === peer);
    const after = this.#faults.noContainment === true ? 'ready' : 'contained';
    for (const slot of slots) fence(slot, after);
    for (const slot of slots) {
      this.#tellGone(now, slot, slot.generation, reason);
      this.#forget(now, slot);
    }
  }

  /** Not within the device's call: it is answered at the end of the proxy's, or at the next tick. */
  aborted(now: Nanos): void {
    this.abortAtNs = Math.min(this.abortAtNs, now);
  }

  /** Once round: a device that asks again at once is answered again a little later. */
  answerAborted(now: Nanos): void {
    if (this.abortAtNs === Infinity) return;
    this.abortAtNs = Infinity;
    for (const slot of this.#slots.list) {
      if (slot.aborted.length === 0) continue;
      const requests = slot.aborted;
      slot.aborted = [];
      for (const request of requests) this.#abort(now, slot, request);
    }
    if (this.abortAtNs !== Infinity) this.abortAtNs = now + ABORT_INTERVAL_NS;
  }

  /** What is said of it has changed (`Device.outage`). */
  deviceChanged(now: Nanos, slot: BoxSlot): void {
    const { outage } = slot.device;
    if (outage?.kind === 'absent') {
      this.#lose(now, slot, outage.reason);
      return;
    }
    if (outage !== undefined) return;
    const { row } = slot;
    if (row === undefined || slot.rowWaits) {
      slot.state = 'unused';
      slot.dirty = false;
    } else if (slot.state === 'quarantined') {
      slot.state = 'contained';
    }
    this.#options.onEvent?.(now, { kind: 'device-ready', slot: slot.slot });
    if (row !== undefined && slot.rowWaits) this.#enter(now, slot, row);
  }

  #lose(now: Nanos, slot: BoxSlot, reason: string): void {
    const { row, state } = slot;
    fence(slot, 'quarantined');
    slot.dirty = true;
    if (state === 'ready') {
      this.#tellGone(now, slot, slot.generation, reason);
      this.#forget(now, slot);
    }
    if (row !== undefined && !slot.rowWaits) this.#say(now, row, SlotState.GONE);
    this.#options.onEvent?.(now, { kind: 'quarantined', slot: slot.slot, reason });
  }

  /** Ends what the device waits for, and the device's memory of it. */
  #forget(now: Nanos, slot: BoxSlot): void {
    const requests = slot.outstanding.takeAll();
    if (this.#faults.noAbort !== true) {
      for (const request of requests) {
        slot.counters.aborted++;
        this.#abort(now, slot, request);
      }
    }
    slot.device.reset(now);
    slot.aborted = [];
    slot.waiting = false;
  }

  #scrub(now: Nanos, slot: BoxSlot): void {
    if (this.#faults.noScrub === true) return;
    try {
      slot.device.scrub(now);
      slot.dirty = slot.device.outage !== undefined;
    } catch (error) {
      if (error instanceof AssertionError) throw error;
      slot.state = 'quarantined';
      const reason = `scrub failed: ${error instanceof Error ? error.message : String(error)}`;
      this.#options.onEvent?.(now, { kind: 'quarantined', slot: slot.slot, reason });
    }
  }

  /** Makes a slot ready under a new row. */
  #bind(now: Nanos, slot: BoxSlot, row: BoxRow): void {
    slot.highestGeneration = row.generation;
    if (slot.dirty && slot.state !== 'quarantined') {
      slot.device.reset(now);
      this.#scrub(now, slot);
    }
    slot.row = row;
    // The host hears of it once the device can be used: until then its slot is not ready.
    slot.rowWaits = slot.device.outage !== undefined;
    if (slot.rowWaits) return;
    if (slot.state === 'quarantined') {
      this.#say(now, row, SlotState.GONE);
      return;
    }
    this.#enter(now, slot, row);
  }

  #enter(now: Nanos, slot: BoxSlot, row: BoxRow): void {
    slot.rowWaits = false;
    slot.dirty = true;
    slot.state = 'ready';
    const { generation } = row;
    this.#options.onEvent?.(now, { kind: 'slot-ready', slot: slot.slot, generation });
    const peer = this.#peers.named(row.host);
    if (peer !== undefined && !peer.link.attached && this.#faults.bindsWhileResuming !== true) {
      // Should the session end, it must not take a binding with it that never ran in it.
      peer.newcomers = true;
      return;
    }
    slot.peer = peer;
    this.#say(now, row, SlotState.READY);
  }

  /** Tells the host of a row, if its session is up. */
  #say(now: Nanos, row: BoxRow, state: SlotState): void {
    const peer = this.#peers.named(row.host);
    peer?.link.sendSlotState(now, row.slot, row.generation, state);
  }

  #tellGone(now: Nanos, slot: BoxSlot, generation: number, reason: string): void {
    this.#options.onEvent?.(now, { kind: 'slot-gone', slot: slot.slot, generation, reason });
  }

  #abort(now: Nanos, slot: BoxSlot, request: OutstandingRequest): void {
    const out = this.#scratch.borrow();
    setAbort(out, request, 0);
    slot.device.receive(now, out);
    this.#scratch.giveBack(out);
  }
}

/** Nothing passes any more, in either direction. */
function fence(slot: BoxSlot, state: BoxSlotState): void {
  slot.peer?.waiting.delete(slot);
  slot.peer = undefined;
  slot.state = state;
}

function isSameBinding(a: BoxRow | undefined, b: BoxRow | undefined): boolean {
  return a !== undefined && b !== undefined && a.host === b.host && a.generation === b.generation;
}
