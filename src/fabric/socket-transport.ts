/**
 * Frames over one stream socket, TLS or (for the benchmark) plain TCP.
 *
 * Outgoing frames wait until their sender says that there are no more (`flush`), until the end of the turn
 * that caused them (of the input that is there, or of the current event loop tick) or until there are 64 KiB
 * of them; those that lie side by side leave in one write. Incoming bytes are cut into frames by the length each frame's header states. TLS brings
 * them a record at a time: when one ends within a frame, the turn goes on with the next, up to 64 KiB and
 * until the event loop has read what has come.
 */
import type { Socket } from 'node:net';
import type { Clock } from '#base/clock';
import { assert } from '#base/assert';
import type { Nanos } from '#base/units';
import type { DirectInput } from './direct-input.ts';
import { FRAME_HEADER_BYTES, MAX_FRAME_BYTES, MAX_HANDSHAKE_FRAME_BYTES } from './frame-bounds.ts';
import { NO_FRAME, StreamInput } from './stream-input.ts';
import type { PeerIdentity, Transport, TransportUser } from './transport.ts';

/** Above this many bytes waiting in this process, `send` asks the sender to hold on. */
const HOLD_ABOVE_BYTES = 128 * 1024;
/** A turn that sends more does not wait for its end: the peer may begin. */
const WRITE_BYTES = 64 * 1024;
/** A turn that was brought more ends, whatever is behind it: the peer may go on. */
const TURN_BYTES = 64 * 1024;
const CLOSE_TIMEOUT_MS = 1000;

export class SocketTransport implements Transport {
  readonly peer: PeerIdentity;
  readonly #socket: Socket;
  readonly #clock: Clock;
  readonly #direct: DirectInput | undefined;
  readonly #input: StreamInput;
  #user: TransportUser | undefined;
  /** The first frame of the current turn, mostly the only one, and the others. */
  #first: Uint8Array | undefined;
  #others: Uint8Array[] = [];
  #framesBytes = 0;
  #inTurn = false;
  /** Bytes of frames in this turn. */
  #turnBytes = 0;
  #turnEnd: NodeJS.Immediate | undefined;
  #holding = false;
  #ended = false;
  #reason: string | undefined;

  /**
   * The socket is connected, and `peer` has been verified. Paused until `start`. `direct` is what the
   * socket reads into; without it the bytes come by 'data' events.
   */
  constructor(socket: Socket, peer: PeerIdentity, clock: Clock, direct?: DirectInput) {
    this.#socket = socket;
    this.peer = peer;
    this.#clock = clock;
    this.#direct = direct;
    this.#input = direct?.input ?? new StreamInput();
    socket.pause();
    socket.setNoDelay(true);
    socket.on('error', (error) => {
      this.#reason ??= error.message;
    });
    socket.on('end', () => {
      this.#reason ??= 'the peer closed the connection';
      // Nobody closes one half alone: what still waits here would find no reader.
      socket.destroy();
    });
    socket.on('close', () => this.#gone(this.#reason ?? 'the connection is gone'));
  }

  /**
   * The first frame may be no longer than HELLO: whoever has a certificate but no session gets no
   * memory for frames. Called before `start`, by the end that takes connections in.
   */
  expectHello(): void {
    this.#input.limitBytes = MAX_HANDSHAKE_FRAME_BYTES;
  }

  /** Begins to deliver to `user`. Called once. */
  start(user: TransportUser): void {
    assert(this.#user === undefined, 'a transport has one user');
    this.#user = user;
    const socket = this.#socket;
    if (socket.destroyed) {
      // It went between the handshake and now: tell it as any other end, after the caller is done.
      process.nextTick(() => this.#gone(this.#reason ?? 'the connection is gone'));
      return;
    }
    socket.on('drain', () => {
      if (!this.#holding || this.#ended) return;
      this.#holding = false;
      user.writable(this.#clock.now());
    });
    if (this.#direct === undefined) {
      socket.on('data', (chunk: Buffer) => {
        this.#input.append(chunk);
        this.#deliver();
      });
    } else {
      this.#direct.arrived = () => this.#deliver();
      // What came with the end of the handshake.
      if (this.#input.nextFrame() !== NO_FRAME) process.nextTick(() => this.#deliver());
    }
    socket.resume();
  }

  /** Bytes taken by `send` that this process has not yet given to the kernel. */
  get waitingBytes(): number {
    return this.#socket.writableLength + this.#framesBytes;
  }

  send(_now: number, bytes: Uint8Array, offset: number, length: number): boolean {
    if (this.#ended) return true;
    const frame = bytes.subarray(offset, offset + length);
    if (this.#first === undefined) {
      this.#first = frame;
      if (!this.#inTurn) process.nextTick(flush, this);
    } else {
      this.#others.push(frame);
    }
    this.#framesBytes += length;
    if (this.#framesBytes >= WRITE_BYTES) this.flush();
    if (this.waitingBytes > HOLD_ABOVE_BYTES) this.#holding = true;
    return !this.#holding;
  }

  close(): void {
    if (this.#ended) return;
    this.flush();
    this.#ended = true;
    // What was sent before still goes out, but a peer that reads nothing does not keep us waiting.
    const socket = this.#socket;
    setTimeout(() => socket.destroy(), CLOSE_TIMEOUT_MS).unref();
    socket.end(() => socket.destroy());
  }

  flush(): void {
    const first = this.#first;
    if (first === undefined || this.#ended) return;
    const socket = this.#socket;
    this.#first = undefined;
    this.#framesBytes = 0;
    if (this.#others.length === 0) {
      socket.write(first);
      return;
    }
    const runs = runsOf(first, this.#others);
    this.#others = [];
    // Corking is for several writes: it makes a single one dearer.
    if (runs.length > 1) socket.cork();
    for (const run of runs) socket.write(run);
    if (runs.length > 1) socket.uncork();
  }

  #deliver(): void {
    const user = this.#user;
    const input = this.#input;
    if (this.#ended) {
      // Read on, that the peer gets to read why it was closed, but keep nothing.
      input.clear();
      return;
    }
    if (user === undefined) return;
    let length = input.nextFrame();
    if (length === NO_FRAME) return;
    const now = this.#clock.now();
    this.#inTurn = true;
    for (; length !== NO_FRAME; length = input.nextFrame()) {
      if (length < FRAME_HEADER_BYTES || length > input.limitBytes) {
        this.#lied(now, user, length);
        break;
      }
      user.frame(now, input.bytes, input.begin, length);
      input.take(length);
      this.#turnBytes += length;
      if (this.#ended) break;
      input.limitBytes = MAX_FRAME_BYTES;
    }
    if (this.#ended || input.available === 0 || this.#turnBytes >= TURN_BYTES) {
      this.#endTurn(now, user);
    } else {
      this.#turnEnd ??= setImmediate(() => this.#endTurn(this.#clock.now(), user));
    }
  }

  #endTurn(now: Nanos, user: TransportUser): void {
    if (this.#turnEnd !== undefined) {
      clearImmediate(this.#turnEnd);
      this.#turnEnd = undefined;
    }
    this.#turnBytes = 0;
    if (!this.#ended) user.turnEnd(now);
    this.#inTurn = false;
    this.flush();
  }

  /** The user ends the session for it, and tells the peer. Should it not, this is the end anyway. */
  #lied(now: Nanos, user: TransportUser, length: number): void {
    const input = this.#input;
    user.frame(now, input.bytes, input.begin, FRAME_HEADER_BYTES);
    if (this.#ended) return;
    this.#reason =
      `the peer sent a frame of ${length} bytes, ` +
      `${FRAME_HEADER_BYTES} to ${input.limitBytes} are allowed`;
    this.#socket.destroy();
    this.#gone(this.#reason);
  }

  #gone(reason: string): void {
    if (this.#ended) return;
    // Without a user yet, `start` reports it.
    if (this.#user === undefined) return;
    this.#ended = true;
    this.#user.closed(this.#clock.now(), reason);
  }
}

function flush(transport: SocketTransport): void {
  transport.flush();
}

/** The frames with those that lie side by side as one, as a link's frames mostly do. */
function runsOf(first: Uint8Array, others: readonly Uint8Array[]): Uint8Array[] {
  let run = first;
  const runs = [run];
  for (const frame of others) {
    if (run.buffer === frame.buffer && run.byteOffset + run.length === frame.byteOffset) {
      run = Buffer.from(run.buffer, run.byteOffset, run.length + frame.length);
      runs[runs.length - 1] = run;
    } else {
      run = frame;
      runs.push(run);
    }
  }
  return runs;
}
