/**
 * One session between two proxies: what was sent in it arrives once and in order, over one connection
 * after the other.
 *
 *   attached   has a connection; everything flows
 *   resuming   has lost it; TLPs are taken as far as buffers go; ends when the resume window does
 *   ended      `linkDown` has been called; nothing does anything any more
 *
 * Who owns what: the session owns an `Egress` (TLPs to frames, replay buffer, credits to send), an
 * `Ingress` (frames to TLPs, credits granted), the deadlines, and the connection while it has one. Its
 * owner (`HostLink` or `BoxLinks`) finds connections, does the handshake and calls `attach`.
 *
 * When frames go: a DATA frame on `flush`, when full, and at the end of a turn, but only while the
 * transport takes frames; meanwhile TLPs gather in the open frame. A frame of acknowledgement and
 * credits alone goes only if no DATA frame went first, see `#tellPeer`.
 */
import type { Timed } from '#base/clock';
import type { Nanos } from '#base/units';
import type { FlowClass, Tlp } from '#pcie/tlp';
import type { Connection, ConnectionSession } from './connection.ts';
import { creditUnits } from './credits.ts';
import { Egress, type EgressSink } from './egress.ts';
import {
  EndCode,
  FLAG_NAK,
  type Frame,
  FrameType,
  refreshSessionHeader,
  SESSION_HEADER_BYTES,
  writeSessionHeader,
} from './frame.ts';
import { type Hello, PROTOCOL_VERSION } from './hello.ts';
import { Ingress } from './ingress.ts';
import type { LinkCounters } from './link-counters.ts';
import type { LinkOptions, LinkTap } from './link-options.ts';
import type { LinkPort, LinkUser, SlotState } from './link-user.ts';
import { PingClock } from './ping.ts';
import { Ack } from './replay-buffer.ts';
import { distance } from './sequence.ts';
import type { PeerIdentity } from './transport.ts';

const MAX_REPLAY_BACKOFF = 64;

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
  readonly #pings: PingClock;
  #connection: Connection | undefined;
  /** Has had a connection. */
  #begun = false;
  /** The transport takes frames. */
  #writable = false;
  /** What is in the open frame is to go as soon as the transport takes frames. */
  #flushWanted = false;
  #inTurn = false;
  #pongId = -1;
  /** Bit per flow class: `canSend` has said no, `linkResume` is owed. */
  #refused = 0;
  #lastFrameNs = 0;
  #resumeUntilNs = Infinity;
  #pingAtNs = Infinity;
  #ackAtNs = Infinity;
  #replayAtNs = Infinity;
  #replayBackoff = 1;

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
    this.#pings = new PingClock(counters);
    counters.sessions++;
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
   * that, or `undefined`; then nothing has changed.
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
    this.counters.replayedFrames += replay.rewind();
    if (resumed && this.#options.faults.noReplay === true) replay.forget(hello.nextExpected);
    this.#ingress.restart();
    this.#pings.forget();
    this.#connection = connection;
    connection.session = this;
    this.#writable = true;
    this.#pongId = -1;
    this.#lastFrameNs = now;
    this.#resumeUntilNs = Infinity;
    this.#replayAtNs = Infinity;
    this.#replayBackoff = 1;
    this.#pingAtNs = now;
    if (resumed) this.counters.resumes++;
    this.#begun = true;
    return undefined;
  }

  /** After `attach`: sends what waits. */
  start(now: Nanos): void {
    this.#flushWanted = true;
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

  sendSlotState(now: Nanos, slot: number, generation: number, state: SlotState): void {
    if (this.live) this.#egress.sendSlotState(now, slot, generation, state);
  }

  flush(now: Nanos): void {
    this.#flushWanted = true;
    this.#pump(now);
  }

  release(now: Nanos, flow: FlowClass, payloadBytes: number): void {
    if (!this.live) return;
    const ingress = this.#ingress;
    ingress.credits.release(flow, creditUnits(payloadBytes));
    ingress.pending = true;
    // In a turn the end of it decides, when all that was caused by it is known.
    if (!this.#inTurn) this.#tellPeer(now);
  }

  sealed(now: Nanos): void {
    this.#pump(now);
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
    if (ack === Ack.NEWS) {
      this.#replayBackoff = 1;
      this.#replayAtNs = replay.inFlight > 0 ? now + this.#replayTimeoutNs() : Infinity;
    }
    if (!this.#egress.credits.update(frame.limits)) {
      this.violation(now, 'grants more credit than can be');
      return;
    }
    switch (frame.type) {
      case FrameType.DATA: {
        const wrong = this.#ingress.data(now, frame, view, bytes, offset);
        if (wrong !== undefined) this.violation(now, wrong);
        return;
      }
      case FrameType.PING:
        this.#pongId = frame.pingId;
        this.#ingress.ping(frame.sequence);
        return;
      case FrameType.PONG:
        this.#pings.end(now, frame.pingId);
        break;
      default:
        break;
    }
    if ((frame.flags & FLAG_NAK) !== 0) {
      counters.naksReceived++;
      counters.replayedFrames += replay.rewind();
    }
  }

  turnEnd(now: Nanos): void {
    this.#inTurn = false;
    if (this.#connection === undefined) return;
    const egress = this.#egress;
    egress.drain(now);
    this.flush(now);
    if (this.#refused !== 0 && this.#mayResume()) {
      this.#refused = 0;
      this.#user.linkResume(now, this);
      if (!this.live) return;
      this.flush(now);
    }
    this.#tellPeer(now);
  }

  writable(now: Nanos): void {
    this.#writable = true;
    this.#pump(now);
    this.#tellPeer(now);
  }

  connectionLost(now: Nanos, reason: string): void {
    if (!this.live || this.#connection === undefined) return;
    this.#connection.close();
    this.#connection = undefined;
    this.#writable = false;
    this.#inTurn = false;
    this.counters.connectionsLost++;
    this.#resumeUntilNs = now + this.#options.resumeWindowNs;
    this.#pingAtNs = Infinity;
    this.#ackAtNs = Infinity;
    this.#replayAtNs = Infinity;
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
    if (code !== undefined) connection?.end(now, FrameType.BYE, code, reason);
    else connection?.close();
    this.#user.linkDown(now, this, reason);
    this.#owner.sessionEnded(now, this, reason);
  }

  nextDeadlineNs(): number {
    if (!this.live) return Infinity;
    if (this.#connection === undefined) return this.#resumeUntilNs;
    const deadNs = this.#lastFrameNs + this.#options.deadPeerNs;
    return Math.min(deadNs, this.#pingAtNs, this.#ackAtNs, this.#replayAtNs);
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
    if (now >= this.#pingAtNs) {
      this.#pingAtNs = now + options.pingIntervalNs;
      this.#ping(now);
    }
    if (now >= this.#replayAtNs) {
      // Ask what has arrived rather than send it all again: on a transport that only got slow
      // nothing is wasted, on one that lost frames the answer is a NAK.
      this.counters.replayTimeouts++;
      this.#replayBackoff = Math.min(MAX_REPLAY_BACKOFF, this.#replayBackoff * 2);
      this.#replayAtNs = now + this.#replayTimeoutNs();
      this.#ping(now);
    }
    if (now >= this.#ackAtNs) {
      this.#ackAtNs = Infinity;
      this.#ingress.urgent = true;
      this.#tellPeer(now);
    }
  }

  /** Hands frames to the transport while it takes them. */
  #pump(now: Nanos): void {
    if (this.#connection === undefined) return;
    const egress = this.#egress;
    const replay = egress.replay;
    while (this.#writable) {
      if (replay.cursor !== replay.next) this.#transmit(now);
      else if (this.#flushWanted && egress.hasOpenFrame) egress.seal();
      else break;
    }
    if (!egress.hasOpenFrame && replay.cursor === replay.next) this.#flushWanted = false;
  }

  #transmit(now: Nanos): void {
    const replay = this.#egress.replay;
    const ingress = this.#ingress;
    const offset = replay.offsetOf(replay.cursor);
    const length = replay.lengthOf(replay.cursor);
    let frame = replay.bytes.subarray(offset, offset + length);
    if (replay.passCursor()) {
      refreshSessionHeader(replay.view, offset, ingress.expected, ingress.credits.granted);
    } else {
      // A copy: once the first transmission is acknowledged its bytes are used anew, while a
      // transport may still be busy with the second.
      frame = frame.slice();
      const view = new DataView(frame.buffer);
      refreshSessionHeader(view, 0, ingress.expected, ingress.credits.granted);
    }
    if (this.#replayAtNs === Infinity) this.#replayAtNs = now + this.#replayTimeoutNs();
    this.counters.out.frames++;
    this.counters.out.frameBytes += length;
    this.#handOver(now, frame, false);
  }

  /**
   * Sends acknowledgement, credits and answers in a frame of their own, if one is due that no DATA
   * frame has carried: an answer to a ping, a gap, a duplicate, half a window of credit, many frames
   * or bytes received, or the acknowledgement delay gone by. Otherwise sets the delay.
   */
  #tellPeer(now: Nanos): void {
    if (this.#connection === undefined) return;
    const ingress = this.#ingress;
    const due = ingress.urgent || this.#pongId >= 0 || ingress.credits.updateDue;
    if (!due) {
      if (ingress.pending && this.#ackAtNs === Infinity) {
        this.#ackAtNs = now + this.#options.ackDelayNs;
      }
      return;
    }
    if (!this.#writable) return;
    const flags = ingress.nakDue ? FLAG_NAK : 0;
    if (ingress.nakDue) this.counters.naksSent++;
    const pongId = this.#pongId;
    this.#pongId = -1;
    this.#sendBare(now, pongId >= 0 ? FrameType.PONG : FrameType.CONTROL, flags, pongId);
  }

  #ping(now: Nanos): void {
    if (this.#connection === undefined || !this.#writable) return;
    this.#sendBare(now, FrameType.PING, 0, this.#pings.begin(now));
  }

  #sendBare(now: Nanos, type: FrameType, flags: number, pingId: number): void {
    const ingress = this.#ingress;
    const length = SESSION_HEADER_BYTES + (type === FrameType.CONTROL ? 0 : 4);
    const bytes = new Uint8Array(length);
    const view = new DataView(bytes.buffer);
    const { granted } = ingress.credits;
    const { cursor } = this.#egress.replay;
    writeSessionHeader(view, 0, type, flags, length, cursor, ingress.expected, granted);
    if (type !== FrameType.CONTROL) view.setUint32(SESSION_HEADER_BYTES, pingId);
    this.counters.controlFrames++;
    this.#handOver(now, bytes, type !== FrameType.PING);
  }

  #handOver(now: Nanos, frame: Uint8Array, withNak: boolean): void {
    const connection = this.#connection;
    if (connection === undefined) return;
    const nakStays = this.#ingress.nakDue && !withNak;
    this.#ingress.told(withNak);
    if (nakStays) this.#ingress.urgent = true;
    this.#ackAtNs = Infinity;
    this.#writable = connection.transport.send(now, frame);
  }

  #mayResume(): boolean {
    for (let flow = 0; flow < 3; flow++) {
      const wanted = (this.#refused & (1 << flow)) !== 0;
      if (wanted && this.#egress.halfEmpty(flow as FlowClass, this.#options)) return true;
    }
    return false;
  }

  #replayTimeoutNs(): number {
    const { replayTimerFloorNs, ackDelayNs } = this.#options;
    const usualNs = 2 * (this.counters.rttLastNs + ackDelayNs);
    return Math.max(replayTimerFloorNs, usualNs) * this.#replayBackoff;
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
