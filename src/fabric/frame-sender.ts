/**
 * When a session's frames go to its transport, and which.
 *
 * A DATA frame goes on `flush`, when full, and at the end of a turn, but only while the transport
 * takes frames; meanwhile TLPs gather in the open frame. A frame of acknowledgement and credits alone
 * goes only if no DATA frame went first, see `tellPeer`. A replay timer asks the peer, by a ping, what
 * has arrived; frames are sent again when the peer reports a gap, or over a new connection.
 */
import type { Timed } from '#base/clock';
import { copyOfBytes } from '#base/copy-bytes';
import { Slab } from '#base/slab';
import type { Nanos } from '#base/units';
import type { Egress } from './egress.ts';
import {
  FLAG_NAK,
  FrameType,
  refreshSessionHeader,
  SESSION_HEADER_BYTES,
  ViewCache,
  writeSessionHeader,
} from './frame.ts';
import type { Ingress } from './ingress.ts';
import type { LinkCounters } from './link-counters.ts';
import type { LinkOptions } from './link-options.ts';
import { PingClock } from './ping.ts';
import type { Transport } from './transport.ts';

const MAX_REPLAY_BACKOFF = 64;
const BARE_SLAB_BYTES = 4096;

export class FrameSender implements Timed {
  readonly #options: LinkOptions;
  readonly #counters: LinkCounters;
  readonly #egress: Egress;
  readonly #ingress: Ingress;
  readonly #pings: PingClock;
  /** Frames without entries, each in a place of its own: nobody says when it has gone. */
  readonly #bare = new Slab(BARE_SLAB_BYTES);
  readonly #bareViews = new ViewCache();
  #transport: Transport | undefined;
  /** The transport takes frames. */
  #writable = false;
  /** What is in the open frame is to go as soon as the transport takes frames. */
  #flushWanted = false;
  /** Ping to be answered, or −1. */
  #pongId = -1;
  #pingAtNs = Infinity;
  #ackAtNs = Infinity;
  #replayAtNs = Infinity;
  #replayBackoff = 1;

  constructor(options: LinkOptions, counters: LinkCounters, egress: Egress, ingress: Ingress) {
    this.#options = options;
    this.#counters = counters;
    this.#egress = egress;
    this.#ingress = ingress;
    this.#pings = new PingClock(counters);
  }

  /** From now on frames go over `transport`, at first a ping. */
  attach(now: Nanos, transport: Transport): void {
    this.#transport = transport;
    this.#writable = true;
    this.#pongId = -1;
    this.#pings.forget();
    this.#pingAtNs = now;
    this.#ackAtNs = Infinity;
    this.#replayAtNs = Infinity;
    this.#replayBackoff = 1;
  }

  /** There is no transport: what is to be sent waits. */
  detach(): void {
    this.#transport = undefined;
    this.#writable = false;
    this.#pingAtNs = Infinity;
    this.#ackAtNs = Infinity;
    this.#replayAtNs = Infinity;
  }

  flush(now: Nanos): void {
    this.#flushWanted = true;
    this.pump(now);
    this.#transport?.flush?.();
  }

  writable(now: Nanos): void {
    this.#writable = true;
    this.pump(now);
    this.tellPeer(now);
  }

  /** Hands frames to the transport while it takes them. */
  pump(now: Nanos): void {
    if (this.#transport === undefined) return;
    const egress = this.#egress;
    const replay = egress.replay;
    while (this.#writable) {
      if (replay.cursor !== replay.next) this.#transmit(now);
      else if (this.#flushWanted && egress.hasOpenFrame) egress.seal();
      else break;
    }
    if (!egress.hasOpenFrame && replay.cursor === replay.next) this.#flushWanted = false;
  }

  /** The peer has acknowledged something new. */
  acknowledged(now: Nanos): void {
    this.#replayBackoff = 1;
    const waiting = this.#egress.replay.inFlight > 0;
    this.#replayAtNs = waiting ? now + this.#replayTimeoutNs() : Infinity;
  }

  /** The peer asked, to be answered at the end of the turn. */
  pinged(id: number, nextSequence: number): void {
    this.#pongId = id;
    this.#ingress.ping(nextSequence);
  }

  ponged(now: Nanos, id: number): void {
    this.#pings.end(now, id);
  }

  /**
   * Sends acknowledgement, credits and answers in a frame of their own, if one is due that no DATA
   * frame has carried: an answer to a ping, a gap, a duplicate, half a window of credit, many frames
   * or bytes received, or the acknowledgement delay gone by. Otherwise sets the delay.
   */
  tellPeer(now: Nanos): void {
    if (this.#transport === undefined) return;
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
    if (ingress.nakDue) this.#counters.naksSent++;
    const pongId = this.#pongId;
    this.#pongId = -1;
    this.#sendBare(now, pongId >= 0 ? FrameType.PONG : FrameType.CONTROL, flags, pongId);
  }

  nextDeadlineNs(): number {
    return Math.min(this.#pingAtNs, this.#ackAtNs, this.#replayAtNs);
  }

  tick(now: Nanos): void {
    if (now >= this.#pingAtNs) {
      this.#pingAtNs = now + this.#options.pingIntervalNs;
      this.#ping(now);
    }
    if (now >= this.#replayAtNs) {
      // Ask what has arrived rather than send it all again: on a transport that only got slow
      // nothing is wasted, on one that lost frames the answer is a NAK.
      this.#counters.ackQuestions++;
      this.#replayBackoff = Math.min(MAX_REPLAY_BACKOFF, this.#replayBackoff * 2);
      this.#replayAtNs = now + this.#replayTimeoutNs();
      this.#ping(now);
    }
    if (now >= this.#ackAtNs) {
      this.#ackAtNs = Infinity;
      this.#ingress.urgent = true;
      this.tellPeer(now);
    }
  }

  #transmit(now: Nanos): void {
    const replay = this.#egress.replay;
    const ingress = this.#ingress;
    const { granted } = ingress.credits;
    const offset = replay.offsetOf(replay.cursor);
    const length = replay.lengthOf(replay.cursor);
    const isFirst = replay.passCursor();
    if (this.#replayAtNs === Infinity) this.#replayAtNs = now + this.#replayTimeoutNs();
    this.#counters.out.frames++;
    this.#counters.out.frameBytes += length;
    if (isFirst) {
      refreshSessionHeader(replay.view, offset, ingress.expected, granted);
      this.#handOver(now, replay.bytes, offset, length, false);
      return;
    }
    // A copy: once the first transmission is acknowledged its bytes are used anew, while a transport
    // may still be busy with the second.
    const copy = copyOfBytes(replay.bytes, offset, length);
    refreshSessionHeader(new DataView(copy.buffer), 0, ingress.expected, granted);
    this.#counters.replayedFrames++;
    this.#handOver(now, copy, 0, length, false);
  }

  #ping(now: Nanos): void {
    if (this.#writable) this.#sendBare(now, FrameType.PING, 0, this.#pings.begin(now));
  }

  #sendBare(now: Nanos, type: FrameType, flags: number, pingId: number): void {
    const ingress = this.#ingress;
    const length = SESSION_HEADER_BYTES + (type === FrameType.CONTROL ? 0 : 4);
    const { bytes, offset } = this.#bare.take(length);
    const view = this.#bareViews.of(bytes);
    const { granted } = ingress.credits;
    const { cursor } = this.#egress.replay;
    writeSessionHeader(view, offset, type, flags, length, cursor, ingress.expected, granted);
    if (type !== FrameType.CONTROL) view.setUint32(offset + SESSION_HEADER_BYTES, pingId);
    this.#counters.controlFrames++;
    this.#handOver(now, bytes, offset, length, type !== FrameType.PING);
  }

  #handOver(now: Nanos, bytes: Uint8Array, offset: number, length: number, withNak: boolean): void {
    if (this.#transport === undefined) return;
    this.#ingress.told(withNak);
    this.#ackAtNs = Infinity;
    this.#writable = this.#transport.send(now, bytes, offset, length);
  }

  #replayTimeoutNs(): number {
    const { replayTimerFloorNs, ackDelayNs } = this.#options;
    const usualNs = 2 * (this.#counters.rttLastNs + ackDelayNs);
    return Math.max(replayTimerFloorNs, usualNs) * this.#replayBackoff;
  }
}
