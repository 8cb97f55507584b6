/**
 * `UnixFdSocket` through koffi. `Connection` sends and receives with one `msghdr` each, laid out once;
 * `Listener` accepts. Structures are those of 64-bit Linux (bits/types/struct_msghdr.h).
 */
import { closeSync, lstatSync, unlinkSync } from 'node:fs';
import { assert } from '#base/assert';
import { DxpuError } from '#base/errors';
import {
  AF_UNIX,
  addressOf,
  checked,
  EAGAIN,
  ECONNREFUSED,
  ECONNRESET,
  EINTR,
  EMFILE,
  ENFILE,
  EPIPE,
  lastErrno,
  libc,
  MSG_CMSG_CLOEXEC,
  MSG_CTRUNC,
  MSG_DONTWAIT,
  MSG_NOSIGNAL,
  Poll,
  SCM_RIGHTS,
  SHUT_RDWR,
  SOCK_CLOEXEC,
  SOCK_NONBLOCK,
  SOCK_STREAM,
  SOL_SOCKET,
  systemError,
} from './libc.ts';
import { connectError, listenError, SOCKADDR_BYTES, sockaddr } from './socket-path.ts';
import {
  MAX_FDS,
  PEER_CLOSED,
  type SocketWatcher,
  type UnixFdListener,
  type UnixFdSocket,
  type UnixFdTransport,
  WOULD_BLOCK,
} from './unix-fd-socket.ts';

const BACKLOG = 8;
/** The replies to most accesses, and to nearly all else. */
const SHORT_BYTES = 64;
const DRAIN_BYTES = 65_536;
/** How long not to accept when this process has no descriptor left. */
const NO_FDS_PAUSE_MS = 100;
const TYPE = SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC;

export const koffiTransport: UnixFdTransport = {
  listen(path, onConnection) {
    return new Listener(path, onConnection);
  },

  connect(path) {
    const fd = checked('socket', libc().socket(AF_UNIX, TYPE, 0));
    if (libc().connect(fd, addressOf(sockaddr(path)), SOCKADDR_BYTES) === 0) {
      return new Connection(fd);
    }
    const errno = lastErrno();
    closeSync(fd);
    throw connectError(path, errno);
  },
};

/** `struct msghdr` with one `iovec` and room for descriptors, in one buffer that stays where it is. */
class MessageHeader {
  static readonly CONTROL = 72;
  static readonly CONTROL_FDS = MessageHeader.CONTROL + 16;
  readonly address: number;
  readonly view: DataView;
  readonly #control: number;
  #bytes: Uint8Array | undefined;
  #bytesAt = 0;

  constructor() {
    const buffer = new ArrayBuffer(MessageHeader.CONTROL_FDS + 4 * MAX_FDS + 4);
    this.view = new DataView(buffer);
    this.address = addressOf(buffer);
    this.#control = this.address + MessageHeader.CONTROL;
    // msg_iov at 16, msg_iovlen at 24; the iovec follows the msghdr of 56 bytes.
    this.#set(16, this.address + 56);
    this.#set(24, 1);
  }

  /** Points at `count` bytes of memory, and at `controlBytes` of room for descriptors. */
  point(bytes: Uint8Array, offset: number, count: number, controlBytes: number): void {
    if (bytes !== this.#bytes) {
      this.#bytes = bytes;
      this.#bytesAt = addressOf(bytes.buffer) + bytes.byteOffset;
    }
    this.#set(56, this.#bytesAt + offset);
    this.#set(64, count);
    // msg_control at 32, msg_controllen at 40, msg_flags at 48.
    this.#set(32, controlBytes === 0 ? 0 : this.#control);
    this.#set(40, controlBytes);
    this.view.setInt32(48, 0, true);
  }

  get controlBytes(): number {
    return this.view.getUint32(40, true);
  }

  get flags(): number {
    return this.view.getInt32(48, true);
  }

  #set(at: number, value: number): void {
    this.view.setUint32(at, value >>> 0, true);
    this.view.setUint32(at + 4, Math.floor(value / 2 ** 32), true);
  }
}

class Connection implements UnixFdSocket {
  readonly #fd: number;
  readonly #in = new MessageHeader();
  readonly #out = new MessageHeader();
  /** Short messages go from here: the address of each would take longer to find than a copy. */
  readonly #short = new Uint8Array(new ArrayBuffer(SHORT_BYTES));
  #poll: Poll | undefined;
  #closed = false;
  fdsLost = false;

  constructor(fd: number) {
    this.#fd = fd;
  }

  receive(into: Uint8Array, offset: number, count: number, fds: number[]): number {
    assert(offset + count <= into.length && !this.#closed, 'room to read into');
    const header = this.#in;
    header.point(into, offset, count, 16 + 4 * MAX_FDS);
    const got = this.#call(libc().recvmsg, header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC, 'receive');
    this.fdsLost = false;
    if (got < 0) return got;
    this.fdsLost = (header.flags & MSG_CTRUNC) !== 0;
    const end = MessageHeader.CONTROL + header.controlBytes;
    // cmsghdr: length (8, itself included), level (4), type (4), data; the next at a multiple of 8.
    for (let at = MessageHeader.CONTROL; at + 16 <= end; ) {
      const length = header.view.getUint32(at, true);
      if (length < 16) break;
      const isRights =
        header.view.getInt32(at + 8, true) === SOL_SOCKET &&
        header.view.getInt32(at + 12, true) === SCM_RIGHTS;
      for (let fd = at + 16; isRights && fd + 4 <= at + length; fd += 4) {
        fds.push(header.view.getInt32(fd, true));
      }
      at += (length + 7) & ~7;
    }
    return got;
  }

  send(bytes: Uint8Array, offset: number, fds: readonly number[]): number {
    assert(offset < bytes.length && fds.length <= MAX_FDS && !this.#closed, 'something to send');
    const header = this.#out;
    const length = 16 + 4 * fds.length;
    const count = bytes.length - offset;
    const controlBytes = fds.length === 0 ? 0 : length;
    if (count <= SHORT_BYTES) {
      for (let at = 0; at < count; at++) this.#short[at] = bytes[offset + at] as number;
      header.point(this.#short, 0, count, controlBytes);
    } else {
      header.point(bytes, offset, count, controlBytes);
    }
    if (fds.length > 0) {
      const { view } = header;
      view.setUint32(MessageHeader.CONTROL, length, true);
      view.setUint32(MessageHeader.CONTROL + 4, 0, true);
      view.setInt32(MessageHeader.CONTROL + 8, SOL_SOCKET, true);
      view.setInt32(MessageHeader.CONTROL + 12, SCM_RIGHTS, true);
      fds.forEach((fd, at) => view.setInt32(MessageHeader.CONTROL_FDS + 4 * at, fd, true));
    }
    return this.#call(libc().sendmsg, header, MSG_DONTWAIT | MSG_NOSIGNAL, 'send');
  }

  watch(readable: boolean, writable: boolean, watcher: SocketWatcher): void {
    const onEvents = (canRead: boolean, canWrite: boolean, failed: boolean): void => {
      if (failed) {
        watcher.failed();
        return;
      }
      // Either call may close the socket.
      if (canWrite && !this.#closed) watcher.writable();
      if (canRead && !this.#closed) watcher.readable();
    };
    if (this.#poll === undefined) this.#poll = new Poll(this.#fd, readable, writable, onEvents);
    else this.#poll.change(readable, writable, onEvents);
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#poll?.close();
    this.#drain();
    closeSync(this.#fd);
  }

  /**
   * Takes what has come and was not received. A peer whose bytes nobody took sees an error in place of the end of
   * the stream, and QEMU 11.1.3 does not survive that error.
   */
  #drain(): void {
    // From here on the peer can send no more.
    libc().shutdown(this.#fd, SHUT_RDWR);
    const rest = new Uint8Array(DRAIN_BYTES);
    // Without room for descriptors, so that those that come are closed on the way.
    this.#in.point(rest, 0, rest.length, 0);
    while (libc().recvmsg(this.#fd, this.#in.address, MSG_DONTWAIT) > 0) {
      this.#in.point(rest, 0, rest.length, 0);
    }
  }

  #call(
    call: (fd: number, header: number, flags: number) => number,
    header: MessageHeader,
    flags: number,
    what: string,
  ): number {
    for (;;) {
      const result = call(this.#fd, header.address, flags);
      if (result >= 0) return result;
      const errno = lastErrno();
      if (errno === EAGAIN) return WOULD_BLOCK;
      // It had not read all that was sent to it: an end as any other.
      if (errno === ECONNRESET || errno === EPIPE) {
        throw new DxpuError('unavailable', PEER_CLOSED, { details: { errno } });
      }
      if (errno !== EINTR) throw systemError(what, errno);
    }
  }
}

class Listener implements UnixFdListener {
  readonly #path: string;
  readonly #fd: number;
  readonly #inode: number;
  readonly #poll: Poll;
  readonly #onConnection: (socket: UnixFdSocket) => void;
  #pause: NodeJS.Timeout | undefined;

  constructor(path: string, onConnection: (socket: UnixFdSocket) => void) {
    this.#path = path;
    this.#onConnection = onConnection;
    const address = sockaddr(path);
    removeStale(path, address);
    this.#fd = checked('socket', libc().socket(AF_UNIX, TYPE, 0));
    try {
      const mask = libc().umask(0o177);
      const bound = libc().bind(this.#fd, addressOf(address), SOCKADDR_BYTES);
      const errno = bound < 0 ? lastErrno() : 0;
      libc().umask(mask);
      if (errno !== 0) throw listenError(path, errno);
      this.#inode = lstatSync(path).ino;
      checked(`listen at ${path}`, libc().listen(this.#fd, BACKLOG));
    } catch (error) {
      closeSync(this.#fd);
      throw error;
    }
    this.#poll = new Poll(this.#fd, true, false, this.#accept);
  }

  readonly #accept = (): void => {
    const fd = libc().accept4(this.#fd, 0, 0, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0) {
      this.#onConnection(new Connection(fd));
      return;
    }
    const errno = lastErrno();
    if (errno !== EMFILE && errno !== ENFILE) return;
    // The connection stays where it is; without a pause we would be told of it all the time.
    this.#poll.change(false, false, this.#accept);
    this.#pause = setTimeout(() => this.#poll.change(true, false, this.#accept), NO_FDS_PAUSE_MS);
  };

  close(): void {
    clearTimeout(this.#pause);
    this.#poll.close();
    closeSync(this.#fd);
    const now = lstatSync(this.#path, { throwIfNoEntry: false });
    if (now?.isSocket() === true && now.ino === this.#inode) unlinkSync(this.#path);
  }
}

function removeStale(path: string, address: ArrayBuffer): void {
  const stat = lstatSync(path, { throwIfNoEntry: false });
  if (stat === undefined) return;
  if (!stat.isSocket()) {
    throw new DxpuError(
      'already_exists',
      `${path} is there and is not a socket: name another path, or remove it`,
    );
  }
  const fd = checked('socket', libc().socket(AF_UNIX, TYPE, 0));
  const result = libc().connect(fd, addressOf(address), SOCKADDR_BYTES);
  const refused = result < 0 && lastErrno() === ECONNREFUSED;
  closeSync(fd);
  if (!refused) {
    throw new DxpuError(
      'already_exists',
      `somebody listens at ${path} already: end that process, or name another path`,
    );
  }
  unlinkSync(path);
}
