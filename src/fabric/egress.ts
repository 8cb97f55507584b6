/**
 * The sending half of a session above the transport: TLPs into frames.
 *
 * A TLP for which there is credit, and before which nothing waits, is encoded straight into the open
 * frame of the replay buffer. All others are encoded into the ordered queue, which releases them as
 * credits come, in the order PCIe allows. Slot states wait beside it until what was queued before
 * them is gone; TLPs queued after a slot state may overtake it, as they may a non-posted request.
 */
import { assert } from '#base/assert';
import { copyBytes } from '#base/copy-bytes';
import type { Nanos } from '#base/units';
import { type CreditGate, OrderedQueue } from '#pcie/ordered-queue';
import { orderingClassOf } from '#pcie/ordering';
import { FlowClass, flowClassOf, type Tlp } from '#pcie/tlp';
import { encodedTlpBytes, encodeTlp } from '#pcie/tlp-codec';
import { encodeRun } from '#pcie/tlp-run';
import { SendCredits } from './credits.ts';
import {
  beginSessionHeader,
  ENTRY_HEADER_BYTES,
  EntryKind,
  FrameType,
  SESSION_HEADER_BYTES,
  writeEntryHeader,
} from './frame.ts';
import type { LinkCounters } from './link-counters.ts';
import { type LinkFaults, type LinkOptions, type LinkTap, TapDirection } from './link-options.ts';
import type { SlotState } from './link-user.ts';
import { ReplayBuffer } from './replay-buffer.ts';

/** Header of 4 DW and ECRC: what an encoded TLP may add to its payload. */
const MOST_HEADER_BYTES = 20;
const WITH_DATA = 0x40;

export interface EgressSink {
  /** A full frame has been sealed: send it if the transport can take it. */
  sealed(now: Nanos): void;
}

interface WaitingState {
  readonly slot: number;
  readonly generation: number;
  readonly state: SlotState;
  /** Number of TLPs committed to the queue before it. */
  readonly order: number;
}

export class Egress implements CreditGate {
  readonly replay: ReplayBuffer;
  readonly credits: SendCredits;
  tap: LinkTap | undefined;
  readonly #queue: OrderedQueue;
  readonly #states: WaitingState[] = [];
  readonly #sink: EgressSink;
  readonly #counters: LinkCounters;
  readonly #faults: LinkFaults;
  readonly #maxFrameBytes: number;
  #openBytes = 0;
  #openEntries = 0;
  /** TLPs and slot states that could not go at once. */
  #waiting = 0;
  #committed = 0;
  #generation = 0;
  #generationHi = 0;

  constructor(
    options: LinkOptions,
    maxFrameBytes: number,
    firstSequence: number,
    limits: Uint32Array,
    counters: LinkCounters,
    sink: EgressSink,
  ) {
    this.replay = new ReplayBuffer(
      options.replayBytes,
      options.replayFrames,
      maxFrameBytes,
      firstSequence,
    );
    this.credits = new SendCredits(limits);
    const room = { bytes: options.queueBytes, entries: options.queueTlps };
    this.#queue = new OrderedQueue([room, room, room]);
    this.#maxFrameBytes = maxFrameBytes;
    this.#counters = counters;
    this.#faults = options.faults;
    this.#sink = sink;
  }

  get hasOpenFrame(): boolean {
    return this.#openEntries > 0;
  }

  get waiting(): number {
    return this.#waiting;
  }

  canSend(flow: FlowClass, payloadBytes: number): boolean {
    // An empty queue holds any TLP.
    return this.#waiting === 0 || this.#queue.hasRoom(flow, payloadBytes + MOST_HEADER_BYTES);
  }

  allows(flow: FlowClass, payloadBytes: number): boolean {
    return this.#faults.noCreditWait === true || this.credits.allows(flow, payloadBytes);
  }

  sendTlp(now: Nanos, slot: number, generation: number, tlp: Tlp): void {
    const flow = flowClassOf(tlp.kind);
    const payloadBytes = (tlp.kind & WITH_DATA) === 0 ? 0 : tlp.payloadBytes;
    const length = encodedTlpBytes(tlp);
    if (this.#waiting === 0) {
      if (this.allows(flow, payloadBytes)) {
        const at = this.#begin(now, length);
        if (at >= 0) {
          encodeTlp(tlp, this.replay.bytes, at);
          this.credits.take(flow, payloadBytes);
          this.#end(now, EntryKind.TLP, flow, slot, generation, at, length);
          return;
        }
      } else {
        this.#counters.creditStalls[flow]++;
      }
    }
    const place = this.#queue.reserve(flow, length);
    encodeTlp(tlp, place.buffer, place.offset);
    const source = flow === FlowClass.COMPLETION ? tlp.completerId : tlp.requesterId;
    const ordering = orderingClassOf(tlp.kind);
    this.#queue.commit(slot, generation, payloadBytes, ordering, tlp.attributes, source);
    this.#committed++;
    this.#waiting++;
    // What waits may wait for another class's credits: this one may be free to go.
    this.drain(now);
  }

  /**
   * Puts a run straight into the open frame; returns how many of it (`LinkPort.sendRun`).
   * The same as `sendTlp` for each: nothing waits that they would have to wait behind, and there is
   * credit and room for all of them before the first is written.
   */
  sendRun(now: Nanos, slot: number, generation: number, first: Tlp, wanted: number): number {
    const { payloadBytes } = first;
    const flow = flowClassOf(first.kind);
    const most = Math.min(wanted, this.credits.covers(flow, payloadBytes));
    if (this.#waiting > 0 || most === 0) return 0;
    const length = encodedTlpBytes(first);
    const at = this.#begin(now, length);
    if (at < 0) return 0;
    const stride = ENTRY_HEADER_BYTES + length;
    const room = this.#maxFrameBytes - this.#openBytes;
    const count = Math.min(most, Math.floor(room / stride));
    encodeRun(first, count, this.replay.bytes, at, stride);
    this.credits.take(flow, payloadBytes, count);
    for (let index = 0; index < count; index++) {
      const entry = at + index * stride;
      this.#end(now, EntryKind.TLP, flow, slot, generation, entry, length);
    }
    return count;
  }

  sendSlotState(now: Nanos, slot: number, generation: number, state: SlotState): void {
    this.#states.push({ slot, generation, state, order: this.#committed });
    this.#waiting++;
    this.drain(now);
  }

  /** Puts into frames what waits and may go now. */
  drain(now: Nanos): void {
    while (this.#waiting > 0) {
      if (this.#stateIsNext()) {
        if (!this.#putState(now)) return;
        continue;
      }
      const flow = this.#pick();
      if (flow === -1) return;
      const entry = this.#queue.peek(flow);
      const length = entry.length;
      const at = this.#begin(now, length);
      if (at < 0) return;
      copyBytes(this.replay.bytes, at, entry.buffer, entry.offset, length);
      this.credits.take(flow, entry.payloadBytes);
      const { slot, generation } = entry;
      this.#queue.pop(flow);
      this.#waiting--;
      this.#end(now, EntryKind.TLP, flow, slot, generation, at, length);
    }
  }

  /** Ends the open frame, if anything is in it. */
  seal(): void {
    if (this.#openEntries === 0) return;
    const replay = this.replay;
    const length = this.#openBytes;
    beginSessionHeader(
      replay.view,
      replay.openOffset,
      FrameType.DATA,
      this.#openEntries,
      length,
      replay.next,
    );
    replay.seal(length);
    this.#openBytes = 0;
    this.#openEntries = 0;
  }

  /**
   * Whether nothing of a class waits: the time to let a stalled user go on. While something waits all
   * that comes has to wait behind it, and is copied twice.
   */
  isClear(flow: FlowClass): boolean {
    return this.#queue.count(flow) === 0;
  }

  /** Where an entry of `length` bytes goes, in the open frame or a new one; −1 if there is no room. */
  #begin(now: Nanos, length: number): number {
    const replay = this.replay;
    const bytes = ENTRY_HEADER_BYTES + length;
    if (this.#openEntries > 0 && this.#openBytes + bytes > this.#maxFrameBytes) {
      this.seal();
      this.#sink.sealed(now);
    }
    if (this.#openBytes === 0) {
      if (!replay.open()) {
        this.#counters.replayStalls++;
        return -1;
      }
      this.#openBytes = SESSION_HEADER_BYTES;
    }
    return replay.openOffset + this.#openBytes + ENTRY_HEADER_BYTES;
  }

  /** Completes the entry whose bytes have been written at `at`. */
  #end(
    now: Nanos,
    kind: number,
    flow: FlowClass,
    slot: number,
    generation: number,
    at: number,
    length: number,
  ): void {
    if (generation !== this.#generation) {
      this.#generation = generation;
      this.#generationHi = Math.floor(generation / 0x1_0000_0000);
    }
    const view = this.replay.view;
    const header = at - ENTRY_HEADER_BYTES;
    writeEntryHeader(view, header, kind, flow, slot, this.#generationHi, generation, length);
    this.#openBytes += ENTRY_HEADER_BYTES + length;
    this.#openEntries++;
    if (kind !== EntryKind.TLP) return;
    const out = this.#counters.out;
    out.tlps[flow]++;
    out.tlpBytes[flow] += length;
    if (this.tap !== undefined) {
      this.tap(now, TapDirection.OUT, slot, this.replay.bytes, at, length);
    }
  }

  #stateIsNext(): boolean {
    const state = this.#states[0];
    if (state === undefined) return false;
    const queue = this.#queue;
    for (const flow of FLOWS) {
      if (queue.count(flow) > 0 && queue.peek(flow).order < state.order) return false;
    }
    return true;
  }

  #putState(now: Nanos): boolean {
    const at = this.#begin(now, 4);
    if (at < 0) return false;
    const waiting = this.#states.shift();
    assert(waiting !== undefined, 'a slot state was next');
    this.#waiting--;
    this.replay.view.setUint32(at, waiting.state);
    this.#end(now, EntryKind.SLOT_STATE, 0, waiting.slot, waiting.generation, at, 4);
    this.#counters.out.slotStates++;
    return true;
  }

  #pick(): FlowClass | -1 {
    const faults = this.#faults;
    if (faults.noOrdering !== true && faults.headOfLine !== true) return this.#queue.next(this);
    const queue = this.#queue;
    const heads = [FlowClass.COMPLETION, FlowClass.NON_POSTED, FlowClass.POSTED].filter(
      (flow) => queue.count(flow) > 0,
    );
    if (faults.headOfLine === true) heads.sort((a, b) => queue.peek(a).order - queue.peek(b).order);
    for (const flow of heads) {
      if (this.allows(flow, queue.peek(flow).payloadBytes)) return flow;
      if (faults.headOfLine === true) return -1;
    }
    return -1;
  }
}

const FLOWS: readonly FlowClass[] = [FlowClass.POSTED, FlowClass.NON_POSTED, FlowClass.COMPLETION];
