/**
 * The way up of a host proxy: what a box sends is decoded, fenced (invariant 2), checked (invariant 3)
 * and done. A refused non-posted request is answered UR, a refused posted one is dropped; both are
 * counted by reason and logged in the port's AER capability.
 */
import { assertDefined } from '#base/assert';
import type { Nanos } from '#base/units';
import { UncorrectableError } from '#pcie/aer';
import { requestByteCount } from '#pcie/completion';
import { MESSAGE_ASSERT_INTA } from '#pcie/intx';
import type { RootSide } from '#pcie/root-port';
import { CompletionStatus, FlowClass, flowClassOf, type Tlp, tlpAddress } from '#pcie/tlp';
import { decodeTlp, TlpDecode } from '#pcie/tlp-codec';
import { readLittleEndian32 } from './config-shadow.ts';
import { type Containment, isAtomic, operandBytes, Verdict } from './containment.ts';
import { Refusal } from './counters.ts';
import type { DmaService } from './dma-service.ts';
import type { HostDownstream } from './host-downstream.ts';
import type { HostPeer, HostRoutes, HostSlot } from './host-slot.ts';
import type { ArrivedRun, ArrivedTlp } from './link-user.ts';
import { isUnsupportedRequest } from './unsupported-request.ts';

/** What `receive` returns for a TLP it is done with; else how many bytes of its answer have gone. */
export const DONE = -1;

export interface HostUpstreamOptions {
  readonly routes: HostRoutes;
  readonly rootSide: RootSide;
  readonly downstream: HostDownstream;
  readonly containment: Containment;
  readonly dma: DmaService;
  readonly maxPayloadBytes: number;
  readonly onRefused: (now: Nanos, slot: HostSlot, refusal: Refusal, tlp: Tlp) => void;
  /** Test only: leave a check of the fence out. */
  readonly noPeerFence: boolean;
  readonly noGenerationFence: boolean;
}

export class HostUpstream {
  readonly #options: HostUpstreamOptions;
  readonly #routes: HostRoutes;
  readonly #containment: Containment;
  readonly #dma: DmaService;

  constructor(options: HostUpstreamOptions) {
    this.#options = options;
    this.#routes = options.routes;
    this.#containment = options.containment;
    this.#dma = options.dma;
  }

  /**
   * One TLP, decoded into `tlp`. A non-posted request whose answer the link does not take now, or
   * for which `wait` is set, is not looked at further: the result says how far it got, to be handed
   * in as `answered` the next time.
   */
  receive(
    now: Nanos,
    peer: HostPeer,
    arrived: ArrivedTlp,
    tlp: Tlp,
    answered: number,
    wait: boolean,
  ): number {
    const { bytes, offset } = arrived;
    const decoded = decodeTlp(bytes, offset, arrived.length, tlp);
    const slot = this.#slotOf(peer, arrived.slot);
    const fresh = slot !== undefined && this.#isFresh(peer, slot, arrived.generation);
    let flow = flowClassOf(tlp.kind);
    if (decoded !== TlpDecode.OK) {
      if (decoded !== TlpDecode.UNSUPPORTED_KIND || !isUnsupportedRequest(bytes[offset])) {
        this.#undecodable(now, fresh ? slot : undefined, decoded, tlp, arrived);
        return DONE;
      }
      flow = FlowClass.NON_POSTED;
    }
    if (flow === FlowClass.NON_POSTED && wait) return answered;
    const { link } = peer;
    if (slot === undefined || !fresh) {
      if (flow === FlowClass.NON_POSTED) {
        if (!link.canSend(FlowClass.COMPLETION, 0)) return answered;
        const { UR } = CompletionStatus;
        const counters = slot?.counters ?? this.#routes.stray;
        this.#dma.error(now, link, arrived, tlp, UR, answered, counters);
      }
      (slot?.counters ?? this.#routes.stray).countStale(tlp);
      return DONE;
    }
    if (tlp.payloadBytes > slot.shadow.maxPayloadBytes && flow !== FlowClass.NON_POSTED) {
      // 2.2.2. A request with an answer carries 32 bytes at most.
      this.#refuse(now, slot, Refusal.MALFORMED, tlp, arrived);
      return DONE;
    }
    if (flow === FlowClass.COMPLETION) {
      if (!this.#options.downstream.completion(now, slot, tlp)) {
        slot.counters.unexpectedCompletions++;
        slot.aer.logAdvisory(UncorrectableError.UNEXPECTED_COMPLETION, bytes, offset);
      }
      return DONE;
    }
    const verdict =
      decoded === TlpDecode.OK
        ? this.#containment.check(tlp, slot.shadow, this.#routes.table, slot.memory)
        : Refusal.UNSUPPORTED_KIND;
    if (verdict >= 0) {
      if (flow === FlowClass.NON_POSTED) {
        if (!link.canSend(FlowClass.COMPLETION, 0)) return answered;
        const { UR } = CompletionStatus;
        this.#dma.error(now, link, arrived, tlp, UR, answered, slot.counters);
      }
      this.#refuse(now, slot, verdict as Refusal, tlp, arrived);
      return DONE;
    }
    if (verdict === Verdict.INTERRUPT) {
      slot.counters.countUp(tlp);
      slot.counters.interrupts++;
      const data = readLittleEndian32(tlp.payload, tlp.payloadOffset);
      this.#options.rootSide.interrupt(now, slot.virtualSlot, tlpAddress(tlp), data);
      return DONE;
    }
    if (verdict === Verdict.INTERRUPT_PIN) {
      const asserted = tlp.messageCode === MESSAGE_ASSERT_INTA;
      slot.counters.countUp(tlp);
      if (asserted) slot.counters.interrupts++;
      slot.intx.set(asserted);
      slot.intx.show(now, this.#options.rootSide, !slot.shadow.interruptDisable);
      return DONE;
    }
    return this.#access(now, peer, slot, arrived, tlp, answered);
  }

  /**
   * A run (`LinkUser.linkRun`), the first decoded into `tlp`; memory writes alone are taken. All that is
   * checked of a TLP but its address is alike in all of them, and all their addresses lie in one region: what
   * the first may do, all may. Nothing here can change that between two of them.
   */
  receiveRun(peer: HostPeer, run: ArrivedRun, tlp: Tlp): boolean {
    const { count } = run;
    const slot = this.#slotOf(peer, run.slot);
    if (slot === undefined || !this.#isFresh(peer, slot, run.generation)) return false;
    if (decodeTlp(run.bytes, run.offset, run.length, tlp) !== TlpDecode.OK) return false;
    if (flowClassOf(tlp.kind) !== FlowClass.POSTED) return false;
    if (tlp.payloadBytes > slot.shadow.maxPayloadBytes) return false;
    const verdict = this.#containment.check(tlp, slot.shadow, this.#routes.table, slot.memory);
    if (verdict !== Verdict.MEMORY) return false;
    const region = assertDefined(this.#containment.region, 'a passed access lies in a region');
    if (tlpAddress(tlp) + count * tlp.payloadBytes - 1 > region.limit) return false;
    this.#dma.writeRun(tlp, region, run.stride, count);
    slot.counters.countUp(tlp, count);
    return true;
  }

  #access(
    now: Nanos,
    peer: HostPeer,
    slot: HostSlot,
    arrived: ArrivedTlp,
    tlp: Tlp,
    answered: number,
  ): number {
    const region = assertDefined(this.#containment.region, 'a passed access lies in a region');
    const { link } = peer;
    if (flowClassOf(tlp.kind) === FlowClass.POSTED) {
      this.#dma.write(tlp, region);
    } else if (isAtomic(tlp.kind)) {
      if (!link.canSend(FlowClass.COMPLETION, operandBytes(tlp))) return answered;
      this.#dma.atomic(now, link, arrived, tlp, region, slot.counters);
    } else {
      const { maxPayloadBytes } = slot.shadow;
      // Of a function that has not shown what it takes, 128 bytes are safe to assume (7.5.3.4).
      const known = maxPayloadBytes === Infinity ? 128 : maxPayloadBytes;
      const limit = Math.min(this.#options.maxPayloadBytes, known);
      const sent = this.#dma.read(now, link, arrived, tlp, region, limit, answered, slot.counters);
      if (sent < requestByteCount(tlp)) return sent;
    }
    slot.counters.countUp(tlp);
    return DONE;
  }

  #slotOf(peer: HostPeer, slotNumber: number): HostSlot | undefined {
    if (!this.#options.noPeerFence) return peer.slotAt(slotNumber);
    return this.#routes.slotOfRow.find((slot) => slot.row?.used && slot.row.slot === slotNumber);
  }

  #isFresh(peer: HostPeer, slot: HostSlot, generation: number): boolean {
    return (
      (slot.link === peer.link || (this.#options.noPeerFence && slot.state === 'ready')) &&
      (slot.generation === generation || this.#options.noGenerationFence)
    );
  }

  #undecodable(
    now: Nanos,
    slot: HostSlot | undefined,
    decoded: TlpDecode,
    tlp: Tlp,
    arrived: ArrivedTlp,
  ): void {
    const refusal =
      decoded === TlpDecode.BAD_ECRC
        ? Refusal.ECRC
        : decoded === TlpDecode.UNSUPPORTED_KIND
          ? Refusal.UNSUPPORTED_KIND
          : Refusal.MALFORMED;
    if (slot === undefined) (this.#routes.stray.refused[refusal] as number)++;
    else this.#refuse(now, slot, refusal, tlp, arrived);
  }

  #refuse(now: Nanos, slot: HostSlot, refusal: Refusal, tlp: Tlp, arrived: ArrivedTlp): void {
    const { bytes, offset } = arrived;
    (slot.counters.refused[refusal] as number)++;
    const error = ERROR_OF_REFUSAL[refusal];
    if (error !== undefined) {
      // 6.2.3.2.4.1: a request answered with UR is the requester's to report.
      const advisory =
        error === UncorrectableError.UNSUPPORTED_REQUEST &&
        flowClassOf(tlp.kind) === FlowClass.NON_POSTED;
      if (advisory) slot.aer.logAdvisory(error, bytes, offset);
      else slot.aer.logUncorrectable(error, bytes, offset);
    }
    if ((slot.reportedRefusals & (1 << refusal)) !== 0) return;
    slot.reportedRefusals |= 1 << refusal;
    this.#options.onRefused(now, slot, refusal, tlp);
  }
}

/** Messages are no error: a function may send them, this version has nobody to give them to. */
const ERROR_OF_REFUSAL: Readonly<Partial<Record<Refusal, UncorrectableError>>> = {
  [Refusal.MALFORMED]: UncorrectableError.MALFORMED_TLP,
  [Refusal.ECRC]: UncorrectableError.ECRC,
  [Refusal.UNSUPPORTED_KIND]: UncorrectableError.UNSUPPORTED_REQUEST,
  [Refusal.ADDRESS_TYPE]: UncorrectableError.UNSUPPORTED_REQUEST,
  [Refusal.CONFIG_OR_IO]: UncorrectableError.UNSUPPORTED_REQUEST,
  [Refusal.REQUESTER_ID]: UncorrectableError.UNSUPPORTED_REQUEST,
  [Refusal.BUS_MASTER_OFF]: UncorrectableError.UNSUPPORTED_REQUEST,
  [Refusal.ADDRESS]: UncorrectableError.UNSUPPORTED_REQUEST,
  [Refusal.INTERRUPT]: UncorrectableError.UNSUPPORTED_REQUEST,
  [Refusal.PEER_TO_PEER]: UncorrectableError.UNSUPPORTED_REQUEST,
  [Refusal.UNREGISTERED]: UncorrectableError.UNSUPPORTED_REQUEST,
  [Refusal.ACCESS]: UncorrectableError.UNSUPPORTED_REQUEST,
  [Refusal.POISONED]: UncorrectableError.POISONED_TLP,
};
