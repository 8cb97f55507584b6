/**
 * An observer between the links of a process and its proxy: the proxy is its `inner` user, and talks
 * to a `WatchedPort` instead of the session. It enters everything into the `SessionBook`, can hold
 * back what arrives (a receiver whose buffers are full), and can forge what a lying peer would send.
 *
 * Who calls whom: link → `LinkWatch` → proxy → `WatchedPort` → link. The `LinkOwner` (the host or box
 * of the world) is asked before and told after each TLP, and judges it.
 */
import { assert } from '#base/assert';
import type { Nanos } from '#base/units';
import type { CreditWindow } from '#fabric/link-options';
import type { ArrivedRun, ArrivedTlp, LinkPort, LinkUser, SlotState } from '#fabric/link-user';
import { Session } from '#fabric/session';
import { type FlowClass, flowClassOf, Tlp } from '#pcie/tlp';
import { decodeTlp, encodeTlp, TlpDecode } from '#pcie/tlp-codec';
import { tlpToLine } from '#pcie/tlp-line';
import { arrivedTlp } from '../arrived-tlp.ts';
import { hashBytes } from '../campaign/trace-hash.ts';
import { judgeForgery } from './forgery.ts';
import type { HoldMode } from './held-tlps.ts';
import type { LinkOwner } from './link-owner.ts';
import { type FaultOracle, Invariant } from './oracle.ts';
import type { SessionBook } from './session-book.ts';
import { type TlpOrigin, WatchedPort } from './watched-port.ts';

const SCRATCH = new Uint8Array(16 + 4096 + 4);

export class LinkWatch implements LinkUser {
  readonly #inner: LinkUser;
  readonly #owner: LinkOwner;
  readonly #oracle: FaultOracle;
  readonly #book: SessionBook;
  readonly #ports = new Map<LinkPort, WatchedPort>();
  readonly #windows: readonly CreditWindow[] | undefined;
  readonly #tlp = new Tlp();
  #entering: TlpOrigin | undefined;
  #resuming: WatchedPort | undefined;

  /** `windows` are those this end grants. */
  constructor(
    inner: LinkUser,
    owner: LinkOwner,
    oracle: FaultOracle,
    book: SessionBook,
    windows: readonly CreditWindow[] | undefined,
  ) {
    this.#windows = windows;
    this.#inner = inner;
    this.#owner = owner;
    this.#oracle = oracle;
    this.#book = book;
  }

  /** Of whom the TLP is that the proxy is dealing with: one that arrives, or the oldest it has kept. */
  get origin(): TlpOrigin | undefined {
    return this.#entering ?? this.#resuming?.kept[0];
  }

  get ports(): Iterable<WatchedPort> {
    return this.#ports.values();
  }

  portTo(peer: string): WatchedPort | undefined {
    for (const port of this.#ports.values()) if (port.peer.id === peer) return port;
    return undefined;
  }

  linkUp(now: Nanos, link: LinkPort): void {
    assert(link instanceof Session, 'the links of this world have sessions');
    const { peer, id } = link;
    if (this.portTo(peer.id) !== undefined) {
      this.#fail(Invariant.LOUD, 'a session began before the last ended');
    }
    const { name } = this.#owner;
    const isBox = peer.kind === 'host';
    const out = this.#book.channel(id, name, peer.id, isBox);
    const port = new WatchedPort(this, link, out, this.#book.channel(id, peer.id, name, isBox));
    this.#ports.set(link, port);
    this.#oracle.counts.sessions++;
    this.#oracle.event(`up ${name} ${peer.id} ${id}`);
    this.#owner.sessionUp(now, peer.id);
    this.#inner.linkUp(now, port);
  }

  linkTlp(now: Nanos, link: LinkPort, arrived: ArrivedTlp): boolean {
    const port = this.#portOf(link);
    if (port === undefined) return true;
    this.#record(now, port, arrived);
    const flow = flowClassOf(this.#tlp.kind);
    if (port.held.holds(flow)) {
      const given = port.held.push(flow, arrived);
      this.#checkWindow(port, flow);
      return given;
    }
    return this.#pass(now, port, arrived, true);
  }

  linkRun(now: Nanos, link: LinkPort, run: ArrivedRun): boolean {
    const { slot, generation, bytes, offset, length, stride, count } = run;
    const port = this.#ports.get(link);
    // What is held back, and what is refused as a run, comes again one by one.
    const sound = decodeTlp(bytes, offset, length, this.#tlp) === TlpDecode.OK;
    if (port === undefined || port.held.holds(flowClassOf(this.#tlp.kind))) return false;
    this.#entering = { peer: port.peer.id, slot, generation };
    this.#owner.entering(now, this.#entering, sound ? this.#tlp : undefined);
    const done = this.#inner.linkRun(now, port, run);
    this.#entering = undefined;
    this.#owner.entered(now);
    if (!done) return false;
    this.#oracle.counts.runs++;
    for (let index = 0; index < count; index++) {
      this.#record(now, port, { ...run, offset: offset + index * stride });
    }
    return true;
  }

  linkSlotState(
    now: Nanos,
    link: LinkPort,
    slot: number,
    generation: number,
    state: SlotState,
  ): void {
    const port = this.#portOf(link);
    if (port === undefined) return;
    this.#oracle.event(`state ${this.#owner.name} ${slot} ${generation} ${state}`);
    port.in.deliveredState(slot, generation, state);
    if (port.held.size > 0) port.held.pushState(slot, generation, state);
    else this.#inner.linkSlotState(now, port, slot, generation, state);
  }

  linkResume(now: Nanos, link: LinkPort): void {
    const port = this.#portOf(link);
    if (port === undefined) return;
    this.#resuming = port;
    this.#inner.linkResume(now, port);
    this.#resuming = undefined;
  }

  linkDown(now: Nanos, link: LinkPort, reason: string): void {
    const port = this.#portOf(link);
    if (port === undefined) return;
    const { name } = this.#owner;
    this.#oracle.counts.sessionsEnded++;
    this.#oracle.event(`down ${name} ${port.peer.id} ${reason}`);
    this.#ports.delete(link);
    port.live = false;
    port.in.close();
    this.#owner.sessionEnding(now, port);
    this.#inner.linkDown(now, port, reason);
    this.#owner.sessionEnded(now, port.peer.id);
  }

  /** The process has died: nobody will take what is still under way to it. */
  died(): void {
    for (const port of this.#ports.values()) {
      port.live = false;
      port.in.close();
    }
    this.#ports.clear();
  }

  /** From now on holds back what `mode` says, as a receiver does that has no room for it. */
  hold(port: WatchedPort, mode: HoldMode): void {
    if (port.live && port.held.size === 0) port.held.mode = mode;
  }

  /** Hands over what was held back. */
  letGo(now: Nanos, port: WatchedPort): void {
    if (port.held.mode === 'posted') port.roomSinceNs = now;
    port.held.mode = 'nothing';
    while (port.live) {
      const held = port.held.shift();
      if (held === undefined) break;
      const { slot, generation, bytes, flow } = held;
      if (flow === undefined) {
        this.#inner.linkSlotState(now, port, slot, generation, held.state);
        continue;
      }
      const credited = !held.creditGiven;
      const done = this.#pass(now, port, arrivedTlp(slot, generation, bytes), credited);
      if (done && credited) port.session.release(now, flow, held.payloadBytes);
    }
    this.#owner.settle();
  }

  /**
   * What a lying peer might send: `bytes` for any slot and generation, well formed or not. `tag` is
   * that of a request of `LIAR_ID` which needs an answer.
   */
  forge(
    now: Nanos,
    port: WatchedPort,
    slot: number,
    generation: number,
    bytes: Uint8Array,
    tag?: number,
  ): void {
    // Behind what is held back it would only be the same again, later.
    if (!port.live || port.held.size > 0) return;
    this.#oracle.counts.forgeries++;
    if (tag !== undefined) port.forged.add(tag);
    this.#pass(now, port, arrivedTlp(slot, generation, bytes), false);
    this.#owner.settle();
  }

  sending(now: Nanos, port: WatchedPort, slot: number, generation: number, tlp: Tlp): void {
    if (!port.live) return;
    const length = encodeTlp(tlp, SCRATCH, 0);
    port.out.sent(slot, generation, tlp, hashBytes(SCRATCH, 0, length));
    this.#owner.sending(now, port.peer.id, slot, generation, tlp);
  }

  answersForgery(port: WatchedPort, tlp: Tlp): boolean {
    return judgeForgery(port, tlp, (invariant, what) => this.#fail(invariant, what));
  }

  #record(now: Nanos, port: WatchedPort, arrived: ArrivedTlp): void {
    const { slot, generation, bytes, offset, length } = arrived;
    const hash = hashBytes(bytes, offset, length);
    this.#oracle.arrived(now, hash, generation);
    decodeTlp(bytes, offset, length, this.#tlp);
    this.#oracle.onEvent?.(
      now,
      `${port.in.name}: slot ${slot} ${generation} ${tlpToLine(this.#tlp)}`,
    );
    port.in.delivered(slot, generation, this.#tlp, hash);
  }

  #portOf(link: LinkPort): WatchedPort | undefined {
    const port = this.#ports.get(link);
    if (port === undefined) {
      this.#fail(Invariant.LOUD, 'the link called for a session that is not up');
    }
    return port;
  }

  /** A sender never sends what it has no credit for. */
  #checkWindow(port: WatchedPort, flow: FlowClass): void {
    const count = port.withoutCredit(flow);
    if (count <= (this.#windows?.[flow]?.tlps ?? Infinity)) return;
    const sent = `${port.peer.id} sent ${count} TLPs of class ${flow}`;
    this.#fail(Invariant.PROGRESS, `${sent}, beyond its credits`);
  }

  #pass(now: Nanos, port: WatchedPort, arrived: ArrivedTlp, credited: boolean): boolean {
    const { slot, generation, bytes, offset, length } = arrived;
    const sound = decodeTlp(bytes, offset, length, this.#tlp) === TlpDecode.OK;
    const tlp = sound ? this.#tlp : undefined;
    const origin = { peer: port.peer.id, slot, generation };
    this.#entering = origin;
    this.#owner.entering(now, origin, tlp);
    const done = this.#inner.linkTlp(now, port, arrived);
    this.#entering = undefined;
    this.#owner.entered(now);
    if (!done) port.kept.push({ ...origin, credited });
    return done;
  }

  #fail(invariant: Invariant, what: string): void {
    this.#oracle.fail(invariant, `${this.#owner.name}: ${what}`);
  }
}
