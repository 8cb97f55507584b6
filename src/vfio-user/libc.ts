/**
 * The system calls that Node does not have, through koffi. Memory handed to them is always an
 * ArrayBuffer of its own, whose address never changes, and every poll handle is kept referenced here:
 * a collected one stops polling.
 */
import koffi, { address, errno, load, node } from 'koffi';
import { assert } from '#base/assert';
import { DxpuError, type DxpuErrorCode } from '#base/errors';

// bits/socket.h, bits/fcntl-linux.h, bits/mman-linux.h, asm-generic/errno.h: alike on x86-64 and arm64.
export const AF_UNIX = 1;
export const SOCK_STREAM = 1;
export const SHUT_RDWR = 2;
export const SOCK_NONBLOCK = 0o4000;
export const SOCK_CLOEXEC = 0o2000000;
export const SOL_SOCKET = 1;
export const SCM_RIGHTS = 1;
export const MSG_CTRUNC = 0x8;
export const MSG_DONTWAIT = 0x40;
export const MSG_NOSIGNAL = 0x4000;
export const MSG_CMSG_CLOEXEC = 0x4000_0000;
export const PROT_READ_WRITE = 3;
export const MAP_SHARED = 0x01;
export const MAP_PRIVATE = 0x02;
export const MAP_FIXED = 0x10;
export const MAP_ANONYMOUS = 0x20;
export const MAP_NORESERVE = 0x4000;
export const F_GETFL = 3;
export const F_SETFL = 4;
export const F_DUPFD_CLOEXEC = 1030;
export const F_ADD_SEALS = 1033;
export const F_GET_SEALS = 1034;
export const F_SEAL_SHRINK = 0x2;
export const O_ACCMODE = 3;
export const O_NONBLOCK = 0o4000;
export const EFD_NONBLOCK_CLOEXEC = 0o2004000;
export const MFD_CLOEXEC_SEALING = 3;
export const EINTR = 4;
export const EAGAIN = 11;
export const EPIPE = 32;
export const ECONNRESET = 104;
export const EMFILE = 24;
export const ENFILE = 23;
export const ECONNREFUSED = 111;

type IntCall = (...args: readonly (number | bigint | string | null)[]) => number;

interface Libc {
  readonly socket: IntCall;
  readonly bind: IntCall;
  readonly listen: IntCall;
  readonly accept4: IntCall;
  readonly connect: IntCall;
  readonly shutdown: IntCall;
  readonly sendmsg: IntCall;
  readonly recvmsg: IntCall;
  readonly mmap: (...args: readonly (number | bigint)[]) => bigint | number;
  readonly munmap: IntCall;
  readonly fcntl: IntCall;
  readonly eventfd: IntCall;
  readonly memfd_create: IntCall;
  readonly umask: IntCall;
}

let loaded: Libc | undefined;

/** The functions, loaded at the first call. Throws `DxpuError` `unimplemented` off Linux. */
export function libc(): Libc {
  loaded ??= loadLibc();
  return loaded;
}

function loadLibc(): Libc {
  if (process.platform !== 'linux') {
    throw new DxpuError(
      'unimplemented',
      'vfio-user needs Linux: descriptors are passed on sockets',
    );
  }
  const library = load('libc.so.6');
  const declare = (text: string) => library.func(text) as IntCall;
  return {
    socket: declare('int socket(int, int, int)'),
    bind: declare('int bind(int, uintptr_t, unsigned int)'),
    listen: declare('int listen(int, int)'),
    accept4: declare('int accept4(int, uintptr_t, uintptr_t, int)'),
    connect: declare('int connect(int, uintptr_t, unsigned int)'),
    shutdown: declare('int shutdown(int, int)'),
    sendmsg: declare('int64_t sendmsg(int, uintptr_t, int)'),
    recvmsg: declare('int64_t recvmsg(int, uintptr_t, int)'),
    mmap: library.func('uintptr_t mmap(uintptr_t, size_t, int, int, int, int64_t)'),
    munmap: declare('int munmap(uintptr_t, size_t)'),
    // The third argument of those used here is an int, which is passed alike.
    fcntl: declare('int fcntl(int, int, int)'),
    eventfd: declare('int eventfd(unsigned int, int)'),
    memfd_create: declare('int memfd_create(const char *, unsigned int)'),
    umask: declare('int umask(int)'),
  };
}

/** The errno of the last call; ask before making another. */
export function lastErrno(): number {
  return errno();
}

/** `ENOENT` for 2; the number as text for one that koffi does not know. */
export function errnoName(value: number): string {
  const entry = Object.entries(koffi.os.errno).find(([, number]) => number === value);
  return entry === undefined ? `errno ${value}` : entry[0];
}

const CODES: Readonly<Record<string, DxpuErrorCode>> = {
  ENOENT: 'not_found',
  EACCES: 'permission_denied',
  EPERM: 'permission_denied',
  EADDRINUSE: 'already_exists',
  EMFILE: 'resource_exhausted',
  ENFILE: 'resource_exhausted',
  ENOMEM: 'resource_exhausted',
};

/** The error of a failed call: `what: ENOENT`. */
export function systemError(what: string, value: number): DxpuError {
  const name = errnoName(value);
  return new DxpuError(CODES[name] ?? 'unavailable', `${what}: ${name}`, {
    details: { errno: value },
  });
}

/** The result of a call, which must not have failed. */
export function checked(what: string, result: number): number {
  if (result < 0) throw systemError(what, lastErrno());
  return result;
}

/** Where an ArrayBuffer is, for as long as it lives. */
export function addressOf(buffer: ArrayBufferLike): number {
  return Number(address(buffer));
}

/** The memory at `at`, as an ArrayBuffer that does not own it. At most 1 GiB: V8 bounds its arrays. */
export function memoryAt(at: number, sizeBytes: number): ArrayBuffer {
  assert(sizeBytes > 0 && sizeBytes <= 2 ** 30, 'a view of 1 byte to 1 GiB');
  return koffi.view(BigInt(at), sizeBytes);
}

const polls = new Set<Poll>();

/** Watches one descriptor until `close`, which must come before the descriptor's own. */
export class Poll {
  readonly #handle: node.PollHandle;

  constructor(fd: number, readable: boolean, writable: boolean, onEvents: PollCallback) {
    this.#handle = node.poll(fd, { readable, writable }, calledBack(onEvents));
    polls.add(this);
  }

  change(readable: boolean, writable: boolean, onEvents: PollCallback): void {
    this.#handle.stop();
    if (readable || writable) {
      this.#handle.start({ readable, writable }, calledBack(onEvents));
    }
  }

  close(): void {
    if (polls.delete(this)) this.#handle.close();
  }
}

/** After `failed` there are no more calls until `change`; the descriptor itself says what is wrong. */
export type PollCallback = (readable: boolean, writable: boolean, failed: boolean) => void;

interface PollEvents {
  readonly readable: boolean;
  readonly writable: boolean;
}

function calledBack(onEvents: PollCallback): (events: PollEvents) => void {
  // The declaration of koffi 3.3.4 leaves the first argument out.
  return ((status: number, events: PollEvents) => {
    try {
      onEvents(events.readable, events.writable, status < 0);
    } catch (error) {
      // A bug of ours: not into the native caller, which could not report it.
      process.nextTick(() => {
        throw error;
      });
    }
  }) as unknown as (events: PollEvents) => void;
}
