/**
 * The state the parts of a box proxy share. `BoxSlotLife` alone changes a slot's row, state and peer;
 * `SlotPort` is what the slot's device sees of it.
 */
import { assert } from '#base/assert';
import type { Nanos } from '#base/units';
import type { Device, DevicePort } from '#pcie/device';
import { FlowClass, flowClassOf, type Tlp } from '#pcie/tlp';
import { encodeTlp, MAX_TLP_BYTES } from '#pcie/tlp-codec';
import { SlotCounters } from './counters.ts';
import { KeptTlps } from './kept-tlps.ts';
import type { ArrivedTlp, LinkPort } from './link-user.ts';
import type { BoxRow } from './mapping-table.ts';
import { type OutstandingRequest, OutstandingRequests } from './outstanding-requests.ts';

/**
 * - `unused`: no row, or one that is not valid and used, or one whose device is still being reset.
 * - `ready`: device reset and scrubbed, TLPs pass while the link of the row's host is up.
 * - `contained`: the session ended, until a higher generation.
 * - `quarantined`: a scrub failed, and nothing uses the slot until the proxy starts anew; or the device is
 *   not there, and nothing uses the slot until it is back.
 */
export type BoxSlotState = 'unused' | 'ready' | 'contained' | 'quarantined';

export class BoxSlot {
  readonly slot: number;
  readonly device: Device;
  readonly counters = new SlotCounters();
  /** The row in force while it is valid and used. */
  row: BoxRow | undefined;
  state: BoxSlotState = 'unused';
  /** The peer this slot sends to: `ready`, and the session of the row's host is up. */
  peer: BoxPeer | undefined;
  highestGeneration = 0;
  /** Whether a tenant, or whoever was before this process, may have left something in the device. */
  dirty = true;
  /** Its row has not been in force yet: the device cannot be used (`Device.outage`). */
  rowWaits = false;
  readonly outstanding = new OutstandingRequests();
  /** Requests the device sent while nothing could pass: to be answered UR, not within the call. */
  aborted: OutstandingRequest[] = [];
  /** The device was told it cannot send, and waits for `resume`. */
  waiting = false;
  /** Sent since the last turn of its peer, in bytes. */
  sentInTurn = 0;

  constructor(slot: number, device: Device) {
    this.slot = slot;
    this.device = device;
  }

  get generation(): number {
    return this.row?.generation ?? 0;
  }
}

export class BoxSlots {
  readonly #byNumber: (BoxSlot | undefined)[] = [];
  readonly list: BoxSlot[] = [];
  /** What cannot be put down to any slot with a device. */
  readonly stray = new SlotCounters();

  /** The slot of this number, if there is a device in it. Any number may be asked for. */
  at(number: number): BoxSlot | undefined {
    return number < this.#byNumber.length ? this.#byNumber[number] : undefined;
  }

  add(slot: BoxSlot): void {
    while (this.#byNumber.length <= slot.slot) this.#byNumber.push(undefined);
    this.#byNumber[slot.slot] = slot;
    this.list.push(slot);
  }
}

export class BoxPeer {
  readonly host: string;
  readonly link: LinkPort;
  live = true;
  /** A slot became ready for this host while its session had no connection. */
  newcomers = false;
  /** Non-posted requests from the host that wait until their answers would be taken. */
  readonly requests = new KeptTlps();
  /** Completions of devices that the link has not taken yet. */
  readonly completions = new KeptTlps();
  /** Slots that wait for this link. */
  readonly waiting = new Set<BoxSlot>();
  /** Some slot was told so by the link itself, which will say when to go on. */
  blocked = false;
  draining = false;

  constructor(link: LinkPort) {
    this.host = link.peer.id;
    this.link = link;
  }
}

/** Header and framing of a TLP, for fair shares: reads must cost something too. */
const OVERHEAD_BYTES = 24;

export interface SlotPortOptions {
  readonly outstandingReads: number;
  readonly fairShareBytes: number;
  /** A request has to be answered without a session. */
  readonly onAborted: (now: Nanos) => void;
}

export class SlotPort implements DevicePort {
  readonly #slot: BoxSlot;
  readonly #options: SlotPortOptions;
  /** The completion just encoded, on its way to those kept. */
  readonly #kept: { -readonly [K in keyof ArrivedTlp]: ArrivedTlp[K] };

  /** `buffer` is shared by all ports: room for one encoded TLP. */
  constructor(slot: BoxSlot, buffer: Uint8Array, options: SlotPortOptions) {
    assert(buffer.length >= MAX_TLP_BYTES, 'the buffer holds any TLP');
    this.#slot = slot;
    this.#kept = { slot: slot.slot, generation: 0, bytes: buffer, offset: 0, length: 0 };
    this.#options = options;
  }

  canSend(flow: FlowClass, payloadBytes: number): boolean {
    const slot = this.#slot;
    const { peer } = slot;
    // Completions are kept here if need be; without a session everything is taken and ended.
    if (flow === FlowClass.COMPLETION || peer === undefined) return true;
    const { outstandingReads, fairShareBytes } = this.#options;
    if (flow === FlowClass.NON_POSTED && slot.outstanding.size >= outstandingReads) {
      slot.waiting = true;
      return false;
    }
    if (!peer.link.canSend(flow, payloadBytes)) {
      peer.blocked = true;
      wait(slot, peer);
      return false;
    }
    if (!othersWait(slot, peer) || slot.sentInTurn === 0) return true;
    if (slot.sentInTurn + payloadBytes + OVERHEAD_BYTES <= fairShareBytes) return true;
    wait(slot, peer);
    return false;
  }

  send(now: Nanos, tlp: Tlp): void {
    const slot = this.#slot;
    const { peer, row } = slot;
    const flow = flowClassOf(tlp.kind);
    if (peer === undefined || row === undefined) {
      this.#refuse(tlp, flow);
      this.#options.onAborted(now);
    } else {
      if (flow === FlowClass.NON_POSTED) slot.outstanding.open(tlp, slot.slot, row.generation);
      slot.counters.countUp(tlp);
      slot.sentInTurn += tlp.payloadBytes + OVERHEAD_BYTES;
      if (flow === FlowClass.COMPLETION && mustKeep(peer, tlp)) {
        const kept = this.#kept;
        kept.generation = row.generation;
        kept.length = encodeTlp(tlp, kept.bytes, 0);
        peer.completions.push(kept, tlp.payloadBytes, 0);
        return;
      }
      peer.link.sendTlp(now, slot.slot, row.generation, tlp);
    }
  }

  sendWrites(now: Nanos, first: Tlp, count: number): number {
    const slot = this.#slot;
    const { peer, row } = slot;
    if (peer === undefined || row === undefined) return 0;
    const cost = first.payloadBytes + OVERHEAD_BYTES;
    // `canSend` has answered for the first one.
    const fair = Math.floor((this.#options.fairShareBytes - slot.sentInTurn) / cost);
    const most = othersWait(slot, peer) ? Math.min(count, Math.max(1, fair)) : count;
    const sent = peer.link.sendRun(now, slot.slot, row.generation, first, most);
    slot.counters.countUp(first, sent);
    slot.sentInTurn += sent * cost;
    return sent;
  }

  /** Invariant 6c: what cannot pass ends here. */
  #refuse(tlp: Tlp, flow: FlowClass): void {
    const slot = this.#slot;
    if (flow !== FlowClass.NON_POSTED) {
      slot.counters.dropped++;
      return;
    }
    slot.counters.aborted++;
    slot.outstanding.open(tlp, slot.slot, 0);
    slot.aborted.push(...slot.outstanding.takeAll());
  }
}

function othersWait(slot: BoxSlot, peer: BoxPeer): boolean {
  const { waiting } = peer;
  return waiting.size > 0 && waiting.size > (waiting.has(slot) ? 1 : 0);
}

function wait(slot: BoxSlot, peer: BoxPeer): void {
  slot.waiting = true;
  peer.waiting.add(slot);
}

/** A completion may not pass an earlier one of its own queue here. */
function mustKeep(peer: BoxPeer, tlp: Tlp): boolean {
  return peer.completions.size > 0 || !peer.link.canSend(FlowClass.COMPLETION, tlp.payloadBytes);
}
