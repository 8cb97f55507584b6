/** A QMP session over QEMU's unix socket, which is connected to again and again for as long as it is wanted. */
import * as net from 'node:net';
import { type Clock, TimerDriver } from '#base/clock';
import type { Nanos } from '#base/units';
import { type QmpDone, QmpSession } from './qmp-session.ts';

export interface QmpConnectionUser {
  /** QEMU is there and takes commands. */
  connected(now: Nanos): void;
  event(now: Nanos, name: string, data: Readonly<Record<string, unknown>>): void;
  /** QEMU is not there, or not any more; said once for as long as the reason is the same. */
  disconnected(now: Nanos, reason: string): void;
  /** After what came together: the place to send what it has caused. */
  turnEnd(): void;
}

export interface QmpConnectionOptions {
  readonly path: string;
  readonly clock: Clock;
  readonly user: QmpConnectionUser;
}

const CONNECT_FAILURES: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such socket: start QEMU with it, as -qmp unix:PATH,server=on,wait=off',
  ENOTDIR: 'a part of its path is no folder',
  ECONNREFUSED: 'nobody listens there: start QEMU with it, as -qmp unix:PATH,server=on,wait=off',
  EACCES: 'this user may not connect to it: run this process as the user of QEMU',
};

const FIRST_PAUSE_NS = 100e6;
const LONGEST_PAUSE_NS = 2e9;

export class QmpConnection {
  readonly #options: QmpConnectionOptions;
  #session: QmpSession | undefined;
  #socket: net.Socket | undefined;
  #pauseNs = FIRST_PAUSE_NS;
  #said: string | undefined;
  #isStopped = false;
  #cancelRetry: (() => void) | undefined;

  /** Connects at once, and whenever the connection is lost. */
  constructor(options: QmpConnectionOptions) {
    this.#options = options;
    this.#connect();
  }

  /** `done` is called once, `gone` where QEMU is not there. */
  execute(command: string, args: Readonly<Record<string, unknown>>, done: QmpDone): void {
    const now = this.#options.clock.now();
    if (this.#session === undefined) {
      done(now, { ok: false, kind: 'gone', message: `QMP ${command}: QEMU is not connected` });
    } else {
      this.#session.execute(now, command, args, done);
    }
  }

  stop(): void {
    this.#isStopped = true;
    this.#cancelRetry?.();
    this.#socket?.destroy();
  }

  #connect(): void {
    const { clock, path, user } = this.#options;
    const socket = net.connect(path);
    this.#socket = socket;
    let reason = 'QEMU has closed its QMP socket';
    const session = new QmpSession(clock.now(), {
      send: (text) => socket.write(text),
      deadlineMoved: () => timer.update(),
      user: {
        ready: (now) => {
          this.#pauseNs = FIRST_PAUSE_NS;
          this.#said = undefined;
          user.connected(now);
        },
        event: (now, name, data) => user.event(now, name, data),
        broken: (_now, why) => {
          reason = why;
          socket.destroy();
        },
      },
    });
    const timer = new TimerDriver(clock, session);
    timer.update();
    this.#session = session;
    socket.setEncoding('utf8');
    socket.on('data', (text: string) => {
      session.receive(clock.now(), text);
      user.turnEnd();
    });
    socket.on('error', (error: NodeJS.ErrnoException) => {
      reason = `${path}: ${CONNECT_FAILURES[error.code ?? ''] ?? error.message}`;
    });
    socket.on('close', () => {
      const now = clock.now();
      timer.stop();
      this.#session = undefined;
      session.closed(now, reason);
      if (this.#isStopped) return;
      this.#cancelRetry = clock.at((now + this.#pauseNs) as Nanos, () => this.#connect());
      this.#pauseNs = Math.min(2 * this.#pauseNs, LONGEST_PAUSE_NS);
      if (this.#said !== reason) {
        this.#said = reason;
        user.disconnected(now, reason);
      }
      user.turnEnd();
    });
  }
}
