/**
 * The way down of a host proxy: requests of the CPU to the slot whose window or bus they name, and
 * the completions that answer them.
 */
import { assert } from '#base/assert';
import type { Nanos } from '#base/units';
import { completeWithoutData } from '#pcie/completion';
import type { RootSide } from '#pcie/root-port';
import {
  CompletionStatus,
  copyTlp,
  FlowClass,
  flowClassOf,
  hasSafeAddress,
  type Tlp,
  TlpKind,
  tlpAddress,
} from '#pcie/tlp';
import { readLittleEndian32 } from './config-shadow.ts';
import { isAtomic } from './containment.ts';
import type { HostRoutes, HostSlot } from './host-slot.ts';
import {
  Answer,
  type OutstandingRequest,
  OutstandingRequests,
  setAbort,
} from './outstanding-requests.ts';
import type { ScratchTlps } from './scratch-tlps.ts';

export interface HostDownstreamOptions {
  readonly routes: HostRoutes;
  readonly rootSide: RootSide;
  readonly scratch: ScratchTlps;
  readonly completerBdf: number;
  /** Test only: completions are passed on without looking for their request. */
  readonly noCompletionCheck: boolean;
}

export class HostDownstream {
  readonly #routes: HostRoutes;
  readonly #rootSide: RootSide;
  readonly #scratch: ScratchTlps;
  readonly #completerBdf: number;
  readonly #noCompletionCheck: boolean;
  readonly #outstanding = new OutstandingRequests();

  constructor(options: HostDownstreamOptions) {
    this.#routes = options.routes;
    this.#rootSide = options.rootSide;
    this.#scratch = options.scratch;
    this.#completerBdf = options.completerBdf;
    this.#noCompletionCheck = options.noCompletionCheck;
  }

  request(now: Nanos, tlp: Tlp): void {
    switch (tlp.kind) {
      case TlpKind.CfgRd1:
      case TlpKind.CfgWr1:
        this.#configRequest(now, tlp);
        return;
      case TlpKind.Cpl:
      case TlpKind.CplD:
        assert(false, 'completions to a function are made by the DMA service alone');
        return;
      default:
        break;
    }
    const slot = isMemory(tlp.kind) && hasSafeAddress(tlp) ? this.#slotOfAddress(tlp) : undefined;
    if (slot === undefined) this.#unroutable(now, tlp);
    else this.#send(now, slot, tlp);
  }

  /** A run of memory writes to one slot; returns how many went (`DownstreamFabric.requestWrites`). */
  writes(now: Nanos, first: Tlp, count: number): number {
    if (!hasSafeAddress(first)) return 0;
    const { table, slotOfRow } = this.#routes;
    const address = tlpAddress(first);
    const last = address + count * first.payloadBytes - 1;
    // A run is shorter than the gap between two windows: what has both its ends in a row has all of it.
    const index = table.rowOfAddress(address);
    const slot = index === table.rowOfAddress(last) ? slotOfRow[index] : undefined;
    const { row, link } = slot ?? {};
    if (slot === undefined || row === undefined || link === undefined) return 0;
    if (slot.shadow.isWatched(address, last)) return 0;
    const sent = link.sendRun(now, row.slot, row.generation, first, count);
    slot.counters.countDown(first, sent);
    return sent;
  }

  #slotOfAddress(tlp: Tlp): HostSlot | undefined {
    return this.#routes.slotOfRow[this.#routes.table.rowOfAddress(tlpAddress(tlp))];
  }

  /** Type 1 to the secondary bus becomes type 0; behind a port there is device 0 alone (7.3.1). */
  #configRequest(now: Nanos, tlp: Tlp): void {
    const slot = this.#routes.slotOfRow[this.#routes.table.rowOfBus(tlp.completerId >>> 8)];
    if (slot === undefined || ((tlp.completerId >>> 3) & 31) !== 0) {
      this.#unroutable(now, tlp);
      return;
    }
    if (slot.state === 'waiting') {
      this.#answer(now, tlp, CompletionStatus.CRS);
      return;
    }
    const down = this.#scratch.borrow();
    copyTlp(down, tlp);
    down.hints = false;
    const write = tlp.kind === TlpKind.CfgWr1;
    down.kind = write ? TlpKind.CfgWr0 : TlpKind.CfgRd0;
    if (slot.link !== undefined && write && (tlp.completerId & 7) === 0) {
      const value = readLittleEndian32(tlp.payload, tlp.payloadOffset);
      slot.shadow.write(tlp.completerId, tlp.register, value, tlp.firstBe);
      slot.intx.show(now, this.#rootSide, !slot.shadow.interruptDisable);
    }
    this.#send(now, slot, down);
    this.#scratch.giveBack(down);
  }

  #send(now: Nanos, slot: HostSlot, tlp: Tlp): void {
    const { row, link, counters } = slot;
    const nonPosted = flowClassOf(tlp.kind) === FlowClass.NON_POSTED;
    if (link === undefined || row === undefined) {
      if (nonPosted) {
        counters.aborted++;
        this.#answer(now, tlp, CompletionStatus.UR);
      } else {
        counters.dropped++;
      }
      return;
    }
    if (nonPosted) {
      assert(!this.#outstanding.has(tlp), 'a tag is not reused while its request is outstanding');
      this.#outstanding.open(tlp, slot.virtualSlot, row.generation);
    } else {
      slot.shadow.memoryWrite(tlp);
    }
    counters.countDown(tlp);
    link.sendTlp(now, row.slot, row.generation, tlp);
  }

  /**
   * A completion that came up from `slot` and passed the fence. Returns false when it is not expected
   * (nothing outstanding of this slot and generation, or not as asked): it is dropped.
   */
  completion(now: Nanos, slot: HostSlot, tlp: Tlp): boolean {
    const answer = this.#outstanding.accept(tlp, slot.virtualSlot, slot.generation);
    if (answer === Answer.UNEXPECTED && !this.#noCompletionCheck) return false;
    if (answer === Answer.LAST) this.#watch(slot, this.#outstanding.accepted, tlp);
    slot.counters.countUp(tlp);
    this.#rootSide.completion(now, tlp);
    return true;
  }

  /** Ends what is outstanding of some slots with UR, oldest first. State has changed before. */
  abort(now: Nanos, slots: readonly HostSlot[]): void {
    for (const slot of slots) {
      for (const request of this.#outstanding.takeAll(slot.virtualSlot)) {
        slot.counters.aborted++;
        const out = this.#scratch.borrow();
        setAbort(out, request, this.#completerBdf);
        this.#rootSide.completion(now, out);
        this.#scratch.giveBack(out);
      }
    }
  }

  /** The shadow learns from what the host sees of function 0. */
  #watch(slot: HostSlot, request: OutstandingRequest, tlp: Tlp): void {
    if ((request.bdf & 7) !== 0) return;
    if (request.kind === TlpKind.CfgWr0) {
      slot.shadow.writeCompleted(request.register);
    } else if (request.kind === TlpKind.CfgRd0) {
      if (tlp.kind !== TlpKind.CplD || tlp.poisoned) return;
      slot.shadow.readCompleted(
        request.register,
        readLittleEndian32(tlp.payload, tlp.payloadOffset),
      );
    }
  }

  #unroutable(now: Nanos, tlp: Tlp): void {
    this.#routes.stray.unroutable++;
    if (flowClassOf(tlp.kind) === FlowClass.NON_POSTED) this.#answer(now, tlp, CompletionStatus.UR);
  }

  #answer(now: Nanos, request: Tlp, status: CompletionStatus): void {
    const out = this.#scratch.borrow();
    completeWithoutData(out, request, this.#completerBdf, status);
    this.#rootSide.completion(now, out);
    this.#scratch.giveBack(out);
  }
}

function isMemory(kind: TlpKind): boolean {
  switch (kind) {
    case TlpKind.MRd32:
    case TlpKind.MRd64:
    case TlpKind.MWr32:
    case TlpKind.MWr64:
      return true;
    default:
      return isAtomic(kind);
  }
}
