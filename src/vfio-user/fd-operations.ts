/**
 * What can be done with file descriptors that came over a socket. The state machines do it through this
 * interface, so that they hold no system call; `system-fds.ts` implements it. A descriptor has one owner,
 * who closes it.
 */
import type { Refusal } from './refusal.ts';

export interface FdInfo {
  /** `memory`: a regular file, a memfd among them. */
  readonly kind: 'memory' | 'eventfd' | 'other';
  /** The same for descriptors that can stand for each other: of one file, opened for the same. */
  readonly identity: string;
  readonly sizeBytes: number;
  /** In memory of the kernel (memfd, tmpfs, hugetlbfs), so that reading it waits for nobody. */
  readonly inMemory: boolean;
  /** Nobody can make it shorter, so that mapped pages of it stay. */
  readonly keepsSize: boolean;
}

/** Part of a file, mapped. */
export interface MappedMemory {
  /** The bytes in order, in arrays of `windowBytes`; the last may be shorter. */
  readonly windows: readonly Uint8Array[];
  readonly windowBytes: number;
  /**
   * Ends the mapping: from here on the arrays show private zeros instead, and what is written to them
   * reaches nobody. So a forgotten array neither crashes nor leaks.
   */
  release(): void;
}

/** An eventfd, owned. */
export interface EventFd {
  readonly fd: number;
  /** Adds 1. Does nothing when the counter is full, since then the reader has been told. */
  signal(): void;
  /** Calls `onSignal` each time it has been signalled, once for several that came together. */
  watch(onSignal: () => void): void;
  close(): void;
}

export interface FdOperations {
  close(fd: number): void;
  /** Another descriptor of the same; the caller's. Throws `DxpuError` `resource_exhausted`. */
  duplicate(fd: number): number;
  inspect(fd: number): FdInfo;
  /**
   * Maps `sizeBytes` at `fileOffset`, shared with whoever has the file. Without `writable` what is
   * written stays private. The descriptor may be closed afterwards.
   */
  map(fd: number, fileOffset: number, sizeBytes: number, writable: boolean): MappedMemory | Refusal;
  /** Copies file bytes from `position` on. Returns false if there are fewer than `count`. */
  read(fd: number, position: number, into: Uint8Array, at: number, count: number): boolean;
  write(fd: number, position: number, from: Uint8Array, at: number, count: number): boolean;
  /** Takes over `fd`, an eventfd, and makes it one that does not block. */
  adoptEventFd(fd: number): EventFd;
  createEventFd(): EventFd;
}

export function closeAll(operations: FdOperations, fds: Iterable<number>): void {
  for (const fd of fds) operations.close(fd);
}
