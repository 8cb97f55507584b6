/** What a watched proxy sees of a session: its `LinkPort`, with what its observer keeps of it. */
import { assert } from '#base/assert';
import type { Nanos } from '#base/units';
import { type LinkPort, SlotState } from '#fabric/link-user';
import type { Session } from '#fabric/session';
import type { PeerIdentity } from '#fabric/transport';
import { copyTlp, FlowClass, Tlp, TlpKind } from '#pcie/tlp';
import { HeldTlps } from './held-tlps.ts';
import type { Channel } from './session-book.ts';

/** The observer. */
export interface PortWatch {
  /** Whether `tlp` answers a forged request, and goes no further. */
  answersForgery(port: WatchedPort, tlp: Tlp): boolean;
  sending(now: Nanos, port: WatchedPort, slot: number, generation: number, tlp: Tlp): void;
}

/** Of whom a TLP is, as its frame says. */
export interface TlpOrigin {
  readonly peer: string;
  readonly slot: number;
  readonly generation: number;
}

interface KeptTlp extends TlpOrigin {
  /** Its credit is the link's to get back. */
  readonly credited: boolean;
}

export class WatchedPort implements LinkPort {
  readonly peer: PeerIdentity;
  readonly session: Session;
  readonly out: Channel;
  readonly in: Channel;
  readonly held = new HeldTlps();
  /** What the proxy keeps, oldest first. */
  readonly kept: KeptTlp[] = [];
  /** Forged requests not yet answered, by tag. */
  readonly forged = new Set<number>();
  /** Generations the proxy has called ready while the session had a connection. */
  readonly announced = new Set<number>();
  live = true;
  /** Since when the receiver has had room for posted requests. */
  roomSinceNs = 0;
  readonly #watch: PortWatch;

  constructor(watch: PortWatch, session: Session, out: Channel, inward: Channel) {
    this.#watch = watch;
    this.session = session;
    this.peer = session.peer;
    this.out = out;
    this.in = inward;
  }

  get attached(): boolean {
    return this.session.attached;
  }

  /** How many TLPs of a class have come whose room the sender does not have again. */
  withoutCredit(flow: FlowClass): number {
    const kept = flow === FlowClass.NON_POSTED ? this.kept.filter((tlp) => tlp.credited) : [];
    return this.held.withoutCredit(flow) + kept.length;
  }

  canSend(flow: FlowClass, payloadBytes: number): boolean {
    return this.session.canSend(flow, payloadBytes);
  }

  sendTlp(now: Nanos, slot: number, generation: number, tlp: Tlp): void {
    if (this.#watch.answersForgery(this, tlp)) return;
    this.#watch.sending(now, this, slot, generation, tlp);
    this.session.sendTlp(now, slot, generation, tlp);
  }

  sendRun(now: Nanos, slot: number, generation: number, first: Tlp, count: number): number {
    if (this.#watch.answersForgery(this, first)) return 0;
    const sent = this.session.sendRun(now, slot, generation, first, count);
    // Only now is it known how many went; nothing can have come of them yet.
    const one = new Tlp();
    copyTlp(one, first);
    for (let index = 0; index < sent; index++) {
      this.#watch.sending(now, this, slot, generation, one);
      if (one.kind === TlpKind.CplD) one.byteCount -= one.payloadBytes;
      else one.addressLo += one.payloadBytes;
      one.payloadOffset += one.payloadBytes;
    }
    return sent;
  }

  sendSlotState(now: Nanos, slot: number, generation: number, state: SlotState): void {
    if (this.live) this.out.sentState(slot, generation, state);
    if (state === SlotState.READY && this.attached) this.announced.add(generation);
    this.session.sendSlotState(now, slot, generation, state);
  }

  flush(now: Nanos): void {
    this.session.flush(now);
  }

  release(now: Nanos, flow: FlowClass, payloadBytes: number): void {
    const kept = this.kept.shift();
    assert(kept !== undefined, 'a proxy releases what it has kept');
    if (kept.credited) this.session.release(now, flow, payloadBytes);
  }
}
