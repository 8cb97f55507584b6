/**
 * The host's end of the distributed switch. Downwards it routes the CPU's requests by window and bus
 * to the box slot behind them; upwards it lets a function do what invariant 3 allows and no more.
 *
 * Who owns what: `HostProxy` owns the table and the peers (`host-slot.ts`), `HostSlotLife` the slots: it
 * decides when one comes up or goes down. `HostDownstream` owns the outstanding requests, `HostUpstream`
 * drives `Containment` and `DmaService`; both get the state by reference and change only a slot's shadow
 * and counters. State is changed before anybody is told: an effect may call back.
 *
 * A pure machine without deadlines of its own: the completion timeout is the requester's (2.8).
 */
import { assert } from '#base/assert';
import { DxpuError } from '#base/errors';
import type { Nanos } from '#base/units';
import type { AdvancedErrorReporting } from '#pcie/aer';
import type { DownstreamFabric, RootSide } from '#pcie/root-port';
import { FlowClass, type Tlp } from '#pcie/tlp';
import { Containment } from './containment.ts';
import { REFUSAL_NAMES, type Refusal, type RefusalName, type SlotCounters } from './counters.ts';
import { DmaService } from './dma-service.ts';
import { HostDownstream } from './host-downstream.ts';
import type { HostProxyOptions } from './host-proxy-options.ts';
import {
  type FunctionPlace,
  HostPeer,
  HostRoutes,
  type HostSlot,
  type HostSlotState,
} from './host-slot.ts';
import { HostSlotLife } from './host-slot-life.ts';
import { checkHostTable, HostTable } from './host-table.ts';
import { checkMemory } from './host-table-history.ts';
import { DONE, HostUpstream } from './host-upstream.ts';
import type { ArrivedRun, ArrivedTlp, LinkPort, LinkUser, SlotState } from './link-user.ts';
import type { HostRow } from './mapping-table.ts';
import { MemoryMap } from './memory-map.ts';
import { Peers } from './peers.ts';
import { describeRefused } from './refusal-text.ts';
import { ScratchTlps } from './scratch-tlps.ts';
import type { TableError } from './table-check.ts';

export type { HostProxyEvent, HostProxyFaults, HostProxyOptions } from './host-proxy-options.ts';
export type { HostSlotState } from './host-slot.ts';

export class HostProxy implements DownstreamFabric, LinkUser {
  readonly hostId: string;
  readonly #rootSide: RootSide;
  readonly #options: HostProxyOptions;
  readonly #memory = new MemoryMap();
  readonly #scratch = new ScratchTlps();
  readonly #routes = new HostRoutes();
  readonly #peers = new Peers<HostPeer>();
  readonly #life: HostSlotLife;
  readonly #downstream: HostDownstream;
  readonly #upstream: HostUpstream;

  constructor(options: HostProxyOptions) {
    this.hostId = options.hostId;
    this.#options = options;
    this.#rootSide = options.rootSide;
    const faults = options.faults ?? {};
    const shared = { routes: this.#routes, rootSide: this.#rootSide, scratch: this.#scratch };
    const completerBdf = options.completerBdf ?? 0;
    this.#downstream = new HostDownstream({
      ...shared,
      completerBdf,
      noCompletionCheck: faults.noCompletionCheck ?? false,
    });
    this.#life = new HostSlotLife(options, this.#memory, this.#downstream);
    this.#upstream = new HostUpstream({
      ...shared,
      downstream: this.#downstream,
      containment: new Containment(faults),
      dma: new DmaService({
        scratch: this.#scratch,
        completerBdf,
        rcbBytes: options.rcbBytes ?? 64,
      }),
      maxPayloadBytes: options.maxPayloadBytes ?? 512,
      onRefused: (now, slot, refusal, tlp) => this.#reportRefused(now, slot, refusal, tlp),
      noPeerFence: faults.noPeerFence ?? false,
      noGenerationFence: faults.noGenerationFence ?? false,
    });
  }

  /**
   * Puts a whole table in force, or refuses all of it and changes nothing. Rows that go, or come
   * with another generation, are fenced before this returns. A slot that is bound anew needs a
   * generation above every one it had; windows and bus of a bound slot may change in place.
   */
  setTable(now: Nanos, rows: readonly HostRow[]): TableError[] {
    const errors = checkHostTable(rows);
    if (errors.length > 0) return errors;
    const table = new HostTable(rows);
    errors.push(...this.#life.checkHistory(rows), ...checkMemory(table, this.#memory));
    if (errors.length > 0) return errors;

    const left = this.#life.unbind(rows);
    this.#routes.table = table;
    this.#routes.slotOfRow = rows.map((row) => this.#life.bind(row));
    for (const peer of this.#peers) this.#fillPeer(peer);
    this.#life.unbound(now, left);
    for (const peer of this.#peers) this.#life.applyStates(now, peer);
    return [];
  }

  /**
   * Lets the function of a row into its slot, now or when the row is ready. Does nothing for one that
   * is in, or has been taken out.
   */
  plug(now: Nanos, virtualSlot: number): void {
    this.#life.plug(now, virtualSlot);
  }

  /**
   * Takes the function of a row out of its slot: nothing passes any more, either way, before this
   * returns. It comes back under a new generation alone; one that had not entered stays out until
   * `plug`.
   */
  unplug(now: Nanos, virtualSlot: number, surprise: boolean): void {
    this.#life.unplug(now, virtualSlot, surprise);
  }

  /** Where the function of a row is, or `undefined` without a row. */
  functionPlace(virtualSlot: number): FunctionPlace | undefined {
    return this.#life.place(virtualSlot);
  }

  /** Bits of the function's command register, as its host has set them (7.5.1.1.3). */
  command(virtualSlot: number): { readonly memoryEnable: boolean; readonly busMaster: boolean } {
    const slot = this.#life.known(virtualSlot);
    if (slot?.link === undefined) return { memoryEnable: false, busMaster: false };
    const { memoryEnable, busMaster } = slot.shadow;
    return { memoryEnable, busMaster };
  }

  /** The table in force. */
  get rows(): readonly HostRow[] {
    return this.#routes.table.rows;
  }

  slotState(virtualSlot: number): HostSlotState {
    return this.#life.known(virtualSlot)?.state ?? 'unused';
  }

  /** Live counters of a virtual slot, kept over generations. */
  counters(virtualSlot: number): SlotCounters {
    return this.#life.slot(virtualSlot).counters;
  }

  /** What could not be put down to any row: unknown slots, undecodable TLPs, requests to no window. */
  get strayCounters(): SlotCounters {
    return this.#routes.stray;
  }

  /** The AER capability refusals of a slot are logged in. */
  aer(virtualSlot: number): AdvancedErrorReporting {
    return this.#life.slot(virtualSlot).aer;
  }

  canRequest(virtualSlot: number, flow: FlowClass, payloadBytes: number): boolean {
    const link = this.#life.known(virtualSlot)?.link;
    return link === undefined || link.canSend(flow, payloadBytes);
  }

  request(now: Nanos, tlp: Tlp): void {
    this.#downstream.request(now, tlp);
  }

  requestWrites(now: Nanos, first: Tlp, count: number): number {
    return this.#downstream.writes(now, first, count);
  }

  /**
   * Sends what was queued since the last call. The owner calls it at the end of each turn, so that
   * what a turn has caused leaves in as few frames as hold it. A link does it for its own turns.
   */
  flush(now: Nanos): void {
    this.#peers.flush(now);
  }

  /**
   * For all slots (not with `ownMemory`). Also refused: memory that shares an address with a window of
   * the table.
   */
  registerMemory(
    base: number,
    memory: Uint8Array,
    access: { read: boolean; write: boolean },
  ): void {
    assert(this.#options.ownMemory !== true, 'with memory of their own, slots have none together');
    const limit = base + memory.length - 1;
    const row = memory.length > 0 ? this.#routes.table.rowOverlapping(base, limit) : -1;
    const { virtualSlot } = this.#routes.table.rows[row] ?? {};
    if (virtualSlot !== undefined) {
      throw new DxpuError(
        'already_exists',
        `memory at 0x${base.toString(16)} overlaps a window of virtual slot ${virtualSlot}`,
      );
    }
    this.#memory.register(base, memory, access);
  }

  /** Reads not yet answered that touch the region end with UR. `not_found` when there is none. */
  unregisterMemory(base: number): void {
    if (this.#options.faults?.noMemoryBarrier !== true) this.#memory.unregister(base);
  }

  /**
   * Opens memory to the function of one slot, whatever is bound there (`ownMemory`); the bytes are shared.
   * Its addresses are those the function uses, and may be those of a window too: memory goes first.
   * Errors as of `MemoryMap.register`.
   */
  registerSlotMemory(
    virtualSlot: number,
    base: number,
    memory: Uint8Array,
    access: { read: boolean; write: boolean },
  ): void {
    this.#slotMemory(virtualSlot).register(base, memory, access);
  }

  /** As `unregisterMemory`, of one slot. */
  unregisterSlotMemory(virtualSlot: number, base: number): void {
    const memory = this.#slotMemory(virtualSlot);
    if (this.#options.faults?.noMemoryBarrier !== true) memory.unregister(base);
  }

  linkUp(now: Nanos, link: LinkPort): void {
    if (link.peer.kind !== 'box') return;
    const earlier = this.#peers.named(link.peer.id);
    if (earlier !== undefined) this.linkDown(now, earlier.link, 'a new session took its place');
    const peer = new HostPeer(link);
    this.#peers.add(peer);
    this.#fillPeer(peer);
  }

  linkTlp(now: Nanos, link: LinkPort, arrived: ArrivedTlp): boolean {
    const peer = this.#peers.of(link);
    if (peer === undefined) return true;
    const tlp = this.#scratch.borrow();
    const wait = peer.kept.size > 0;
    const answered = this.#upstream.receive(now, peer, arrived, tlp, 0, wait);
    const done = answered === DONE;
    if (!done) peer.kept.push(arrived, tlp.payloadBytes, answered);
    this.#scratch.giveBack(tlp);
    return done;
  }

  linkRun(_now: Nanos, link: LinkPort, run: ArrivedRun): boolean {
    const peer = this.#peers.of(link);
    if (peer === undefined) return false;
    const tlp = this.#scratch.borrow();
    const done = this.#upstream.receiveRun(peer, run, tlp);
    this.#scratch.giveBack(tlp);
    return done;
  }

  linkSlotState(
    now: Nanos,
    link: LinkPort,
    slot: number,
    generation: number,
    state: SlotState,
  ): void {
    const peer = this.#peers.of(link);
    if (peer === undefined) return;
    peer.states.set(slot, { generation, state });
    this.#life.applyState(now, peer, slot);
  }

  linkResume(now: Nanos, link: LinkPort): void {
    const peer = this.#peers.of(link);
    if (peer === undefined) return;
    if (peer.deferred && link.attached) {
      peer.deferred = false;
      this.#life.applyStates(now, peer);
    }
    this.#drain(now, peer);
    this.#rootSide.resume(now);
  }

  linkDown(now: Nanos, link: LinkPort, reason: string): void {
    const peer = this.#peers.of(link);
    if (peer === undefined) return;
    peer.live = false;
    peer.kept.clear();
    this.#peers.remove(peer);
    const slots = [...peer.slots.values()].filter((slot) => slot.session === link);
    this.#life.contain(now, slots, `link to box ${peer.box} is down: ${reason}`);
    // Whoever waits for `canRequest` is answered at once from here on.
    this.#rootSide.resume(now);
  }

  #slotMemory(virtualSlot: number): MemoryMap {
    assert(this.#options.ownMemory === true, 'slots have memory of their own only if asked for');
    return this.#life.slot(virtualSlot).memory;
  }

  #fillPeer(peer: HostPeer): void {
    peer.clearSlots();
    for (const slot of this.#routes.slotOfRow) {
      if (slot.row?.box === peer.box) peer.slots.set(slot.row.slot, slot);
    }
  }

  /** Answers kept requests as far as the link takes completions. */
  #drain(now: Nanos, peer: HostPeer): void {
    if (peer.draining) return;
    peer.draining = true;
    for (;;) {
      const first = peer.kept.first;
      if (first === undefined) break;
      const { answered, payloadBytes } = first;
      const tlp = this.#scratch.borrow();
      const result = this.#upstream.receive(now, peer, first, tlp, answered, false);
      this.#scratch.giveBack(tlp);
      if (!peer.live) break;
      if (result !== DONE) {
        first.answered = result;
        break;
      }
      peer.kept.shift();
      peer.link.release(now, FlowClass.NON_POSTED, payloadBytes);
    }
    peer.draining = false;
  }

  #reportRefused(now: Nanos, slot: HostSlot, refusal: Refusal, tlp: Tlp): void {
    const { onEvent } = this.#options;
    if (onEvent === undefined) return;
    const reason = REFUSAL_NAMES[refusal] as RefusalName;
    const { virtualSlot } = slot;
    const message = describeRefused(slot, refusal, tlp);
    onEvent(now, { kind: 'refused', virtualSlot, reason, message });
  }
}
