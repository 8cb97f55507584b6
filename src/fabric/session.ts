/**
 * One session between two proxies: what was sent in it arrives once and in order, over one connection
 * after the other.
 *
 *   attached   has a connection; everything flows
 *   resuming   has lost it; TLPs are taken as far as buffers go; ends when the resume window does
 *   ended      `linkDown` has been called; nothing does anything any more
 *
 * Who owns what: the session owns an `Egress` (TLPs to frames, replay buffer, credits to send), an
 * `Ingress` (frames to TLPs, credits granted), a `FrameSender` (when frames go), and the connection
 * while it has one. Its owner (`HostLink` or `BoxLinks`) finds connections, does the handshake and
 * calls `attach`.
 */
import type { Timed } from '#base/clock';
import type { Nanos } from '#base/units';
import type { FlowClass, Tlp } from '#pcie/tlp';
import type { Connection, ConnectionSession } from './connection.ts';
import { creditUnits } from './credits.ts';
import { Egress, type EgressSink } from './egress.ts';
import { EndCode, FLAG_NAK, type Frame, FrameType } from './frame.ts';
import { FrameSender } from './frame-sender.ts';
import { type Hello, PROTOCOL_VERSION } from './hello.ts';
import { Ingress } from './ingress.ts';
import type { LinkCounters } from './link-counters.ts';
import type { LinkOptions, LinkTap } from './link-options.ts';
import type { LinkPort, LinkUser, SlotState } from './link-user.ts';
import { Ack } from './replay-buffer.ts';
import { distance } from './sequence.ts';
import type { PeerIdentity } from './transport.ts';

/** A peer asks a few times a second, and once per `replayTimerFloorNs` while it waits for us. */
const MAX_PINGS_PER_SECOND = 1000;

export interface SessionOwner {
  /** The session has lost its connection and is resuming. */
  sessionDetached(now: Nanos, session: Session, reason: string): void;
  /** The session is over; its user has been told. */
  sessionEnded(now: Nanos, session: Session, reason: string): void;
}

export class Session implements LinkPort, Timed, EgressSink, ConnectionSession {
  readonly id: number;
  readonly peer: PeerIdentity;
  readonly counters: LinkCounters;
  live = true;
  readonly #options: LinkOptions;
  readonly #user: LinkUser;
  readonly #owner: SessionOwner;
  readonly #egress: Egress;
  readonly #ingress: Ingress;
  readonly #sender: FrameSender;
  #connection: Connection | undefined;
  /** Has had a connection. */
  #begun = false;
  /** Has another connection, and its user does not know yet. */
  #resumed = false;
  #inTurn = false;
  /** Bit per flow class: `canSend` has said no, `linkResume` is owed. */
  #refused = 0;
  #lastFrameNs = 0;
  /** Set from a loss until a frame of the peer arrives over another connection. */
  #resumeUntilNs = Infinity;
  #pings = 0;
  #pingsSinceNs = -Infinity;

  /** `hello` is the peer's, of the new session. */
  constructor(
    peer: PeerIdentity,
    hello: Hello,
    options: LinkOptions,
    counters: LinkCounters,
    user: LinkUser,
    owner: SessionOwner,
  ) {
    this.id = hello.sessionId;
    this.peer = peer;
    this.counters = counters;
    this.#options = options;
    this.#user = user;
    this.#owner = owner;
    const maxFrameBytes = Math.min(options.maxFrameBytes, hello.maxFrameBytes) & ~3;
    this.#egress = new Egress(
      options,
      maxFrameBytes,
      hello.nextExpected,
      hello.limits,
      counters,
      this,
    );
    this.#ingress = new Ingress(options, hello, this, user, counters);
    this.#sender = new FrameSender(options, counters, this.#egress, this.#ingress);
    counters.sessions++;
  }

  get attached(): boolean {
    return this.#connection !== undefined;
  }

  get connection(): Connection | undefined {
    return this.#connection;
  }

  /** Whether nothing of the peer has arrived: it may not know that the session began. */
  get untouched(): boolean {
    return this.#ingress.expected === this.#options.initialSequence;
  }

  set tap(tap: LinkTap | undefined) {
    this.#egress.tap = tap;
    this.#ingress.tap = tap;
  }

  /** What HELLO or HELLO-ACK says of this end of the session. */
  hello(local: PeerIdentity, resume: boolean): Hello {
    this.#ingress.credits.advertise();
    return {
      ...freshHello(local, this.id, this.#options),
      resume,
      nextExpected: this.#ingress.expected,
      limits: this.#ingress.credits.granted,
    };
  }

  /**
   * Goes on over `connection`, from what the peer's HELLO says it has. Returns what is wrong with
   * that, or `undefined`. If something is wrong the session is to be ended.
   */
  attach(now: Nanos, connection: Connection, hello: Hello): string | undefined {
    const replay = this.#egress.replay;
    const resumed = this.#begun;
    if (
      distance(hello.nextExpected, replay.sent) > 0 ||
      distance(hello.nextExpected, replay.base) < 0
    ) {
      return 'expects a frame that was never sent, or one it has acknowledged';
    }
    if (!this.#egress.credits.update(hello.limits)) return 'grants more credit than can be';
    this.#connection?.close();
    replay.ack(hello.nextExpected);
    replay.rewind();
    if (resumed && this.#options.faults.noReplay === true) replay.forget(hello.nextExpected);
    this.#ingress.restart();
    this.#connection = connection;
    connection.session = this;
    this.#sender.attach(now, connection.transport);
    this.#lastFrameNs = now;
    if (resumed) this.counters.resumes++;
    this.#resumed = resumed;
    this.#begun = true;
    return undefined;
  }

  /** After `attach`: sends what waits. */
  start(now: Nanos): void {
    if (this.#resumed) {
      this.#resumed = false;
      this.#user.linkResume(now, this);
    }
    this.turnEnd(now);
    this.tick(now);
  }

  canSend(flow: FlowClass, payloadBytes: number): boolean {
    if (this.live && this.#egress.canSend(flow, payloadBytes)) return true;
    this.#refused |= 1 << flow;
    return false;
  }

  /** After the session's end this does nothing. */
  sendTlp(now: Nanos, slot: number, generation: number, tlp: Tlp): void {
    if (this.live) this.#egress.sendTlp(now, slot, generation, tlp);
  }

  sendRun(now: Nanos, slot: number, generation: number, first: Tlp, count: number): number {
    return this.live ? this.#egress.sendRun(now, slot, generation, first, count) : 0;
  }

  sendSlotState(now: Nanos, slot: number, generation: number, state: SlotState): void {
    if (this.live) this.#egress.sendSlotState(now, slot, generation, state);
  }

  flush(now: Nanos): void {
    this.#sender.flush(now);
  }

  release(now: Nanos, flow: FlowClass, payloadBytes: number): void {
    if (!this.live) return;
    const ingress = this.#ingress;
    ingress.credits.release(flow, creditUnits(payloadBytes));
    ingress.pending = true;
    // In a turn the end of it decides, when all that was caused by it is known.
    if (!this.#inTurn) this.#sender.tellPeer(now);
  }

  sealed(now: Nanos): void {
    this.#sender.pump(now);
  }

  /** A checked frame of a session. */
  frame(now: Nanos, frame: Frame, view: DataView, bytes: Uint8Array, offset: number): void {
    this.#inTurn = true;
    this.#lastFrameNs = now;
    const counters = this.counters;
    counters.in.frames++;
    counters.in.frameBytes += frame.length;
    const replay = this.#egress.replay;
    const ack = replay.ack(frame.ack);
    if (ack === Ack.LIE) {
      this.violation(now, 'acknowledged a frame that was never sent');
      return;
    }
    if (ack === Ack.NEWS) this.#sender.acknowledged(now);
    if (!this.#egress.credits.update(frame.limits)) {
      this.violation(now, 'grants more credit than can be');
      return;
    }
    this.#resumeUntilNs = Infinity;
    switch (frame.type) {
      case FrameType.DATA: {
        const wrong = this.#ingress.data(now, frame, view, bytes, offset);
        if (wrong !== undefined) this.violation(now, wrong);
        return;
      }
      case FrameType.PING:
        if (this.#pingFlood(now)) return;
        this.#sender.pinged(frame.pingId, frame.sequence);
        return;
      case FrameType.PONG:
        this.#sender.ponged(now, frame.pingId);
        break;
      default:
        break;
    }
    if ((frame.flags & FLAG_NAK) !== 0) {
      counters.naksReceived++;
      replay.rewind();
    }
  }

  turnEnd(now: Nanos): void {
    this.#inTurn = false;
    if (this.#connection === undefined) return;
    const egress = this.#egress;
    egress.drain(now);
    this.#sender.flush(now);
    if (this.#refused !== 0 && this.#mayResume()) {
      this.#refused = 0;
      this.#user.linkResume(now, this);
      if (!this.live) return;
      this.#sender.flush(now);
    }
    this.#sender.tellPeer(now);
  }

  writable(now: Nanos): void {
    this.#sender.writable(now);
  }

  connectionLost(now: Nanos, reason: string): void {
    if (!this.live || this.#connection === undefined) return;
    this.#connection.close();
    this.#connection = undefined;
    this.#sender.detach();
    this.#inTurn = false;
    this.counters.connectionsLost++;
    // A connection that brought nothing does not lengthen the window.
    if (this.#resumeUntilNs === Infinity) {
      this.#resumeUntilNs = now + this.#options.resumeWindowNs;
    }
    this.#owner.sessionDetached(now, this, reason);
  }

  /** The peer broke the protocol: nothing it says can be relied on, the session is over. */
  violation(now: Nanos, what: string): void {
    if (!this.live) return;
    this.counters.protocolErrors++;
    this.end(now, `the peer ${what}`, EndCode.PROTOCOL);
  }

  /** Ends the session. With a `code` the peer is told. */
  end(now: Nanos, reason: string, code?: EndCode): void {
    if (!this.live) return;
    this.live = false;
    this.counters.sessionsLost++;
    const connection = this.#connection;
    this.#connection = undefined;
    this.#sender.detach();
    if (code !== undefined) connection?.end(now, FrameType.BYE, code, reason);
    else connection?.close();
    this.#user.linkDown(now, this, reason);
    this.#owner.sessionEnded(now, this, reason);
  }

  nextDeadlineNs(): number {
    if (!this.live) return Infinity;
    if (this.#connection === undefined) return this.#resumeUntilNs;
    const deadNs = this.#lastFrameNs + this.#options.deadPeerNs;
    return Math.min(deadNs, this.#sender.nextDeadlineNs());
  }

  tick(now: Nanos): void {
    if (!this.live) return;
    const options = this.#options;
    if (this.#connection === undefined) {
      if (now < this.#resumeUntilNs) return;
      this.end(now, `not resumed within ${options.resumeWindowNs / 1e6} ms`);
      return;
    }
    if (now >= this.#lastFrameNs + options.deadPeerNs) {
      this.counters.deadPeers++;
      this.connectionLost(now, `no frame from the peer for ${options.deadPeerNs / 1e6} ms`);
      return;
    }
    this.#sender.tick(now);
  }

  /** Pings cost the peer nothing and this end an answer each. */
  #pingFlood(now: Nanos): boolean {
    if (now - this.#pingsSinceNs >= 1e9) {
      this.#pingsSinceNs = now;
      this.#pings = 0;
    }
    if (++this.#pings <= MAX_PINGS_PER_SECOND) return false;
    this.violation(now, `sent more than ${MAX_PINGS_PER_SECOND} pings in a second`);
    return true;
  }

  #mayResume(): boolean {
    for (let flow = 0; flow < 3; flow++) {
      const wanted = (this.#refused & (1 << flow)) !== 0;
      if (wanted && this.#egress.isClear(flow as FlowClass)) return true;
    }
    return false;
  }
}

/** HELLO of an end that has no session yet. */
export function freshHello(local: PeerIdentity, sessionId: number, options: LinkOptions): Hello {
  const limits = new Uint32Array(6);
  options.windows.forEach((window, flow) => {
    limits[flow * 2] = window.tlps;
    limits[flow * 2 + 1] = window.dataUnits;
  });
  return {
    version: PROTOCOL_VERSION,
    identity: local,
    resume: false,
    sessionId,
    nextExpected: options.initialSequence,
    maxFrameBytes: options.maxFrameBytes,
    replayBytes: options.replayBytes,
    replayFrames: options.replayFrames,
    limits,
  };
}
