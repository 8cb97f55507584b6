/**
 * The box's end of the distributed switch: each slot's device behind the link of the host its row
 * names, fenced by generation (invariant 2) and contained when the session ends (6c).
 *
 * Who owns what: `BoxProxy` owns the table, the slots and the peers (`box-slot.ts`), and drives the
 * devices; a `SlotPort` is a device's way up. State is changed before anybody is told: an effect may
 * call back.
 */
import { assert, AssertionError } from '#base/assert';
import type { Timed } from '#base/clock';
import type { Nanos } from '#base/units';
import { completeWithoutData, setCompletion } from '#pcie/completion';
import type { Device } from '#pcie/device';
import { CompletionStatus, FlowClass, flowClassOf, type Tlp, TlpKind } from '#pcie/tlp';
import { decodeTlp, MAX_TLP_BYTES, TlpDecode } from '#pcie/tlp-codec';
import { BoxPeer, BoxSlot, type BoxSlotState, SlotPort } from './box-slot.ts';
import { BoxTable, checkBoxTable, isActiveRow } from './box-table.ts';
import { SlotCounters } from './counters.ts';
import { type LinkPort, type LinkUser, SlotState } from './link-user.ts';
import type { BoxRow } from './mapping-table.ts';
import { Answer, type OutstandingRequest } from './outstanding-requests.ts';
import { ScratchTlps } from './scratch-tlps.ts';
import { TableChecker, type TableError } from './table-check.ts';
import { isUnsupportedRequest } from './unsupported-request.ts';

export type { BoxSlotState } from './box-slot.ts';

export type BoxProxyEvent =
  | { readonly kind: 'slot-ready'; readonly slot: number; readonly generation: number }
  | {
      readonly kind: 'slot-gone';
      readonly slot: number;
      readonly generation: number;
      readonly reason: string;
    }
  | { readonly kind: 'quarantined'; readonly slot: number; readonly reason: string };

/** Test only: each leaves one check out. Never set outside tests. */
export interface BoxProxyFaults {
  readonly noPeerFence?: boolean;
  readonly noGenerationFence?: boolean;
  /** Outstanding requests of a device are forgotten at session down. */
  readonly noAbort?: boolean;
  /** A slot stays ready when its session ends. */
  readonly noContainment?: boolean;
  /** A slot goes to its next owner as the last one left it. */
  readonly noScrub?: boolean;
}

export interface BoxProxyOptions {
  readonly boxId: string;
  /** By slot number, 0 to 65535. The proxy plugs each device, and drives its `tick`. */
  readonly devices: ReadonlyMap<number, Device>;
  /**
   * Non-posted requests of one slot outstanding at once, on top of the device's own tags. Default:
   * no limit.
   */
  readonly outstandingReads?: number;
  /** Bytes a slot may send before slots that wait get their turn. Default 16 KiB. */
  readonly fairShareBytes?: number;
  readonly onEvent?: (now: Nanos, event: BoxProxyEvent) => void;
  readonly faults?: BoxProxyFaults;
}

/** Between two answers to a device that asks again and again while nothing can pass. */
const ABORT_INTERVAL_NS = 1000;

/** Drives its devices: after each call on the proxy, `nextDeadlineNs` includes theirs. */
export class BoxProxy implements LinkUser, Timed {
  readonly boxId: string;
  readonly #options: BoxProxyOptions;
  readonly #faults: BoxProxyFaults;
  readonly #scratch = new ScratchTlps();
  readonly #slots = new Map<number, BoxSlot>();
  /** The same slots; turns go round from `#firstTurn`. */
  readonly #slotList: BoxSlot[] = [];
  readonly #peers = new Map<string, BoxPeer>();
  readonly #stray = new SlotCounters();
  #table = new BoxTable([]);
  #firstTurn = 0;
  #lastPeer: BoxPeer | undefined;
  /** Calls on this proxy under way; what they cause is finished at the end of the outermost. */
  #calls = 0;
  #abortAtNs = Infinity;

  constructor(options: BoxProxyOptions) {
    this.boxId = options.boxId;
    this.#options = options;
    this.#faults = options.faults ?? {};
    const buffer = new Uint8Array(MAX_TLP_BYTES);
    const portOptions = {
      outstandingReads: options.outstandingReads ?? Infinity,
      fairShareBytes: options.fairShareBytes ?? 16 * 1024,
      onAborted: (now: Nanos) => this.#aborted(now),
    };
    for (const [number, device] of options.devices) {
      const slot = new BoxSlot(number, device);
      this.#slots.set(number, slot);
      this.#slotList.push(slot);
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
    for (const slot of this.#slotList) {
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
      if (!this.#slots.has(row.slot) && isActiveRow(row) && !known) {
        this.#say(now, row, SlotState.GONE);
      }
    }
    this.#leave(now);
    return [];
  }

  /** The table in force. */
  get rows(): readonly BoxRow[] {
    return this.#table.rows;
  }

  slotState(slot: number): BoxSlotState {
    return this.#slots.get(slot)?.state ?? 'unused';
  }

  /** Live counters of a slot, kept over generations; the stray ones for a slot without a device. */
  counters(slot: number): SlotCounters {
    return this.#slots.get(slot)?.counters ?? this.#stray;
  }

  /** What could not be put down to any slot of this box. */
  get strayCounters(): SlotCounters {
    return this.#stray;
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
      const slot = this.#slots.get(row.slot);
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
    const done = this.#receive(now, peer, slot, generation, bytes, offset, length, tlp, wait);
    if (!done) {
      peer.requests.push(slot, generation, bytes, offset, length, tlp.payloadBytes, 0);
    }
    this.#scratch.giveBack(tlp);
    this.#leave(now);
    return done;
  }

  /** Hosts have nothing to say about slots. */
  linkSlotState(): void {}

  linkResume(now: Nanos, link: LinkPort): void {
    const peer = this.#peerOf(link);
    if (peer === undefined) return;
    this.#calls++;
    this.#drain(now, peer);
    this.#giveTurns(now, peer);
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
    const slots = this.#slotList.filter((slot) => slot.peer === peer);
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
    for (const slot of this.#slotList) {
      const deviceNs = slot.device.nextDeadlineNs();
      if (deviceNs < deadlineNs) deadlineNs = deviceNs;
    }
    return deadlineNs;
  }

  tick(now: Nanos): void {
    this.#calls++;
    for (const slot of this.#slotList) {
      if (slot.device.nextDeadlineNs() <= now) slot.device.tick(now);
    }
    this.#leave(now);
  }

  /** Returns false when the request has to wait. */
  #receive(
    now: Nanos,
    peer: BoxPeer,
    slotNumber: number,
    generation: number,
    bytes: Uint8Array,
    offset: number,
    length: number,
    tlp: Tlp,
    wait: boolean,
  ): boolean {
    const decoded = decodeTlp(bytes, offset, length, tlp);
    const slot = this.#slots.get(slotNumber);
    const fresh = slot !== undefined && this.#isFresh(peer, slot, generation);
    const counters = slot?.counters ?? this.#stray;
    const unsupported =
      decoded === TlpDecode.UNSUPPORTED_KIND && isUnsupportedRequest(bytes[offset]);
    if (decoded !== TlpDecode.OK && !unsupported) {
      counters.malformed++;
      return true;
    }
    const flow = unsupported ? FlowClass.NON_POSTED : flowClassOf(tlp.kind);
    if (flow === FlowClass.NON_POSTED) {
      const room = peer.completions.size === 0 && peer.link.canSend(FlowClass.COMPLETION, 0);
      if (wait || !room) return false;
    }
    if (slot === undefined || !fresh) {
      counters.countStale(tlp);
      if (flow === FlowClass.NON_POSTED) this.#answer(now, peer, slotNumber, generation, tlp);
    } else if (flow === FlowClass.COMPLETION) {
      this.#completion(now, slot, tlp);
    } else if (unsupported || tlp.kind === TlpKind.CfgRd1 || tlp.kind === TlpKind.CfgWr1) {
      // Type 1 is for buses further down; behind a slot there is none (7.3.3).
      counters.unroutable++;
      this.#answer(now, peer, slotNumber, generation, tlp);
    } else {
      counters.countDown(tlp);
      slot.device.receive(now, tlp);
    }
    return true;
  }

  #isFresh(peer: BoxPeer, slot: BoxSlot, generation: number): boolean {
    return (
      (slot.peer === peer || (this.#faults.noPeerFence === true && slot.peer !== undefined)) &&
      (slot.generation === generation || this.#faults.noGenerationFence === true)
    );
  }

  #completion(now: Nanos, slot: BoxSlot, tlp: Tlp): void {
    const answer = slot.outstanding.accept(tlp, slot.slot, slot.generation);
    if (answer === Answer.UNEXPECTED) {
      slot.counters.unexpectedCompletions++;
      return;
    }
    slot.counters.countDown(tlp);
    slot.device.receive(now, tlp);
    const limit = this.#options.outstandingReads;
    if (limit === undefined || answer !== Answer.LAST || !slot.waiting) return;
    // It may have waited for a request to end; if it waits for the link too, it will find out.
    this.#resume(now, slot);
  }

  /** Ends a request that reaches no device with UR; the link has room for it. */
  #answer(now: Nanos, peer: BoxPeer, slot: number, generation: number, request: Tlp): void {
    const out = this.#scratch.borrow();
    completeWithoutData(out, request, 0, CompletionStatus.UR);
    peer.link.sendTlp(now, slot, generation, out);
    this.#scratch.giveBack(out);
  }

  #drain(now: Nanos, peer: BoxPeer): void {
    if (peer.draining) return;
    peer.draining = true;
    this.#drainCompletions(now, peer);
    while (peer.live && peer.completions.size === 0) {
      const first = peer.requests.first;
      if (first === undefined) break;
      const { slot, generation, bytes, length, payloadBytes } = first;
      const tlp = this.#scratch.borrow();
      const done = this.#receive(now, peer, slot, generation, bytes, 0, length, tlp, false);
      this.#scratch.giveBack(tlp);
      if (!done || !peer.live) break;
      peer.requests.shift();
      peer.link.release(now, FlowClass.NON_POSTED, payloadBytes);
    }
    peer.draining = false;
  }

  #drainCompletions(now: Nanos, peer: BoxPeer): void {
    for (;;) {
      const first = peer.completions.first;
      if (first === undefined) return;
      if (!peer.link.canSend(FlowClass.COMPLETION, first.payloadBytes)) return;
      const slot = this.#slots.get(first.slot);
      // A slot may have been fenced since: what its device had to say is dropped like the rest.
      if (slot?.peer === peer && slot.generation === first.generation) {
        const tlp = this.#scratch.borrow();
        const decoded = decodeTlp(first.bytes, 0, first.length, tlp);
        assert(decoded === TlpDecode.OK, 'a completion kept here was encoded here');
        peer.link.sendTlp(now, first.slot, first.generation, tlp);
        this.#scratch.giveBack(tlp);
      } else if (slot !== undefined) {
        slot.counters.dropped++;
      }
      peer.completions.shift();
    }
  }

  /**
   * Lets the slots that wait for a link go on, in turn, each with a fair share; whoever finds the link
   * full goes first the next time.
   */
  #giveTurns(now: Nanos, peer: BoxPeer): void {
    const count = this.#slotList.length;
    do {
      peer.blocked = false;
      for (const slot of this.#slotList) slot.sentInTurn = 0;
      const start = this.#firstTurn;
      for (let step = 0; step < count; step++) {
        const index = (start + step) % count;
        const slot = this.#slotList[index];
        if (slot === undefined || !peer.waiting.has(slot)) continue;
        this.#resume(now, slot);
        if (!peer.blocked) continue;
        this.#firstTurn = slot.sentInTurn > 0 ? (index + 1) % count : index;
        return;
      }
    } while (peer.live && peer.waiting.size > 0);
  }

  #resume(now: Nanos, slot: BoxSlot): void {
    slot.waiting = false;
    slot.peer?.waiting.delete(slot);
    slot.device.resume(now);
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
    slot.peer = this.#peers.get(row.host);
    const { generation } = row;
    this.#options.onEvent?.(now, { kind: 'slot-ready', slot: slot.slot, generation });
    this.#say(now, row, SlotState.READY);
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
    for (const slot of this.#slotList) {
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
      const slot = this.#slots.get(row.slot);
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
