/**
 * The receiving half of a session: frames in sequence are delivered entry by entry, all others are
 * dropped, and what the peer should be told about it is noted here until a frame goes out.
 */
import type { Nanos } from '#base/units';
import type { FlowClass } from '#pcie/tlp';
import { ReceiveCredits } from './credits.ts';
import {
  dataUnitsOf,
  ENTRY_HEADER_BYTES,
  EntryKind,
  entryFlowAt,
  entryGenerationAt,
  entryKindAt,
  entryLengthAt,
  entrySlotAt,
  type Frame,
  SESSION_HEADER_BYTES,
} from './frame.ts';
import type { LinkCounters } from './link-counters.ts';
import { type LinkOptions, type LinkTap, TapDirection } from './link-options.ts';
import type { ArrivedRun, LinkPort, LinkUser, SlotState } from './link-user.ts';
import { runOfEntries } from './run-of-entries.ts';
import { advance, distance } from './sequence.ts';

/** What an ingress needs of the peer: how much it can have unacknowledged. */
export interface PeerReplay {
  readonly replayBytes: number;
  readonly replayFrames: number;
}

/** What is handed to the user, the same record each time. */
class Arrival implements ArrivedRun {
  slot = 0;
  generation = 0;
  bytes: Uint8Array = new Uint8Array(0);
  offset = 0;
  length = 0;
  stride = 0;
  count = 1;
}

export class Ingress {
  readonly credits: ReceiveCredits;
  tap: LinkTap | undefined;
  /** The number of the next frame to deliver; everything before has been. */
  expected: number;
  /** Something not yet acknowledged: a frame must go out at some time. */
  pending = false;
  /** The peer waits for an answer: a frame must go out now. */
  urgent = false;
  /** A gap is to be reported. */
  nakDue = false;
  readonly #link: LinkPort & { readonly live: boolean };
  readonly #user: LinkUser;
  readonly #counters: LinkCounters;
  readonly #options: LinkOptions;
  readonly #ackFrames: number;
  readonly #ackBytes: number;
  readonly #arrival = new Arrival();
  #frames = 0;
  #bytes = 0;
  /** The gap already reported is the one before this number: once is enough, a ping asks again. */
  #nakSentFor = -1;

  constructor(
    options: LinkOptions,
    peer: PeerReplay,
    link: LinkPort & { readonly live: boolean },
    user: LinkUser,
    counters: LinkCounters,
  ) {
    this.credits = new ReceiveCredits(options.windows);
    this.expected = options.initialSequence;
    this.#link = link;
    this.#user = user;
    this.#counters = counters;
    this.#options = options;
    // The peer must never stand still because its replay buffer is full of frames that arrived.
    this.#ackFrames = Math.max(1, Math.min(options.ackFrames, peer.replayFrames >> 2));
    this.#ackBytes = Math.min(options.ackBytes, peer.replayBytes >> 2);
  }

  /** A checked DATA frame. Returns what the peer did wrong, or `undefined`. */
  data(
    now: Nanos,
    frame: Frame,
    view: DataView,
    bytes: Uint8Array,
    offset: number,
  ): string | undefined {
    const gap = distance(frame.sequence, this.expected);
    const faults = this.#options.faults;
    if (gap < 0 && faults.noDuplicateFilter !== true) {
      this.#counters.duplicatesDropped++;
      // Sent again because an acknowledgement was lost, or is late.
      this.urgent = true;
      return undefined;
    }
    if (gap > 0 && faults.noSequenceCheck !== true) {
      this.#counters.outOfOrderDropped++;
      this.#gapSeen(false);
      return undefined;
    }
    if (gap >= 0) this.expected = advance(frame.sequence);
    this.pending = true;
    this.#frames++;
    this.#bytes += frame.length;
    if (this.#frames >= this.#ackFrames || this.#bytes >= this.#ackBytes) this.urgent = true;
    return this.#deliver(now, frame.entries, view, bytes, offset + SESSION_HEADER_BYTES);
  }

  /** A ping says which frame is the sender's next: what is before it and did not come is lost. */
  ping(nextSequence: number): void {
    this.urgent = true;
    if (distance(nextSequence, this.expected) > 0) this.#gapSeen(true);
  }

  /** Acknowledgement and credits have gone out; a reported gap if `withNak`. */
  told(withNak: boolean): void {
    if (withNak) this.nakDue = false;
    this.pending = false;
    // A gap that this frame could not report still has to be.
    this.urgent = this.nakDue;
    this.#frames = 0;
    this.#bytes = 0;
    this.credits.advertise();
  }

  /** On a new connection the peer starts from what HELLO said. */
  restart(): void {
    this.nakDue = false;
    this.#nakSentFor = -1;
  }

  #gapSeen(asked: boolean): void {
    if (!asked && this.#nakSentFor === this.expected) return;
    this.#nakSentFor = this.expected;
    this.nakDue = true;
    this.urgent = true;
  }

  /**
   * Offers a run to the user; false when nothing has happened. The same as one by one: there is credit
   * for all of them, and a user that takes a run sends nothing and ends no session by it.
   */
  #deliverRun(
    now: Nanos,
    view: DataView,
    bytes: Uint8Array,
    offset: number,
    count: number,
  ): boolean {
    const at = bytes.byteOffset + offset;
    const flow = entryFlowAt(view, at) as FlowClass;
    const units = dataUnitsOf(view.getUint32(at + ENTRY_HEADER_BYTES));
    if (!this.credits.covers(flow, units, count)) return false;
    const run = this.#arrivalAt(view, bytes, offset);
    run.stride = ENTRY_HEADER_BYTES + run.length;
    run.count = count;
    if (!this.#user.linkRun(now, this.#link, run)) return false;
    const { slot, offset: first, length, stride } = run;
    this.credits.pass(flow, units, count);
    const counters = this.#counters.in;
    counters.tlps[flow] += count;
    counters.tlpBytes[flow] += count * length;
    if (this.tap !== undefined) {
      for (let index = 0; index < count; index++) {
        this.tap(now, TapDirection.IN, slot, bytes, first + index * stride, length);
      }
    }
    return true;
  }

  #arrivalAt(view: DataView, bytes: Uint8Array, offset: number): Arrival {
    const arrival = this.#arrival;
    const at = bytes.byteOffset + offset;
    arrival.slot = entrySlotAt(view, at);
    arrival.generation = entryGenerationAt(view, at);
    arrival.bytes = bytes;
    arrival.offset = offset + ENTRY_HEADER_BYTES;
    arrival.length = entryLengthAt(view, at);
    return arrival;
  }

  #deliver(
    now: Nanos,
    entries: number,
    view: DataView,
    bytes: Uint8Array,
    from: number,
  ): string | undefined {
    const link = this.#link;
    const user = this.#user;
    const credits = this.credits;
    const counters = this.#counters.in;
    const noCreditCheck = this.#options.faults.noCreditCheck === true;
    const base = bytes.byteOffset;
    let offset = from;
    /** Entries before this one have been offered as a run, in vain. */
    let single = 0;
    for (let index = 0; index < entries; index++) {
      if (index >= single && index + 1 < entries) {
        const count = runOfEntries(view, base + offset, entries - index);
        if (count > 1) {
          if (this.#deliverRun(now, view, bytes, offset, count)) {
            index += count - 1;
            offset += count * (ENTRY_HEADER_BYTES + entryLengthAt(view, base + offset));
            continue;
          }
          single = index + count;
        }
      }
      const at = base + offset;
      const arrival = this.#arrivalAt(view, bytes, offset);
      const { slot, length } = arrival;
      offset += ENTRY_HEADER_BYTES;
      if (entryKindAt(view, at) === EntryKind.TLP) {
        const flow = entryFlowAt(view, at);
        const units = dataUnitsOf(view.getUint32(base + offset));
        if (!credits.receive(flow, units) && !noCreditCheck) {
          return `sent a TLP of flow class ${flow} without credit`;
        }
        counters.tlps[flow as 0 | 1 | 2]++;
        counters.tlpBytes[flow as 0 | 1 | 2] += length;
        if (this.tap !== undefined) this.tap(now, TapDirection.IN, slot, bytes, offset, length);
        // Counted as kept first: the user may release within the call.
        credits.keep(flow, units);
        if (user.linkTlp(now, link, arrival)) {
          credits.release(flow, units);
        }
      } else {
        counters.slotStates++;
        const state = view.getUint32(base + offset) as SlotState;
        user.linkSlotState(now, link, slot, arrival.generation, state);
      }
      // The user may have ended the session.
      if (!link.live) return undefined;
      offset += length;
    }
    return undefined;
  }
}
