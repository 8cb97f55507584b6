/** Descriptors of this Linux system: mapping, eventfds. */
import { closeSync, fstatSync, ftruncateSync, readlinkSync, readSync, writeSync } from 'node:fs';
import { assert } from '#base/assert';
import type { EventFd, FdInfo, FdOperations, MappedMemory } from './fd-operations.ts';
import {
  checked,
  EFD_NONBLOCK_CLOEXEC,
  errnoName,
  F_ADD_SEALS,
  F_DUPFD_CLOEXEC,
  F_GET_SEALS,
  F_GETFL,
  F_SEAL_SHRINK,
  F_SETFL,
  lastErrno,
  libc,
  MAP_ANONYMOUS,
  MAP_FIXED,
  MAP_NORESERVE,
  MAP_PRIVATE,
  MAP_SHARED,
  memoryAt,
  MFD_CLOEXEC_SEALING,
  O_ACCMODE,
  O_NONBLOCK,
  Poll,
  PROT_READ_WRITE,
} from './libc.ts';
import { Errno, Refusal } from './refusal.ts';

const PAGE_BYTES = 4096;
/** Node 20 has no array above 4 GiB, and koffi ends the process when asked for one. */
const WINDOW_BYTES = 2 ** 30;

export const systemFds: FdOperations = {
  close: (fd) => closeSync(fd),
  duplicate: (fd) => checked('duplicate', libc().fcntl(fd, F_DUPFD_CLOEXEC, 0)),
  inspect,
  map,
  read(fd, position, into, at, count) {
    return copied(count, (done) => readSync(fd, into, at + done, count - done, position + done));
  },
  write(fd, position, from, at, count) {
    return copied(count, (done) => writeSync(fd, from, at + done, count - done, position + done));
  },
  adoptEventFd: (fd) => new SystemEventFd(fd),
  createEventFd: () =>
    new SystemEventFd(checked('eventfd', libc().eventfd(0, EFD_NONBLOCK_CLOEXEC))),
};

/**
 * A new file in memory, of `sizeBytes` zeros; with `sealed` it cannot become shorter. The caller closes
 * it. Throws `DxpuError` `resource_exhausted`.
 */
export function createMemoryFile(name: string, sizeBytes: number, sealed: boolean): number {
  const fd = checked('memfd_create', libc().memfd_create(name, MFD_CLOEXEC_SEALING));
  try {
    ftruncateSync(fd, sizeBytes);
    if (sealed) checked('fcntl', libc().fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK));
    return fd;
  } catch (error) {
    closeSync(fd);
    throw error;
  }
}

function inspect(fd: number): FdInfo {
  const stat = fstatSync(fd);
  const opened = libc().fcntl(fd, F_GETFL, 0) & O_ACCMODE;
  const identity = `${stat.dev}:${stat.ino}:${opened}`;
  if (stat.isFile()) {
    const seals = libc().fcntl(fd, F_GET_SEALS, 0);
    return {
      kind: 'memory',
      identity,
      sizeBytes: stat.size,
      inMemory: seals >= 0,
      keepsSize: seals >= 0 && (seals & F_SEAL_SHRINK) !== 0,
    };
  }
  const kind = isEventFd(fd) ? 'eventfd' : 'other';
  return { kind, identity, sizeBytes: 0, inMemory: false, keepsSize: false };
}

function isEventFd(fd: number): boolean {
  try {
    return readlinkSync(`/proc/self/fd/${fd}`) === 'anon_inode:[eventfd]';
  } catch {
    // Without /proc nobody can tell; then there are only messages.
    return false;
  }
}

function map(
  fd: number,
  fileOffset: number,
  sizeBytes: number,
  writable: boolean,
): MappedMemory | Refusal {
  if (fileOffset % PAGE_BYTES !== 0) {
    return new Refusal(Errno.EINVAL, `file offset ${fileOffset} is not at a page`);
  }
  // Without write access still mapped so, but privately: a stray write must not end this process.
  const flags = writable ? MAP_SHARED : MAP_PRIVATE | MAP_NORESERVE;
  const at = Number(libc().mmap(0, sizeBytes, PROT_READ_WRITE, flags, fd, fileOffset));
  if (at > Number.MAX_SAFE_INTEGER) {
    const errno = lastErrno();
    return new Refusal(errno, `the memory cannot be mapped: ${errnoName(errno)}`);
  }
  return new Mapping(at, sizeBytes);
}

class Mapping implements MappedMemory {
  readonly windowBytes = WINDOW_BYTES;
  readonly #at: number;
  readonly #sizeBytes: number;
  #windows: Uint8Array[] = [];

  constructor(at: number, sizeBytes: number) {
    this.#at = at;
    this.#sizeBytes = sizeBytes;
    const reserved = { at, sizeBytes, windows: Math.ceil(sizeBytes / WINDOW_BYTES) };
    for (let offset = 0; offset < sizeBytes; offset += WINDOW_BYTES) {
      const buffer = memoryAt(at + offset, Math.min(WINDOW_BYTES, sizeBytes - offset));
      abandoned.register(buffer, reserved);
      this.#windows.push(new Uint8Array(buffer));
    }
  }

  get windows(): readonly Uint8Array[] {
    return this.#windows;
  }

  release(): void {
    if (this.#windows.length === 0) return;
    this.#windows = [];
    const flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
    const at = libc().mmap(this.#at, this.#sizeBytes, PROT_READ_WRITE, flags, -1, 0);
    // Without this the barrier would not hold, and there is no other way to make it.
    assert(Number(at) === this.#at, 'memory is taken back in place');
  }
}

/** Address ranges are given back only once no array shows them, released or forgotten. */
const abandoned = new FinalizationRegistry<{ at: number; sizeBytes: number; windows: number }>(
  (reserved) => {
    reserved.windows--;
    if (reserved.windows === 0) libc().munmap(reserved.at, reserved.sizeBytes);
  },
);

const ONE = new Uint8Array(new BigUint64Array([1n]).buffer);

class SystemEventFd implements EventFd {
  readonly fd: number;
  #poll: Poll | undefined;
  #closed = false;

  constructor(fd: number) {
    this.fd = fd;
    const flags = libc().fcntl(fd, F_GETFL, 0);
    if ((flags & O_NONBLOCK) === 0) libc().fcntl(fd, F_SETFL, flags | O_NONBLOCK);
  }

  signal(): void {
    if (this.#closed) return;
    try {
      writeSync(this.fd, ONE);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') throw error;
    }
  }

  watch(onSignal: () => void): void {
    const count = new Uint8Array(8);
    this.#poll?.close();
    this.#poll = new Poll(this.fd, true, false, () => {
      try {
        readSync(this.fd, count);
      } catch (error) {
        // Somebody else who has it was faster.
        if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') throw error;
        return;
      }
      onSignal();
    });
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#poll?.close();
    closeSync(this.fd);
  }
}

/** Calls `step(done)` until `count` bytes are done; false when it gets no further. */
function copied(count: number, step: (done: number) => number): boolean {
  for (let done = 0; done < count; ) {
    let went: number;
    try {
      went = step(done);
    } catch {
      return false;
    }
    if (went <= 0) return false;
    done += went;
  }
  return true;
}
