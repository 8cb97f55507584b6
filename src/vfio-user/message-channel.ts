/**
 * Whole messages over one socket: the shell around a session. `MessageChannel` owns the socket, the
 * descriptors that come in until they are handed over, and duplicates of those that wait to go out. The
 * session is its `ChannelUser` and calls `send` and `close`, also from within a call of the channel.
 *
 * A message leaves in one system call. Only what the socket has no room for waits, and goes as room comes.
 */
import type { Clock } from '#base/clock';
import { DxpuError } from '#base/errors';
import { RingBuffer } from '#base/ring-buffer';
import type { Nanos } from '#base/units';
import { closeAll, type FdOperations } from './fd-operations.ts';
import { MessageAssembler } from './message-assembler.ts';
import { PEER_CLOSED, type UnixFdSocket, WOULD_BLOCK } from './unix-fd-socket.ts';

/** What a session does to its peer. */
export interface PeerPort {
  /**
   * Sends one message. It must not change afterwards. `fds` stay the caller's, who may close them at
   * once.
   */
  send(message: Uint8Array, fds?: readonly number[]): void;
  /** Ends the connection. `closed` is not called for it. */
  close(): void;
  /** The longest message that is taken from the next one on; longer ones end the connection. */
  limitBytes: number;
}

export interface ChannelUser {
  /**
   * One whole message, valid during the call, and its descriptors, which are the user's from here on.
   * `fdsLost`: more came than `maxFds`, or than this process could take; those are closed already.
   */
  message(now: Nanos, bytes: Uint8Array, fds: readonly number[], fdsLost: boolean): void;
  /**
   * Whether whoever sent this message waits for its answer, so that there is hardly anything behind it: the turn
   * ends with it, and the answer is sooner on its way. Default: never.
   */
  endsTurn?(bytes: Uint8Array): boolean;
  /** The header of a message whose stated length cannot be. The connection is closed after the call. */
  badSize(now: Nanos, header: Uint8Array): void;
  /** The connection is gone, for `reason`. Called once. */
  closed(now: Nanos, reason: string): void;
  /** After messages that came together, and after the connection has gone. */
  turnEnd(now: Nanos): void;
}

export interface ChannelOptions {
  readonly fds: FdOperations;
  /** The longest message until `limitBytes` is set. */
  readonly limitBytes: number;
  /** Descriptors kept of one message. */
  readonly maxFds: number;
  /** With more bytes than this waiting to go out, nothing is read. Infinity: always read. */
  readonly holdAboveBytes: number;
  /** With more bytes than this waiting to go out, the connection is closed. */
  readonly closeAboveBytes: number;
}

interface Waiting {
  readonly bytes: Uint8Array;
  offset: number;
  fds: readonly number[];
}

/** Messages read in one go, so that timers and other connections have their turn. */
const MESSAGES_A_TURN = 64;

export class MessageChannel implements PeerPort {
  readonly #socket: UnixFdSocket;
  readonly #clock: Clock;
  readonly #options: ChannelOptions;
  readonly #assembler: MessageAssembler;
  #user: ChannelUser | undefined;
  #fds: number[] = [];
  #fdsLost = false;
  readonly #waiting = new RingBuffer<Waiting>();
  #waitingBytes = 0;
  /** What the socket is watched for. */
  #reading = false;
  #writing = false;
  #messages = 0;
  /** Nobody reads what is sent. */
  #broken = false;
  #ended = false;

  constructor(socket: UnixFdSocket, clock: Clock, options: ChannelOptions) {
    this.#socket = socket;
    this.#clock = clock;
    this.#options = options;
    this.#assembler = new MessageAssembler(options.limitBytes);
  }

  get limitBytes(): number {
    return this.#assembler.limitBytes;
  }

  set limitBytes(value: number) {
    this.#assembler.limitBytes = value;
  }

  /** Begins to read. Called once. */
  start(user: ChannelUser): void {
    this.#user = user;
    this.#watch();
  }

  send(message: Uint8Array, fds: readonly number[] = []): void {
    if (this.#ended || this.#broken) return;
    let went = 0;
    if (this.#waiting.size === 0) {
      try {
        went = this.#socket.send(message, 0, fds);
      } catch (error) {
        this.#breakLater(DxpuError.from(error).message);
        return;
      }
      if (went === message.length) return;
    }
    const begun = went > 0;
    this.#waiting.push({
      bytes: message,
      offset: begun ? went : 0,
      fds: begun ? [] : fds.map((fd) => this.#options.fds.duplicate(fd)),
    });
    this.#waitingBytes += message.length;
    if (this.#waitingBytes > this.#options.closeAboveBytes) {
      this.#breakLater('the peer does not read what it is sent');
      return;
    }
    this.#watch();
  }

  close(): void {
    this.#end();
  }

  readonly #watcher = {
    readable: (): void => this.#readable(),
    writable: (): void => this.#writable(),
    failed: (): void => this.#failed(PEER_CLOSED),
  };

  #watch(): void {
    if (this.#ended || this.#broken || this.#user === undefined) return;
    const reading = this.#waitingBytes <= this.#options.holdAboveBytes;
    const writing = this.#waiting.size > 0;
    if (reading === this.#reading && writing === this.#writing) return;
    this.#reading = reading;
    this.#writing = writing;
    this.#socket.watch(reading, writing, this.#watcher);
  }

  #readable(): void {
    const user = this.#user;
    if (user === undefined) return;
    for (let messages = 0; messages < MESSAGES_A_TURN && !this.#ended && this.#reading; ) {
      const assembler = this.#assembler;
      let got: number;
      try {
        got = this.#socket.receive(assembler.buffer, assembler.offset, assembler.wanted, this.#fds);
      } catch (error) {
        this.#gone(DxpuError.from(error).message);
        return;
      }
      if (got === WOULD_BLOCK) break;
      this.#keepFds();
      if (got === 0) {
        this.#gone(assembler.isMidway ? 'the peer left within a message' : PEER_CLOSED);
        return;
      }
      const state = assembler.received(got);
      if (state === 'more') continue;
      messages++;
      this.#messages++;
      // What is behind it all the same is told of again.
      if (this.#deliver(user, state === 'bad-size')) break;
    }
    if (!this.#ended) user.turnEnd(this.#clock.now());
  }

  /** Whether the turn ends with it. */
  #deliver(user: ChannelUser, badSize: boolean): boolean {
    const now = this.#clock.now();
    const bytes = this.#assembler.take();
    const fds = this.#fds;
    const fdsLost = this.#fdsLost;
    this.#fds = [];
    this.#fdsLost = false;
    if (!badSize) {
      user.message(now, bytes, fds, fdsLost);
      return user.endsTurn?.(bytes) === true;
    }
    closeAll(this.#options.fds, fds);
    user.badSize(now, bytes);
    this.#gone('the peer sent a message of a length that cannot be');
    return true;
  }

  #keepFds(): void {
    if (this.#socket.fdsLost) this.#fdsLost = true;
    while (this.#fds.length > this.#options.maxFds) {
      closeAll(this.#options.fds, this.#fds.splice(-1));
      this.#fdsLost = true;
    }
  }

  #writable(): void {
    for (let next = this.#waiting.peek(); next !== undefined; next = this.#waiting.peek()) {
      let went: number;
      try {
        went = this.#socket.send(next.bytes, next.offset, next.fds);
      } catch (error) {
        this.#gone(DxpuError.from(error).message);
        return;
      }
      if (went === WOULD_BLOCK) break;
      closeAll(this.#options.fds, next.fds);
      next.fds = [];
      next.offset += went;
      if (next.offset < next.bytes.length) continue;
      this.#waiting.shift();
      this.#waitingBytes -= next.bytes.length;
    }
    this.#watch();
  }

  /** Not now: whoever sends is in the middle of something. */
  #breakLater(reason: string): void {
    this.#broken = true;
    process.nextTick(() => this.#failed(reason));
  }

  /** Takes what came before the end, however much that is; there will be no other occasion. */
  #failed(reason: string): void {
    if (this.#ended) return;
    this.#broken = true;
    this.#reading = true;
    let before: number;
    do {
      before = this.#messages;
      this.#readable();
    } while (this.#messages > before);
    this.#gone(reason);
  }

  #gone(reason: string): void {
    if (this.#ended) return;
    this.#end();
    const now = this.#clock.now();
    this.#user?.closed(now, reason);
    this.#user?.turnEnd(now);
  }

  #end(): void {
    if (this.#ended) return;
    this.#ended = true;
    // What a refused peer is told last goes as far as there is room.
    for (let next = this.#waiting.shift(); next !== undefined; next = this.#waiting.shift()) {
      closeAll(this.#options.fds, next.fds);
    }
    closeAll(this.#options.fds, this.#fds);
    this.#fds = [];
    this.#socket.close();
  }
}
