/**
 * The box's end of the distributed switch: each slot's device behind the link of the host its row
 * names, fenced by generation (invariant 2) and contained when the session ends (6c).
 *
 * Who owns what: `BoxProxy` owns the table, the slots and the peers (`box-slot.ts`), decides when a
 * slot comes and goes, and drives the devices. `BoxTraffic` moves what passes; a `SlotPort` is a
 * device's way up. State is changed before anybody is told: an effect may
 * call back.
 */
import { AssertionError } from '#base/assert';
import type { Timed } from '#base/clock';
import type { Nanos } from '#base/units';
import { setCompletion } from '#pcie/completion';
import { CompletionStatus } from '#pcie/tlp';
import { MAX_TLP_BYTES } from '#pcie/tlp-codec';
import type { BoxProxyFaults, BoxProxyOptions } from './box-proxy-options.ts';
import { BoxPeer, BoxSlot, BoxSlots, type BoxSlotState, SlotPort } from './box-slot.ts';
import { BoxTable, checkBoxTable, isActiveRow } from './box-table.ts';
import { BoxTraffic } from './box-traffic.ts';
import type { SlotCounters } from './counters.ts';
import { type LinkPort, type LinkUser, SlotState } from './link-user.ts';
import type { BoxRow } from './mapping-table.ts';
import type { OutstandingRequest } from './outstanding-requests.ts';
import { ScratchTlps } from './scratch-tlps.ts';
import { TableChecker, type TableError } from './table-check.ts';

export type { BoxProxyEvent, BoxProxyFaults, BoxProxyOptions } from './box-proxy-options.ts';
export type { BoxSlotState } from './box-slot.ts';

/** Between two answers to a device that asks again and again while nothing can pass. */
const ABORT_INTERVAL_NS = 1000;

/** Drives its devices: after each call on the proxy, `nextDeadlineNs` includes theirs. */
export class BoxProxy implements LinkUser, Timed {
  readonly boxId: string;
  readonly #options: BoxProxyOptions;
  readonly #faults: BoxProxyFaults;
  readonly #scratch = new ScratchTlps();
  readonly #slots = new BoxSlots();
  readonly #peers = new Map<string, BoxPeer>();
  readonly #traffic: BoxTraffic;
  #table = new BoxTable([]);
  #lastPeer: BoxPeer | undefined;
  /** Calls on this proxy under way; what they cause is finished at the end of the outermost. */
  #calls = 0;
  #abortAtNs = Infinity;

  constructor(options: BoxProxyOptions) {
    this.boxId = options.boxId;
    this.#options = options;
    this.#faults = options.faults ?? {};
    this.#traffic = new BoxTraffic(this.#slots, this.#scratch, options);
    const buffer = new Uint8Array(MAX_TLP_BYTES);
    const portOptions = {
      outstandingReads: options.outstandingReads ?? Infinity,
      fairShareBytes: options.fairShareBytes ?? 16 * 1024,
      onAborted: (now: Nanos) => this.#aborted(now),
    };
    for (const [number, device] of options.devices) {
      const slot = new BoxSlot(number, device);
      this.#slots.add(slot);
      device.plug(new SlotPort(slot, buffer, portOptions));
    }
  }

  /**
   * Puts a whole table in force, or refuses all of it and changes nothing. Slots whose row goes or
   * changes are fenced, then reset and scrubbed, before this returns. A slot that is bound anew
   * needs a generation above every one it had.
   */
  setTable(now: Nanos, rows: readonly BoxRow[]): TableError[] {
    const errors = checkBoxTable(rows);
    if (errors.length > 0) return errors;
    errors.push(...this.#checkHistory(rows));
    if (errors.length > 0) return errors;

    this.#calls++;
    const left: { slot: BoxSlot; row: BoxRow }[] = [];
    const entered: { slot: BoxSlot; row: BoxRow }[] = [];
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
      this.#fence(slot, slot.state === 'quarantined' ? 'quarantined' : 'unused');
      slot.row = undefined;
    }
    const before = this.#table;
    this.#table = new BoxTable(rows);

    for (const { slot, row } of left) {
      this.#say(now, row, SlotState.GONE);
      const reason = 'the row was taken out of the table';
      this.#tellGone(now, slot, row.generation, reason);
      this.#forget(now, slot);
      this.#scrub(now, slot);
    }
    for (const { slot, row } of entered) this.#bind(now, slot, row);
    for (const row of rows) {
      // A slot without a device can never be ready; its host should know.
      const known = before.rows.some((old) => old.slot === row.slot && isSameBinding(old, row));
      if (this.#slots.at(row.slot) === undefined && isActiveRow(row) && !known) {
        this.#say(now, row, SlotState.GONE);
      }
    }
    this.#leave(now);
    return [];
  }

  /**
   * Resets and scrubs every slot that has no row and is not clean, before this returns: at the start
   * nobody knows what is in the devices. A scrub that fails quarantines its slot.
   */
  scrubUnbound(now: Nanos): void {
    this.#calls++;
    for (const slot of this.#slots.list) {
      if (slot.row !== undefined || !slot.dirty || slot.state === 'quarantined') continue;
      this.#forget(now, slot);
      this.#scrub(now, slot);
    }
    this.#leave(now);
  }

  /** Whether the device of a slot was reset and scrubbed since the last row was in force. */
  isClean(slot: number): boolean {
    const known = this.#slots.at(slot);
    return known !== undefined && known.row === undefined && !known.dirty;
  }

  /** The table in force. */
  get rows(): readonly BoxRow[] {
    return this.#table.rows;
  }

  slotState(slot: number): BoxSlotState {
    return this.#slots.at(slot)?.state ?? 'unused';
  }

  /** Live counters of a slot, kept over generations; the stray ones for a slot without a device. */
  counters(slot: number): SlotCounters {
    return this.#slots.at(slot)?.counters ?? this.#slots.stray;
  }

  /** What could not be put down to any slot of this box. */
  get strayCounters(): SlotCounters {
    return this.#slots.stray;
  }

  /**
   * Sends what was queued since the last call. The owner calls it at the end of each turn, so that
   * what a turn has caused leaves in as few frames as hold it. A link does it for its own turns.
   */
  flush(now: Nanos): void {
    for (const peer of this.#peers.values()) peer.link.flush(now);
  }

  linkUp(now: Nanos, link: LinkPort): void {
    if (link.peer.kind !== 'host') return;
    const earlier = this.#peers.get(link.peer.id);
    if (earlier !== undefined) this.linkDown(now, earlier.link, 'a new session took its place');
    this.#calls++;
    const peer = new BoxPeer(link);
    this.#peers.set(peer.host, peer);
    for (const row of this.#table.rows) {
      if (row.host !== peer.host || !isActiveRow(row)) continue;
      const slot = this.#slots.at(row.slot);
      const ready = slot?.state === 'ready';
      if (slot !== undefined && ready) slot.peer = peer;
      this.#say(now, row, ready ? SlotState.READY : SlotState.GONE);
    }
    this.#leave(now);
  }

  linkTlp(
    now: Nanos,
    link: LinkPort,
    slot: number,
    generation: number,
    bytes: Uint8Array,
    offset: number,
    length: number,
  ): boolean {
    const peer = this.#peerOf(link);
    if (peer === undefined) return true;
    const tlp = this.#scratch.borrow();
    this.#calls++;
    const wait = peer.requests.size > 0;
    const done = this.#traffic.receive(
      now,
      peer,
      slot,
      generation,
      bytes,
      offset,
      length,
      tlp,
      wait,
    );
    if (!done) {
      peer.requests.push(slot, generation, bytes, offset, length, tlp.payloadBytes, 0);
    }
    this.#scratch.giveBack(tlp);
    this.#leave(now);
    return done;
  }

  linkWrites(
    now: Nanos,
    link: LinkPort,
    slot: number,
    generation: number,
    bytes: Uint8Array,
    offset: number,
    length: number,
    stride: number,
    count: number,
  ): boolean {
    const peer = this.#peerOf(link);
    if (peer === undefined) return false;
    const tlp = this.#scratch.borrow();
    const done = this.#traffic.receiveWrites(
      now,
      peer,
      slot,
      generation,
      bytes,
      offset,
      length,
      tlp,
      stride,
      count,
    );
    this.#scratch.giveBack(tlp);
    return done;
  }

  /** Hosts have nothing to say about slots. */
  linkSlotState(): void {}

  linkResume(now: Nanos, link: LinkPort): void {
    const peer = this.#peerOf(link);
    if (peer === undefined) return;
    this.#calls++;
    if (peer.newcomers && link.attached) this.#admit(now, peer);
    this.#traffic.drain(now, peer);
    this.#traffic.giveTurns(now, peer);
    this.#leave(now);
  }

  linkDown(now: Nanos, link: LinkPort, reason: string): void {
    const peer = this.#peerOf(link);
    if (peer === undefined) return;
    this.#calls++;
    peer.live = false;
    peer.requests.clear();
    peer.completions.clear();
    peer.waiting.clear();
    this.#peers.delete(peer.host);
    this.#lastPeer = undefined;
    const slots = this.#slots.list.filter((slot) => slot.peer === peer);
    const after = this.#faults.noContainment === true ? 'ready' : 'contained';
    for (const slot of slots) this.#fence(slot, after);
    for (const slot of slots) {
      const why = `link to host ${peer.host} is down: ${reason}`;
      this.#tellGone(now, slot, slot.generation, why);
      this.#forget(now, slot);
    }
    this.#leave(now);
  }

  nextDeadlineNs(): number {
    let deadlineNs = this.#abortAtNs;
    for (const slot of this.#slots.list) {
      const deviceNs = slot.device.nextDeadlineNs();
      if (deviceNs < deadlineNs) deadlineNs = deviceNs;
    }
    return deadlineNs;
  }

  tick(now: Nanos): void {
    this.#calls++;
    for (const slot of this.#slots.list) {
      if (slot.device.nextDeadlineNs() <= now) slot.device.tick(now);
    }
    this.#leave(now);
  }

  /** Nothing passes any more, in either direction. */
  #fence(slot: BoxSlot, state: BoxSlotState): void {
    slot.peer?.waiting.delete(slot);
    slot.peer = undefined;
    slot.state = state;
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
      slot.dirty = false;
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
    if (slot.state === 'quarantined') {
      this.#say(now, row, SlotState.GONE);
      return;
    }
    slot.dirty = true;
    slot.state = 'ready';
    const { generation } = row;
    this.#options.onEvent?.(now, { kind: 'slot-ready', slot: slot.slot, generation });
    const peer = this.#peers.get(row.host);
    if (peer !== undefined && !peer.link.attached && this.#faults.bindsWhileResuming !== true) {
      // Should the session end, it must not take a binding with it that never ran in it.
      peer.newcomers = true;
      return;
    }
    slot.peer = peer;
    this.#say(now, row, SlotState.READY);
  }

  /** The session goes on: what became ready for its host meanwhile joins it. */
  #admit(now: Nanos, peer: BoxPeer): void {
    peer.newcomers = false;
    for (const slot of this.#slots.list) {
      const { row, state } = slot;
      if (state !== 'ready' || slot.peer !== undefined || row?.host !== peer.host) continue;
      slot.peer = peer;
      this.#say(now, row, SlotState.READY);
    }
  }

  /** Tells the host of a row, if its session is up. */
  #say(now: Nanos, row: BoxRow, state: SlotState): void {
    const peer = this.#peers.get(row.host);
    if (peer === undefined) return;
    peer.link.sendSlotState(now, row.slot, row.generation, state);
  }

  #tellGone(now: Nanos, slot: BoxSlot, generation: number, reason: string): void {
    this.#options.onEvent?.(now, { kind: 'slot-gone', slot: slot.slot, generation, reason });
  }

  /** Not within the device's call: it is answered at the end of the proxy's, or at the next tick. */
  #aborted(now: Nanos): void {
    this.#abortAtNs = Math.min(this.#abortAtNs, now);
  }

  /** Ends a call on the proxy. */
  #leave(now: Nanos): void {
    if (this.#calls === 1) this.#answerAborted(now);
    this.#calls--;
  }

  /** Once round: a device that asks again at once is answered again a little later. */
  #answerAborted(now: Nanos): void {
    if (this.#abortAtNs === Infinity) return;
    this.#abortAtNs = Infinity;
    for (const slot of this.#slots.list) {
      if (slot.aborted.length === 0) continue;
      const requests = slot.aborted;
      slot.aborted = [];
      for (const request of requests) this.#abort(now, slot, request);
    }
    if (this.#abortAtNs !== Infinity) this.#abortAtNs = now + ABORT_INTERVAL_NS;
  }

  #abort(now: Nanos, slot: BoxSlot, request: OutstandingRequest): void {
    const out = this.#scratch.borrow();
    setCompletion(
      out,
      request.requesterId,
      request.tag,
      request.trafficClass,
      request.attributes,
      0,
      CompletionStatus.UR,
      request.byteCount,
      request.lowerAddress,
    );
    slot.device.receive(now, out);
    this.#scratch.giveBack(out);
  }

  #peerOf(link: LinkPort): BoxPeer | undefined {
    if (this.#lastPeer?.link === link) return this.#lastPeer;
    const peer = this.#peers.get(link.peer.id);
    if (peer?.link !== link) return undefined;
    this.#lastPeer = peer;
    return peer;
  }

  #checkHistory(rows: readonly BoxRow[]): TableError[] {
    const check = new TableChecker();
    for (const [index, row] of rows.entries()) {
      const slot = this.#slots.at(row.slot);
      if (!isActiveRow(row) || slot === undefined || isSameBinding(row, slot.row)) continue;
      if (row.generation > slot.highestGeneration) continue;
      check.error(
        index,
        'generation',
        `${row.generation} was used before; a new binding needs one above ${slot.highestGeneration}`,
      );
    }
    return check.errors;
  }
}

function isSameBinding(a: BoxRow | undefined, b: BoxRow | undefined): boolean {
  return a !== undefined && b !== undefined && a.host === b.host && a.generation === b.generation;
}
