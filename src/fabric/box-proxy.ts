/**
 * The box's end of the distributed switch: each slot's device behind the link of the host its row
 * names, fenced by generation (invariant 2) and contained when the session ends (6c).
 *
 * Who owns what: `BoxProxy` owns the table, the slots and the peers (`box-slot.ts`) and drives the
 * devices. `BoxSlotLife` decides when a slot comes and goes, `BoxTraffic` moves what passes; a `SlotPort`
 * is a device's way up. State is changed before anybody is told: an effect may call back.
 */
import type { Timed } from '#base/clock';
import type { Nanos } from '#base/units';
import { MAX_TLP_BYTES } from '#pcie/tlp-codec';
import type { BoxProxyOptions } from './box-proxy-options.ts';
import { BoxPeer, BoxSlot, BoxSlots, type BoxSlotState, SlotPort } from './box-slot.ts';
import { BoxSlotLife } from './box-slot-life.ts';
import { BoxTable, checkBoxTable } from './box-table.ts';
import { BoxTraffic } from './box-traffic.ts';
import type { SlotCounters } from './counters.ts';
import type { ArrivedRun, ArrivedTlp, LinkPort, LinkUser } from './link-user.ts';
import type { BoxRow } from './mapping-table.ts';
import { Peers } from './peers.ts';
import { ScratchTlps } from './scratch-tlps.ts';
import type { TableError } from './table-check.ts';

export type { BoxProxyEvent, BoxProxyFaults, BoxProxyOptions } from './box-proxy-options.ts';
export type { BoxSlotState } from './box-slot.ts';

/** Drives its devices: after each call on the proxy, `nextDeadlineNs` includes theirs. */
export class BoxProxy implements LinkUser, Timed {
  readonly boxId: string;
  readonly #scratch = new ScratchTlps();
  readonly #slots = new BoxSlots();
  readonly #peers = new Peers<BoxPeer>();
  readonly #life: BoxSlotLife;
  readonly #traffic: BoxTraffic;
  #table = new BoxTable([]);
  /** Calls on this proxy under way; what they cause is finished at the end of the outermost. */
  #calls = 0;

  constructor(options: BoxProxyOptions) {
    this.boxId = options.boxId;
    this.#life = new BoxSlotLife(this.#slots, this.#peers, this.#scratch, options);
    this.#traffic = new BoxTraffic(this.#slots, this.#scratch, options);
    const buffer = new Uint8Array(MAX_TLP_BYTES);
    const portOptions = {
      outstandingReads: options.outstandingReads ?? Infinity,
      fairShareBytes: options.fairShareBytes ?? 16 * 1024,
      onAborted: (now: Nanos) => this.#life.aborted(now),
    };
    for (const [number, device] of options.devices) {
      const slot = new BoxSlot(number, device);
      this.#slots.add(slot);
      device.plug(new SlotPort(slot, buffer, portOptions));
      if (device.outage?.kind === 'absent') slot.state = 'quarantined';
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
    errors.push(...this.#life.checkHistory(rows));
    if (errors.length > 0) return errors;

    this.#calls++;
    const turnover = this.#life.unbind(rows);
    const before = this.#table.rows;
    this.#table = new BoxTable(rows);
    this.#life.turnOver(now, turnover);
    this.#life.sayMissing(now, rows, before);
    this.#leave(now);
    return [];
  }

  /**
   * Resets and scrubs every slot that has no row and is not clean, before this returns: at the start
   * nobody knows what is in the devices. A scrub that fails quarantines its slot.
   */
  scrubUnbound(now: Nanos): void {
    this.#calls++;
    this.#life.scrubUnbound(now);
    this.#leave(now);
  }

  /**
   * The `outage` of a device has begun, has another reason or is over. A device that is lost takes its
   * binding with it (as in invariant 6c), and leaves its slot quarantined. When it is back its slot can be
   * used: by a row that never was in force under this or a higher generation.
   */
  deviceChanged(now: Nanos, slot: number): void {
    const known = this.#slots.at(slot);
    if (known === undefined) return;
    this.#calls++;
    this.#life.deviceChanged(now, known);
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
    this.#peers.flush(now);
  }

  linkUp(now: Nanos, link: LinkPort): void {
    if (link.peer.kind !== 'host') return;
    const earlier = this.#peers.named(link.peer.id);
    if (earlier !== undefined) this.linkDown(now, earlier.link, 'a new session took its place');
    this.#calls++;
    const peer = new BoxPeer(link);
    this.#peers.add(peer);
    this.#life.join(now, peer, this.#table.rows);
    this.#leave(now);
  }

  linkTlp(now: Nanos, link: LinkPort, arrived: ArrivedTlp): boolean {
    const peer = this.#peers.of(link);
    if (peer === undefined) return true;
    const tlp = this.#scratch.borrow();
    this.#calls++;
    const wait = peer.requests.size > 0;
    const done = this.#traffic.receive(now, peer, arrived, tlp, wait);
    if (!done) peer.requests.push(arrived, tlp.payloadBytes, 0);
    this.#scratch.giveBack(tlp);
    this.#leave(now);
    return done;
  }

  linkRun(now: Nanos, link: LinkPort, run: ArrivedRun): boolean {
    const peer = this.#peers.of(link);
    if (peer === undefined) return false;
    const tlp = this.#scratch.borrow();
    const done = this.#traffic.receiveRun(now, peer, run, tlp);
    this.#scratch.giveBack(tlp);
    return done;
  }

  /** Hosts have nothing to say about slots. */
  linkSlotState(): void {}

  linkResume(now: Nanos, link: LinkPort): void {
    const peer = this.#peers.of(link);
    if (peer === undefined) return;
    this.#calls++;
    if (peer.newcomers && link.attached) this.#life.admit(now, peer);
    this.#traffic.drain(now, peer);
    this.#traffic.giveTurns(now, peer);
    this.#leave(now);
  }

  linkDown(now: Nanos, link: LinkPort, reason: string): void {
    const peer = this.#peers.of(link);
    if (peer === undefined) return;
    this.#calls++;
    peer.live = false;
    peer.requests.clear();
    peer.completions.clear();
    peer.waiting.clear();
    this.#peers.remove(peer);
    this.#life.contain(now, peer, `link to host ${peer.host} is down: ${reason}`);
    this.#leave(now);
  }

  nextDeadlineNs(): number {
    let deadlineNs = this.#life.abortAtNs;
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

  /** Ends a call on the proxy. */
  #leave(now: Nanos): void {
    if (this.#calls === 1) this.#life.answerAborted(now);
    this.#calls--;
  }
}
