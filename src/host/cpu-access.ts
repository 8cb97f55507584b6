/**
 * One access of the CPU and where it waits. An access is split into one or more requests; its record
 * is pooled, so that a load or store allocates nothing.
 */
import { assert } from '#base/assert';
import type { Nanos } from '#base/units';

/**
 * How a CPU access ended: `OK`, or the bits of all that went wrong in its requests. What a load could
 * not get reads all ones.
 */
export const AccessStatus = {
  OK: 0,
  /** Unsupported request, or nothing there: no window, no link, memory decode of the port off. */
  UNSUPPORTED: 1,
  /** A config access that was answered "retry": reads of the vendor ID at once, others in the end. */
  RETRY: 2,
  ABORTED: 4,
  TIMEOUT: 8,
  POISONED: 16,
} as const;
/** A sum of `AccessStatus` bits. */
export type AccessStatus = number;

export type ReadDone = (now: Nanos, value: number, status: AccessStatus) => void;
export type AccessDone = (now: Nanos, status: AccessStatus) => void;

export const AccessKind = { READ: 0, WRITE: 1, CONFIG_READ: 2, CONFIG_WRITE: 3 } as const;
export type AccessKind = (typeof AccessKind)[keyof typeof AccessKind];

export class Access {
  kind: AccessKind = AccessKind.READ;
  virtualSlot = 0;
  /** Place in the order the CPU made its accesses in. */
  order = 0;
  /** First byte of a memory access. */
  address = 0;
  /** Of a config access. */
  bdf = 0;
  register = 0;
  byteEnables = 0;
  /** Until when a config access answered "retry" is made again. */
  retryUntilNs = 0;
  /** Bytes in all; 4 for a config access. */
  bytes = 0;
  /** Where data goes to or comes from: `bytes` from its start. Small accesses use `scratch`. */
  buffer: Uint8Array;
  /** Bytes for which requests have been made. */
  issued = 0;
  /** Requests without a completion. */
  outstanding = 0;
  /** `AccessStatus` bits; several requests of one access can fail in several ways. */
  status = 0;
  readDone: ReadDone | undefined = undefined;
  done: AccessDone | undefined = undefined;
  readonly scratch = new Uint8Array(4);

  constructor() {
    this.buffer = this.scratch;
  }

  scratchValue(): number {
    const bytes = this.scratch;
    return (
      ((bytes[0] as number) |
        ((bytes[1] as number) << 8) |
        ((bytes[2] as number) << 16) |
        ((bytes[3] as number) << 24)) >>>
      0
    );
  }

  setScratch(value: number): void {
    const bytes = this.scratch;
    bytes[0] = value;
    bytes[1] = value >>> 8;
    bytes[2] = value >>> 16;
    bytes[3] = value >>> 24;
  }
}

export class AccessPool {
  readonly #free: Access[] = [];

  take(kind: AccessKind, virtualSlot: number): Access {
    const access = this.#free.pop() ?? new Access();
    access.kind = kind;
    access.virtualSlot = virtualSlot;
    access.issued = 0;
    access.outstanding = 0;
    access.status = AccessStatus.OK;
    access.buffer = access.scratch;
    return access;
  }

  give(access: Access): void {
    access.readDone = undefined;
    access.done = undefined;
    access.buffer = access.scratch;
    this.#free.push(access);
  }
}

/** A first-in first-out queue in a ring that grows, and never allocates once it has. */
export class AccessQueue {
  #ring: (Access | undefined)[] = new Array<Access | undefined>(16).fill(undefined);
  #head = 0;
  #size = 0;

  get size(): number {
    return this.#size;
  }

  get head(): Access | undefined {
    return this.#size === 0 ? undefined : this.#ring[this.#head];
  }

  push(access: Access): void {
    if (this.#size === this.#ring.length) {
      const grown = new Array<Access | undefined>(2 * this.#size).fill(undefined);
      for (let index = 0; index < this.#size; index++) {
        grown[index] = this.#ring[(this.#head + index) & (this.#size - 1)];
      }
      this.#ring = grown;
      this.#head = 0;
    }
    this.#ring[(this.#head + this.#size) & (this.#ring.length - 1)] = access;
    this.#size++;
  }

  shift(): Access {
    const access = this.head;
    assert(access !== undefined, 'the queue holds something');
    this.#ring[this.#head] = undefined;
    this.#head = (this.#head + 1) & (this.#ring.length - 1);
    this.#size--;
    return access;
  }
}
