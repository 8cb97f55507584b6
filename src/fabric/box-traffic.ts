/**
 * The traffic of a box proxy: what a host sends is fenced (invariant 2) and handed to its device, what
 * the link could not take is worked off when it can, and slots that wait for it get their turns.
 */
import { assert } from '#base/assert';
import type { Nanos } from '#base/units';
import { completeWithoutData } from '#pcie/completion';
import { CompletionStatus, FlowClass, flowClassOf, type Tlp, TlpKind } from '#pcie/tlp';
import { decodeTlp, TlpDecode } from '#pcie/tlp-codec';
import type { BoxProxyOptions } from './box-proxy-options.ts';
import type { BoxPeer, BoxSlot, BoxSlots } from './box-slot.ts';
import type { ArrivedRun, ArrivedTlp } from './link-user.ts';
import { Answer, advance, type OutstandingRequest } from './outstanding-requests.ts';
import type { ScratchTlps } from './scratch-tlps.ts';
import { isUnsupportedRequest } from './unsupported-request.ts';

export class BoxTraffic {
  readonly #slots: BoxSlots;
  readonly #scratch: ScratchTlps;
  readonly #limited: boolean;
  readonly #noPeerFence: boolean;
  readonly #noGenerationFence: boolean;
  /** Where in the list of slots the next turns begin. */
  #firstTurn = 0;

  constructor(slots: BoxSlots, scratch: ScratchTlps, options: BoxProxyOptions) {
    this.#slots = slots;
    this.#scratch = scratch;
    this.#limited = options.outstandingReads !== undefined;
    this.#noPeerFence = options.faults?.noPeerFence ?? false;
    this.#noGenerationFence = options.faults?.noGenerationFence ?? false;
  }

  /** One TLP, decoded into `tlp`. Returns false when the request has to wait. */
  receive(now: Nanos, peer: BoxPeer, arrived: ArrivedTlp, tlp: Tlp, wait: boolean): boolean {
    const { bytes, offset } = arrived;
    const decoded = decodeTlp(bytes, offset, arrived.length, tlp);
    const slot = this.#slots.at(arrived.slot);
    const fresh = slot !== undefined && this.#isFresh(peer, slot, arrived.generation);
    const counters = slot?.counters ?? this.#slots.stray;
    const unsupported =
      decoded === TlpDecode.UNSUPPORTED_KIND && isUnsupportedRequest(bytes[offset]);
    const corrupt = decoded === TlpDecode.BAD_ECRC;
    if (decoded !== TlpDecode.OK && !unsupported && !corrupt) {
      counters.malformed++;
      return true;
    }
    const flow = unsupported ? FlowClass.NON_POSTED : flowClassOf(tlp.kind);
    if (flow === FlowClass.NON_POSTED) {
      const room = peer.completions.size === 0 && peer.link.canSend(FlowClass.COMPLETION, 0);
      if (wait || !room) return false;
    }
    // A switch passes it on (2.7.1), and a function that does not check takes it: ours says so in its
    // AER capability. So whoever asked is answered, and the count tells of what was carried.
    if (corrupt) counters.ecrc++;
    if (slot === undefined || !fresh) {
      counters.countStale(tlp);
      if (flow === FlowClass.NON_POSTED) this.#answer(now, peer, arrived, tlp);
    } else if (flow === FlowClass.COMPLETION) {
      this.#completion(now, slot, tlp);
    } else if (unsupported || tlp.kind === TlpKind.CfgRd1 || tlp.kind === TlpKind.CfgWr1) {
      // Type 1 is for buses further down; behind a slot there is none (7.3.3).
      counters.unroutable++;
      this.#answer(now, peer, arrived, tlp);
    } else {
      counters.countDown(tlp);
      slot.device.receive(now, tlp);
    }
    return true;
  }

  /**
   * A run (`LinkUser.linkRun`), the first decoded into `tlp`. What the fence asks is alike in all of
   * them, and a device that takes a run changes nothing of it.
   */
  receiveRun(now: Nanos, peer: BoxPeer, run: ArrivedRun, tlp: Tlp): boolean {
    const slot = this.#slots.at(run.slot);
    if (slot === undefined || !this.#isFresh(peer, slot, run.generation)) return false;
    if (slot.device.receiveRun === undefined) return false;
    if (decodeTlp(run.bytes, run.offset, run.length, tlp) !== TlpDecode.OK) return false;
    let request: OutstandingRequest | undefined;
    if (flowClassOf(tlp.kind) === FlowClass.COMPLETION) {
      request = slot.outstanding.requestOfRun(tlp, slot.slot, slot.generation, run.count);
      if (request === undefined) return false;
    }
    if (!slot.device.receiveRun(now, tlp, run.stride, run.count)) return false;
    if (request !== undefined) advance(request, run.count * tlp.payloadBytes);
    slot.counters.countDown(tlp, run.count);
    return true;
  }

  #isFresh(peer: BoxPeer, slot: BoxSlot, generation: number): boolean {
    return (
      (slot.peer === peer || (this.#noPeerFence && slot.peer !== undefined)) &&
      (slot.generation === generation || this.#noGenerationFence)
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
    // It may have waited for a request to end; if it waits for the link too, it will find out.
    if (this.#limited && answer === Answer.LAST && slot.waiting) this.#resume(now, slot);
  }

  /** Ends a request that reaches no device with UR; the link has room for it. */
  #answer(now: Nanos, peer: BoxPeer, arrived: ArrivedTlp, request: Tlp): void {
    const out = this.#scratch.borrow();
    completeWithoutData(out, request, 0, CompletionStatus.UR);
    peer.link.sendTlp(now, arrived.slot, arrived.generation, out);
    this.#scratch.giveBack(out);
  }

  drain(now: Nanos, peer: BoxPeer): void {
    if (peer.draining) return;
    peer.draining = true;
    this.#drainCompletions(now, peer);
    while (peer.live && peer.completions.size === 0) {
      const first = peer.requests.first;
      if (first === undefined) break;
      const { payloadBytes } = first;
      const tlp = this.#scratch.borrow();
      const done = this.receive(now, peer, first, tlp, false);
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
      const slot = this.#slots.at(first.slot);
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
  giveTurns(now: Nanos, peer: BoxPeer): void {
    const count = this.#slots.list.length;
    do {
      peer.blocked = false;
      for (const slot of this.#slots.list) slot.sentInTurn = 0;
      const start = this.#firstTurn;
      for (let step = 0; step < count; step++) {
        const index = (start + step) % count;
        const slot = this.#slots.list[index];
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
}
