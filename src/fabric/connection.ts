/**
 * One transport, from its first frame to its end. Before HELLO has been dealt with its frames go to
 * its owner (`HostLink` or `BoxLinks`), afterwards to its session. A connection that has been closed
 * hears nothing any more, whatever the transport still delivers.
 */
import type { Nanos } from '#base/units';
import {
  decodeFrame,
  type EndCode,
  encodeEnd,
  Frame,
  FRAME_DECODE_TEXT,
  FrameDecode,
  FrameType,
  ViewCache,
} from './frame.ts';
import type { Transport, TransportUser } from './transport.ts';

/** What a connection hands its frames to once a session runs over it. `Session` is one. */
export interface ConnectionSession {
  frame(now: Nanos, frame: Frame, view: DataView, bytes: Uint8Array, offset: number): void;
  turnEnd(now: Nanos): void;
  writable(now: Nanos): void;
  violation(now: Nanos, what: string): void;
  connectionLost(now: Nanos, reason: string): void;
}

export interface ConnectionOwner {
  /** HELLO, HELLO-ACK, REFUSE or BYE; the record is valid during the call. */
  handshakeFrame(now: Nanos, connection: Connection, frame: Frame): void;
  /** A frame of a session, before there is one. */
  earlyFrame(now: Nanos, connection: Connection): void;
  /** Bytes that are no frame, before there is a session. */
  nonsense(now: Nanos, connection: Connection, reason: string): void;
  /** The transport closed before there was a session. */
  connectionClosed(now: Nanos, connection: Connection, reason: string): void;
}

export class Connection implements TransportUser {
  readonly transport: Transport;
  readonly openedAtNs: number;
  session: ConnectionSession | undefined;
  open = true;
  readonly #owner: ConnectionOwner;
  readonly #frame = new Frame();
  readonly #views = new ViewCache();

  constructor(now: Nanos, transport: Transport, owner: ConnectionOwner) {
    this.openedAtNs = now;
    this.transport = transport;
    this.#owner = owner;
  }

  frame(now: Nanos, bytes: Uint8Array, offset: number, length: number): void {
    if (!this.open) return;
    const frame = this.#frame;
    const view = this.#views.of(bytes);
    const session = this.session;
    const result = decodeFrame(view, bytes, offset, length, frame);
    if (result !== FrameDecode.OK) {
      const reason = `sent ${FRAME_DECODE_TEXT[result]}`;
      if (session !== undefined) session.violation(now, reason);
      else this.#owner.nonsense(now, this, reason);
    } else if (frame.type < FrameType.DATA) {
      this.#owner.handshakeFrame(now, this, frame);
    } else if (session !== undefined) {
      session.frame(now, frame, view, bytes, offset);
    } else {
      this.#owner.earlyFrame(now, this);
    }
  }

  turnEnd(now: Nanos): void {
    if (this.open) this.session?.turnEnd(now);
  }

  writable(now: Nanos): void {
    if (this.open) this.session?.writable(now);
  }

  closed(now: Nanos, reason: string): void {
    if (!this.open) return;
    this.open = false;
    if (this.session !== undefined) this.session.connectionLost(now, reason);
    else this.#owner.connectionClosed(now, this, reason);
  }

  /** Closes the transport without a word. */
  close(): void {
    if (!this.open) return;
    this.open = false;
    this.transport.close();
  }

  /** Sends a frame outside a session: all of its array. */
  say(now: Nanos, frame: Uint8Array): void {
    this.transport.send(now, frame, 0, frame.length);
  }

  /** Tells the peer why, then closes. */
  end(
    now: Nanos,
    type: typeof FrameType.REFUSE | typeof FrameType.BYE,
    code: EndCode,
    text: string,
  ): void {
    if (!this.open) return;
    this.say(now, encodeEnd(type, code, text));
    this.close();
  }
}
