/**
 * The host's end of the distributed switch. Downwards it routes the CPU's requests by window and bus
 * to the box slot behind them; upwards it lets a function do what invariant 3 allows and no more.
 *
 * Who owns what: `HostProxy` owns the table, the slots and the peers (`host-slot.ts`) and decides when
 * a slot comes up or goes down. `HostDownstream` owns the outstanding requests, `HostUpstream` drives
 * `Containment` and `DmaService`; both get the state by reference and change only a slot's shadow and
 * counters. State is changed before anybody is told: an effect may call back.
 *
 * A pure machine without deadlines of its own: the completion timeout is the requester's (2.8).
 */
import { DxpuError } from '#base/errors';
import type { Nanos } from '#base/units';
import type { AdvancedErrorReporting } from '#pcie/aer';
import type { DownstreamFabric, RootSide } from '#pcie/root-port';
import { FlowClass, type Tlp } from '#pcie/tlp';
import { Containment } from './containment.ts';
import { REFUSAL_NAMES, type Refusal, type RefusalName, type SlotCounters } from './counters.ts';
import { DmaService } from './dma-service.ts';
import { HostDownstream } from './host-downstream.ts';
import type { HostProxyFaults, HostProxyOptions } from './host-proxy-options.ts';
import {
  type FunctionPlace,
  HostPeer,
  HostRoutes,
  HostSlot,
  type HostSlotState,
} from './host-slot.ts';
import { checkHostTable, HostTable } from './host-table.ts';
import { checkMemory, HostTableHistory, isSameHostBinding } from './host-table-history.ts';
import { DONE, HostUpstream } from './host-upstream.ts';
import { type LinkPort, type LinkUser, SlotState } from './link-user.ts';
import type { HostRow } from './mapping-table.ts';
import { MemoryMap } from './memory-map.ts';
import { describeRefused } from './refusal-text.ts';
import { ScratchTlps } from './scratch-tlps.ts';
import type { TableError } from './table-check.ts';

export type { HostProxyEvent, HostProxyFaults, HostProxyOptions } from './host-proxy-options.ts';
export type { HostSlotState } from './host-slot.ts';

export class HostProxy implements DownstreamFabric, LinkUser {
  readonly hostId: string;
  readonly #rootSide: RootSide;
  readonly #options: HostProxyOptions;
  readonly #faults: HostProxyFaults;
  readonly #memory = new MemoryMap();
  readonly #scratch = new ScratchTlps();
  readonly #routes = new HostRoutes();
  readonly #slots = new Map<number, HostSlot>();
  readonly #peers = new Map<string, HostPeer>();
  readonly #downstream: HostDownstream;
  readonly #upstream: HostUpstream;
  readonly #history = new HostTableHistory();
  #lastPeer: HostPeer | undefined;

  constructor(options: HostProxyOptions) {
    this.hostId = options.hostId;
    this.#options = options;
    this.#rootSide = options.rootSide;
    const faults = options.faults ?? {};
    this.#faults = faults;
    const shared = { routes: this.#routes, rootSide: this.#rootSide, scratch: this.#scratch };
    const completerBdf = options.completerBdf ?? 0;
    this.#downstream = new HostDownstream({
      ...shared,
      completerBdf,
      noCompletionCheck: faults.noCompletionCheck ?? false,
    });
    this.#upstream = new HostUpstream({
      ...shared,
      downstream: this.#downstream,
      containment: new Containment(this.#memory, faults),
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
    errors.push(...this.#history.check(rows), ...checkMemory(table, this.#memory));
    if (errors.length > 0) return errors;

    const left: HostSlot[] = [];
    const wereReady: { slot: HostSlot; generation: number; wasIn: boolean }[] = [];
    const next = new Map(rows.filter((row) => row.used).map((row) => [row.virtualSlot, row]));
    for (const slot of this.#slots.values()) {
      if (slot.row === undefined) continue;
      if (isSameHostBinding(slot.row, next.get(slot.virtualSlot))) continue;
      if (slot.state === 'ready') {
        wereReady.push({ slot, generation: slot.generation, wasIn: slot.link !== undefined });
      }
      left.push(slot);
      this.#history.unbound(slot.virtualSlot);
      slot.row = undefined;
      slot.state = 'unused';
      slot.session = undefined;
      slot.link = undefined;
    }
    this.#routes.table = table;
    this.#routes.slotOfRow = rows.map((row) => this.#bind(row));
    for (const peer of this.#peers.values()) this.#fillPeer(peer);

    this.#downstream.abort(now, left);
    const surprise = this.#options.holdsFunctions === true;
    for (const { slot, generation, wasIn } of wereReady) {
      const reason = 'the row was taken out of the table';
      this.#tellDown(now, slot, generation, wasIn, surprise && wasIn, reason);
    }
    for (const peer of this.#peers.values()) this.#applyStates(now, peer);
    return [];
  }

  /**
   * Lets the function of a row into its slot, now or when the row is ready. Does nothing for one that
   * is in, or has been taken out.
   */
  plug(now: Nanos, virtualSlot: number): void {
    const slot = this.#slots.get(virtualSlot);
    if (slot?.row === undefined || slot.place !== 'held') return;
    slot.place = 'in';
    if (slot.state !== 'ready') return;
    slot.link = slot.session;
    this.#rootSide.linkActive(now, virtualSlot, true, false);
  }

  /**
   * Takes the function of a row out of its slot: nothing passes any more, either way, before this
   * returns. It comes back under a new generation alone; one that had not entered stays out until
   * `plug`.
   */
  unplug(now: Nanos, virtualSlot: number, surprise: boolean): void {
    const slot = this.#slots.get(virtualSlot);
    if (slot?.row === undefined || slot.place !== 'in') return;
    const wasIn = slot.link !== undefined;
    slot.place = wasIn ? 'left' : 'held';
    if (!wasIn) return;
    slot.link = undefined;
    this.#downstream.abort(now, [slot]);
    this.#rootSide.linkActive(now, virtualSlot, false, surprise);
  }

  /** Where the function of a row is, or `undefined` without a row. */
  functionPlace(virtualSlot: number): FunctionPlace | undefined {
    const slot = this.#slots.get(virtualSlot);
    return slot?.row === undefined ? undefined : slot.place;
  }

  /** Bits of the function's command register, as its host has set them (7.5.1.1.3). */
  command(virtualSlot: number): { readonly memoryEnable: boolean; readonly busMaster: boolean } {
    const slot = this.#slots.get(virtualSlot);
    if (slot?.link === undefined) return { memoryEnable: false, busMaster: false };
    const { memoryEnable, busMaster } = slot.shadow;
    return { memoryEnable, busMaster };
  }

  /** The table in force. */
  get rows(): readonly HostRow[] {
    return this.#routes.table.rows;
  }

  slotState(virtualSlot: number): HostSlotState {
    return this.#slots.get(virtualSlot)?.state ?? 'unused';
  }

  /** Live counters of a virtual slot, kept over generations. */
  counters(virtualSlot: number): SlotCounters {
    return this.#slot(virtualSlot).counters;
  }

  /** What could not be put down to any row: unknown slots, undecodable TLPs, requests to no window. */
  get strayCounters(): SlotCounters {
    return this.#routes.stray;
  }

  /** The AER capability refusals of a slot are logged in. */
  aer(virtualSlot: number): AdvancedErrorReporting {
    return this.#slot(virtualSlot).aer;
  }

  canRequest(virtualSlot: number, flow: FlowClass, payloadBytes: number): boolean {
    const link = this.#slots.get(virtualSlot)?.link;
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
    for (const peer of this.#peers.values()) peer.link.flush(now);
  }

  /** Also refused: memory that shares an address with a window of the table. */
  registerMemory(
    base: number,
    memory: Uint8Array,
    access: { read: boolean; write: boolean },
  ): void {
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
    if (this.#faults.noMemoryBarrier !== true) this.#memory.unregister(base);
  }

  linkUp(now: Nanos, link: LinkPort): void {
    if (link.peer.kind !== 'box') return;
    const earlier = this.#peers.get(link.peer.id);
    if (earlier !== undefined) this.linkDown(now, earlier.link, 'a new session took its place');
    const peer = new HostPeer(link);
    this.#peers.set(peer.box, peer);
    this.#fillPeer(peer);
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
    const wait = peer.kept.size > 0;
    const answered = this.#upstream.receive(
      now,
      peer,
      slot,
      generation,
      bytes,
      offset,
      length,
      tlp,
      0,
      wait,
    );
    const done = answered === DONE;
    if (!done) {
      peer.kept.push(slot, generation, bytes, offset, length, tlp.payloadBytes, answered);
    }
    this.#scratch.giveBack(tlp);
    return done;
  }

  linkWrites(
    _now: Nanos,
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
    const done = this.#upstream.receiveWrites(
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

  linkSlotState(
    now: Nanos,
    link: LinkPort,
    slot: number,
    generation: number,
    state: SlotState,
  ): void {
    const peer = this.#peerOf(link);
    if (peer === undefined) return;
    peer.states.set(slot, { generation, state });
    this.#applyState(now, peer, slot);
  }

  linkResume(now: Nanos, link: LinkPort): void {
    const peer = this.#peerOf(link);
    if (peer === undefined) return;
    if (peer.deferred && link.attached) {
      peer.deferred = false;
      this.#applyStates(now, peer);
    }
    this.#drain(now, peer);
    this.#rootSide.resume(now);
  }

  linkDown(now: Nanos, link: LinkPort, reason: string): void {
    const peer = this.#peerOf(link);
    if (peer === undefined) return;
    peer.live = false;
    peer.kept.clear();
    this.#peers.delete(peer.box);
    this.#lastPeer = undefined;
    const slots = [...peer.slots.values()].filter((slot) => slot.session === link);
    this.#contain(now, slots, `link to box ${peer.box} is down: ${reason}`);
    // Whoever waits for `canRequest` is answered at once from here on.
    this.#rootSide.resume(now);
  }

  #slot(virtualSlot: number): HostSlot {
    let slot = this.#slots.get(virtualSlot);
    if (slot === undefined) {
      slot = new HostSlot(virtualSlot, this.#options.aer?.(virtualSlot));
      this.#slots.set(virtualSlot, slot);
    }
    return slot;
  }

  #peerOf(link: LinkPort): HostPeer | undefined {
    if (this.#lastPeer?.link === link) return this.#lastPeer;
    const peer = this.#peers.get(link.peer.id);
    if (peer?.link !== link) return undefined;
    this.#lastPeer = peer;
    return peer;
  }

  #bind(row: HostRow): HostSlot {
    const slot = this.#slot(row.virtualSlot);
    if (!row.used) return slot;
    if (slot.row === undefined) {
      slot.bind(row, this.#options.holdsFunctions === true ? 'held' : 'in');
      this.#history.bound(row);
    } else {
      slot.row = row;
    }
    return slot;
  }

  #fillPeer(peer: HostPeer): void {
    peer.clearSlots();
    for (const slot of this.#routes.slotOfRow) {
      if (slot.row?.box === peer.box) peer.slots.set(slot.row.slot, slot);
    }
  }

  #applyStates(now: Nanos, peer: HostPeer): void {
    for (const slot of peer.slots.keys()) this.#applyState(now, peer, slot);
  }

  /** Lets what the box said of a slot take effect, if it speaks of the generation in the table. */
  #applyState(now: Nanos, peer: HostPeer, boxSlot: number): void {
    const slot = peer.slots.get(boxSlot);
    const said = peer.states.get(boxSlot);
    if (slot?.row === undefined || said === undefined || !peer.live) return;
    if (said.generation !== slot.row.generation) return;
    if (said.state === SlotState.GONE) {
      this.#contain(now, [slot], `box ${peer.box} has contained slot ${boxSlot}`);
      return;
    }
    const again = slot.state === 'contained' && this.#faults.noContainment === true;
    if (slot.state !== 'waiting' && !again) return;
    if (!peer.link.attached) {
      // Should the session end, it must not take a binding with it that never ran in it.
      peer.deferred = true;
      return;
    }
    slot.state = 'ready';
    slot.session = peer.link;
    if (slot.place === 'in') slot.link = peer.link;
    const { virtualSlot, generation } = slot;
    this.#options.onEvent?.(now, { kind: 'slot-up', virtualSlot, generation });
    // Whoever was told may have moved it.
    if (slot.link !== undefined) this.#rootSide.linkActive(now, virtualSlot, true, false);
  }

  #contain(now: Nanos, slots: readonly HostSlot[], reason: string): void {
    const wereReady = slots.filter((slot) => slot.state === 'ready');
    const wereIn = new Set(slots.filter((slot) => slot.link !== undefined));
    for (const slot of slots) {
      slot.state = 'contained';
      slot.session = undefined;
      slot.link = undefined;
    }
    if (this.#faults.noAbort !== true) this.#downstream.abort(now, slots);
    for (const slot of wereReady) {
      this.#tellDown(now, slot, slot.generation, wereIn.has(slot), wereIn.has(slot), reason);
    }
  }

  #tellDown(
    now: Nanos,
    slot: HostSlot,
    generation: number,
    wasIn: boolean,
    surprise: boolean,
    reason: string,
  ): void {
    const { virtualSlot } = slot;
    const event = { kind: 'slot-down', virtualSlot, generation, surprise, reason } as const;
    this.#options.onEvent?.(now, event);
    if (wasIn) this.#rootSide.linkActive(now, virtualSlot, false, surprise);
  }

  /** Answers kept requests as far as the link takes completions. */
  #drain(now: Nanos, peer: HostPeer): void {
    if (peer.draining) return;
    peer.draining = true;
    for (;;) {
      const first = peer.kept.first;
      if (first === undefined) break;
      const { slot, generation, bytes, length, answered, payloadBytes } = first;
      const tlp = this.#scratch.borrow();
      const result = this.#upstream.receive(
        now,
        peer,
        slot,
        generation,
        bytes,
        0,
        length,
        tlp,
        answered,
        false,
      );
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
