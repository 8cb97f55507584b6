/** What tests of vfio-user share: places for sockets, raw peers that send any bytes, counting of fds. */
import { closeSync, mkdtempSync, openSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { RealClock } from '#base/clock';
import type { Nanos } from '#base/units';
import { koffiTransport } from '#vfio-user/koffi-socket';
import { MessageChannel, type PeerPort } from '#vfio-user/message-channel';
import { type Message, newMessage, parseMessage } from '#vfio-user/message';
import type { ServedDevice } from '#vfio-user/served-device';
import { checkServerOptions } from '#vfio-user/server';
import type { ServerOptions } from '#vfio-user/server-options';
import { ServerSession } from '#vfio-user/server-session';
import { systemFds } from '#vfio-user/system-fds';
import type { UnixFdSocket } from '#vfio-user/unix-fd-socket';

/** Descriptors this process has open. */
export function openFds(): number {
  return readdirSync('/proc/self/fd').length;
}

/** Another description of the file that `fd` is of, which whoever gets it may close. */
export function duplicateFd(fd: number): number {
  return openSync(`/proc/self/fd/${fd}`, 'r+');
}

/** A folder for sockets, and what removes it. */
export function socketFolder(): { path: (name: string) => string; remove: () => void } {
  const folder = mkdtempSync(path.join(tmpdir(), 'vfio-user-'));
  return {
    path: (name) => path.join(folder, name),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}

/** Waits until `condition` holds, at most `ms`. */
export async function until(condition: () => boolean, what: string, ms = 10_000): Promise<void> {
  const end = performance.now() + ms;
  while (!condition()) {
    if (performance.now() > end) throw new Error(`not in ${ms} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}

/** Bytes from hexadecimal digits; blanks and what follows a `#` in a line do not count. */
export function hex(text: string): Uint8Array {
  const digits = text.replaceAll(/#.*$/gm, '').replaceAll(/\s/g, '');
  const bytes = Uint8Array.from(Buffer.from(digits, 'hex'));
  if (bytes.length * 2 !== digits.length) throw new Error(`not hexadecimal: ${text}`);
  return bytes;
}

export interface Sent {
  readonly message: Message;
  readonly fds: readonly number[];
}

/** A `PeerPort` that keeps what is sent. */
export class RecordingPort implements PeerPort {
  readonly sent: Sent[] = [];
  isClosed = false;
  limitBytes = 0;

  send(bytes: Uint8Array, fds: readonly number[] = []): void {
    this.sent.push({ message: parseMessage(bytes), fds: [...fds] });
  }

  close(): void {
    this.isClosed = true;
  }

  /** The one message sent since the last call. */
  oneMessage(): Message {
    const [first, ...others] = this.sent.splice(0);
    if (first === undefined || others.length > 0) {
      throw new Error(`${others.length + (first === undefined ? 0 : 1)} messages, not one`);
    }
    return first.message;
  }
}

/** A server session without a socket, in a time of its own, with the real descriptors. */
export class SessionRig {
  readonly port = new RecordingPort();
  readonly refusals: string[] = [];
  readonly ends: string[] = [];
  readonly session: ServerSession;
  now = 0;

  constructor(device: ServedDevice, options: ServerOptions = {}) {
    this.session = new ServerSession({
      device,
      port: this.port,
      fds: systemFds,
      settings: checkServerOptions({
        ...options,
        onRefused: (_now, _command, refused) => this.refusals.push(refused.reason),
      }),
      deadlineMoved: () => {},
      onEnd: (reason) => this.ends.push(reason),
    });
  }

  /** Gives the session a message; `fds` become its. */
  give(bytes: Uint8Array, fds: readonly number[] = []): void {
    this.session.message(this.now as Nanos, bytes, fds, false);
  }

  /** Gives it a message and returns what it answers. */
  ask(bytes: Uint8Array, fds: readonly number[] = []): Message {
    this.give(bytes, fds);
    return this.port.oneMessage();
  }

  /** VERSION 0.0 without capabilities. */
  hello(): this {
    this.ask(hex('0000 0100 14000000 00000000 00000000  0000 0000'));
    return this;
  }

  at(ms: number): void {
    this.now = ms * 1e6;
    this.session.tick(this.now as Nanos);
  }

  end(reason = 'the test is over'): void {
    this.session.closed(this.now as Nanos, reason);
  }
}

/** The other end of a real socket, for any bytes. */
export class RawPeer {
  readonly socket: UnixFdSocket;
  readonly got: Message[] = [];
  readonly fds: number[] = [];
  closedFor: string | undefined;

  constructor(socketPath: string) {
    this.socket = koffiTransport.connect(socketPath);
    const channel = new MessageChannel(this.socket, new RealClock(), {
      fds: systemFds,
      limitBytes: 1 << 24,
      maxFds: 253,
      holdAboveBytes: Infinity,
      closeAboveBytes: Infinity,
    });
    channel.start({
      message: (_now, bytes, fds) => {
        this.got.push(parseMessage(Uint8Array.from(bytes)));
        this.fds.push(...fds);
      },
      badSize: () => {},
      closed: (_now, reason) => {
        this.closedFor = reason;
      },
      turnEnd: () => {},
    });
  }

  send(bytes: Uint8Array, fds: readonly number[] = []): void {
    this.socket.send(bytes, 0, fds);
  }

  /** The next message that comes. */
  async next(): Promise<Message> {
    await until(() => this.got.length > 0, 'a message');
    return this.got.shift() as Message;
  }

  async ask(bytes: Uint8Array, fds: readonly number[] = []): Promise<Message> {
    this.send(bytes, fds);
    return this.next();
  }

  hello(): Promise<Message> {
    const message = newMessage(0, 1, 0, 4);
    return this.ask(message);
  }

  close(): void {
    for (const fd of this.fds.splice(0)) closeSync(fd);
    if (this.closedFor === undefined) this.socket.close();
  }
}
