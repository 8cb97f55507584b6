/**
 * Frames over one stream socket, TLS or (for the benchmark) plain TCP.
 *
 * Outgoing frames are held until the end of the turn that caused them: of a chunk of input, or of
 * the current event loop tick. Incoming bytes are cut into frames by the length each frame's header
 * states. Frames that lie in one chunk are handed on where they lie; one that spans chunks is put
 * together in a buffer that never holds more than one frame. Small chunks are copied to one place
 * first: that costs less than the view of a new buffer which the receiver would have to make.
 */
import type { Socket } from 'node:net';
import type { Clock } from '#base/clock';
import type { Nanos } from '#base/units';
import { assert } from '#base/assert';
import { FRAME_HEADER_BYTES, frameLengthAt, MAX_FRAME_BYTES } from './frame.ts';
import type { PeerIdentity, Transport, TransportUser } from './transport.ts';

/** Above this many bytes waiting in this process, `send` asks the sender to hold on. */
const HOLD_ABOVE_BYTES = 128 * 1024;
const CLOSE_TIMEOUT_MS = 1000;
/** Chunks up to this size are copied. */
const SMALL_CHUNK_BYTES = 1024;

export class SocketTransport implements Transport {
  readonly peer: PeerIdentity;
  readonly #socket: Socket;
  readonly #clock: Clock;
  #user: TransportUser | undefined;
  /** The only frame this turn has sent so far… */
  #first: Uint8Array | undefined;
  /** …or the socket holds back several of them. */
  #corked = false;
  #inTurn = false;
  #holding = false;
  #ended = false;
  #reason: string | undefined;
  /** The head of a frame whose rest has not come yet. */
  #partial: Uint8Array | undefined;
  #partialBytes = 0;
  readonly #small = new Uint8Array(SMALL_CHUNK_BYTES);

  /** The socket is connected, and `peer` has been verified. Paused until `start`. */
  constructor(socket: Socket, peer: PeerIdentity, clock: Clock) {
    this.#socket = socket;
    this.peer = peer;
    this.#clock = clock;
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
    socket.on('data', (chunk: Buffer) => this.#data(chunk));
    socket.on('drain', () => {
      if (!this.#holding || this.#ended) return;
      this.#holding = false;
      user.writable(this.#clock.now());
    });
    socket.resume();
  }

  /** Bytes taken by `send` that this process has not yet given to the kernel. */
  get waitingBytes(): number {
    const first = this.#first === undefined ? 0 : this.#first.length;
    return this.#socket.writableLength + first;
  }

  send(_now: number, frame: Uint8Array): boolean {
    if (this.#ended) return true;
    const socket = this.#socket;
    if (this.#corked) {
      socket.write(frame);
    } else if (this.#first === undefined) {
      // Most turns send one frame: that goes by the short way, without the stream's own buffering.
      this.#first = frame;
      if (!this.#inTurn) process.nextTick(flushTurn, this);
    } else {
      this.#corked = true;
      socket.cork();
      socket.write(this.#first);
      this.#first = undefined;
      socket.write(frame);
    }
    if (this.waitingBytes > HOLD_ABOVE_BYTES) this.#holding = true;
    return !this.#holding;
  }

  close(): void {
    if (this.#ended) return;
    this.#ended = true;
    this.flushTurn();
    // What was sent before still goes out, but a peer that reads nothing does not keep us waiting.
    const socket = this.#socket;
    setTimeout(() => socket.destroy(), CLOSE_TIMEOUT_MS).unref();
    socket.end(() => socket.destroy());
  }

  /** Lets out what the current turn has sent so far. */
  flushTurn(): void {
    const first = this.#first;
    if (first !== undefined) {
      this.#first = undefined;
      this.#socket.write(first);
    } else if (this.#corked) {
      this.#corked = false;
      this.#socket.uncork();
    }
  }

  #data(input: Buffer): void {
    if (this.#ended) return;
    const user = this.#user;
    if (user === undefined) return;
    const now = this.#clock.now();
    this.#inTurn = true;
    let chunk: Uint8Array = input;
    const chunkBytes = input.length;
    if (chunkBytes <= SMALL_CHUNK_BYTES) {
      chunk = this.#small;
      chunk.set(input);
    }
    let offset = 0;
    if (this.#partial !== undefined) offset = this.#complete(chunk, chunkBytes, now, user);
    while (!this.#ended) {
      const available = chunkBytes - offset;
      if (available < FRAME_HEADER_BYTES) break;
      const length = frameLengthAt(chunk, offset);
      if (length < FRAME_HEADER_BYTES || length > MAX_FRAME_BYTES) {
        this.#lied(length);
        break;
      }
      if (length > available) break;
      user.frame(now, chunk, offset, length);
      offset += length;
    }
    if (!this.#ended && offset < chunkBytes) this.#keep(chunk, offset, chunkBytes);
    if (!this.#ended) user.turnEnd(now);
    this.#inTurn = false;
    this.flushTurn();
  }

  /** Goes on with the frame begun in earlier chunks. Returns how much of `chunk` it took. */
  #complete(chunk: Uint8Array, chunkBytes: number, now: Nanos, user: TransportUser): number {
    let partial = this.#partial as Uint8Array;
    let offset = 0;
    if (this.#partialBytes < FRAME_HEADER_BYTES) {
      offset = this.#append(partial, chunk, 0, chunkBytes, FRAME_HEADER_BYTES);
      if (this.#partialBytes < FRAME_HEADER_BYTES) return offset;
    }
    const length = frameLengthAt(partial, 0);
    if (length < FRAME_HEADER_BYTES || length > MAX_FRAME_BYTES) {
      this.#lied(length);
      return offset;
    }
    if (partial.length < length) {
      partial = new Uint8Array(length);
      partial.set((this.#partial as Uint8Array).subarray(0, this.#partialBytes));
      this.#partial = partial;
    }
    offset += this.#append(partial, chunk, offset, chunkBytes, length);
    if (this.#partialBytes < length) return offset;
    this.#partial = undefined;
    this.#partialBytes = 0;
    user.frame(now, partial, 0, length);
    return offset;
  }

  /** Fills `partial` up to `wantedBytes`. Returns the bytes taken from `chunk`. */
  #append(
    partial: Uint8Array,
    chunk: Uint8Array,
    offset: number,
    chunkBytes: number,
    wantedBytes: number,
  ): number {
    const count = Math.min(wantedBytes - this.#partialBytes, chunkBytes - offset);
    partial.set(chunk.subarray(offset, offset + count), this.#partialBytes);
    this.#partialBytes += count;
    return count;
  }

  #keep(chunk: Uint8Array, offset: number, chunkBytes: number): void {
    const count = chunkBytes - offset;
    if (this.#partial === undefined) {
      // The length is known once the header is there: then the rest needs no second copy.
      const bytes = count < FRAME_HEADER_BYTES ? FRAME_HEADER_BYTES : frameLengthAt(chunk, offset);
      this.#partial = new Uint8Array(bytes);
      this.#partialBytes = 0;
      this.#partial.set(chunk.subarray(offset, chunkBytes));
      this.#partialBytes = count;
    }
  }

  #lied(length: number): void {
    this.#reason =
      `the peer sent a frame of ${length} bytes, ` +
      `${FRAME_HEADER_BYTES} to ${MAX_FRAME_BYTES} are allowed`;
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

function flushTurn(transport: SocketTransport): void {
  transport.flushTurn();
}
