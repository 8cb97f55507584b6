/**
 * What is wrong with a message: an errno for the peer, and words for whoever reads the log. A refusal is
 * a peer's fault and therefore a value; nothing is thrown for it.
 */

import type { Nanos } from '#base/units';

/** Linux errno values (asm-generic/errno.h), as they go over the wire. */
export const Errno = {
  ENOENT: 2,
  EIO: 5,
  EBUSY: 16,
  EEXIST: 17,
  EPERM: 1,
  EFAULT: 14,
  EINVAL: 22,
  ENOSPC: 28,
  EPROTO: 71,
  EOPNOTSUPP: 95,
  ECONNRESET: 104,
  ETIMEDOUT: 110,
} as const;

export type Errno = (typeof Errno)[keyof typeof Errno];

export class Refusal {
  readonly errno: number;
  readonly reason: string;

  constructor(errno: number, reason: string) {
    this.errno = errno;
    this.reason = reason;
  }
}

/**
 * Called once, maybe within the call that began what it is the end of. `refused` undefined: all of it
 * has been done.
 */
export type Done = (now: Nanos, refused: Refusal | undefined) => void;

/** `EINVAL (22)`, or the bare number of an errno without a name here. */
export function errnoText(errno: number): string {
  const entry = Object.entries(Errno).find(([, value]) => value === errno);
  return entry === undefined ? `errno ${errno}` : `${entry[0]} (${errno})`;
}
