/**
 * A device served over vfio-user without a socket and without a process: messages go at once, in the order of a
 * virtual clock. What the server says can be altered or left out, and it can go at any time.
 */
import type { RemoteSocket } from '#agent/daemon/remote-device';
import { TimerDriver } from '#base/clock';
import { DxpuError } from '#base/errors';
import type { VirtualClock } from '#base/virtual-clock';
import type { ChannelUser, PeerPort } from '#vfio-user/message-channel';
import { type Message, parseMessage } from '#vfio-user/message';
import { checkServerOptions } from '#vfio-user/server';
import type { ServedDevice } from '#vfio-user/served-device';
import { ServerSession } from '#vfio-user/server-session';
import { MemoryFds } from './memory-fds.ts';

/** What becomes of a message of the server: `undefined` is never sent. */
export type Alter = (message: Message) => Uint8Array | undefined;

class End implements PeerPort {
  limitBytes = 0;
  user: ChannelUser | undefined;
  other: End | undefined;
  isClosed = false;
  readonly #clock: VirtualClock;
  readonly #fds: MemoryFds;
  readonly #alter: Alter;

  constructor(clock: VirtualClock, fds: MemoryFds, alter: Alter) {
    this.#clock = clock;
    this.#fds = fds;
    this.#alter = alter;
  }

  start(user: ChannelUser): void {
    this.user = user;
  }

  send(message: Uint8Array, fds: readonly number[] = []): void {
    const bytes = this.isClosed ? undefined : this.#alter(parseMessage(message));
    if (bytes === undefined) return;
    const sent = fds.map((fd) => this.#fds.duplicate(fd));
    const { other } = this;
    this.#later(() => {
      if (other === undefined || other.isClosed) {
        for (const fd of sent) this.#fds.close(fd);
        return;
      }
      other.user?.message(this.#clock.now(), bytes, sent, false);
      if (!other.isClosed) other.user?.turnEnd(this.#clock.now());
    });
  }

  close(): void {
    this.isClosed = true;
    this.#later(() => this.other?.gone());
  }

  gone(): void {
    if (this.isClosed) return;
    this.isClosed = true;
    this.user?.closed(this.#clock.now(), 'the peer closed the connection');
    this.user?.turnEnd(this.#clock.now());
  }

  #later(act: () => void): void {
    this.#clock.at(this.#clock.now(), act);
  }
}

export class ServedInProcess implements RemoteSocket {
  readonly fds: MemoryFds;
  /** Nobody listens without. */
  device: ServedDevice | undefined;
  alter: Alter = ({ bytes }) => bytes;
  connections = 0;
  readonly #clock: VirtualClock;
  #server: End | undefined;

  constructor(clock: VirtualClock, device?: ServedDevice) {
    this.#clock = clock;
    this.fds = new MemoryFds(clock);
    this.device = device;
  }

  open(): End {
    const { device } = this;
    if (device === undefined) throw new DxpuError('not_found', 'nobody listens there');
    this.connections++;
    const clock = this.#clock;
    const server = new End(clock, this.fds, (message) => this.alter(message));
    const client = new End(clock, this.fds, ({ bytes }) => bytes);
    server.other = client;
    client.other = server;
    this.#server = server;
    const session: ServerSession = new ServerSession({
      device,
      port: server,
      fds: this.fds,
      settings: checkServerOptions({}),
      deadlineMoved: () => timer.update(),
      onEnd: () => timer.stop(),
    });
    const timer = new TimerDriver(clock, session);
    server.start(session);
    return client;
  }

  /** The process is gone, and its socket with it. */
  kill(): void {
    this.device = undefined;
    const server = this.#server;
    this.#server = undefined;
    if (server === undefined || server.isClosed) return;
    const { user } = server;
    server.close();
    user?.closed(this.#clock.now(), 'killed');
  }
}
