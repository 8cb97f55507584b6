/**
 * Requests of the peer that are being answered. Whoever answers has until the deadline; then the answer
 * is given for him, and his own, when it comes, is dropped. The time limit is the same for all, so they
 * fall due in the order they came.
 */
import type { Nanos } from '#base/units';

/** What a pending request is answered with when time is up. */
export type Expired = (now: Nanos) => void;

interface Access {
  readonly deadlineNs: number;
  readonly expired: Expired;
}

export class PendingAccesses {
  readonly #timeoutNs: number;
  readonly #limit: number;
  readonly #accesses = new Map<number, Access>();
  #next = 0;
  /** Answered for whoever did not. */
  expired = 0;
  /** Answers that came after that, or after the connection had gone. */
  late = 0;

  constructor(timeoutNs: number, limit: number) {
    this.#timeoutNs = timeoutNs;
    this.#limit = limit;
  }

  get isFull(): boolean {
    return this.#accesses.size >= this.#limit;
  }

  /** A number for `take`. */
  add(now: Nanos, expired: Expired): number {
    const key = this.#next++;
    this.#accesses.set(key, { deadlineNs: now + this.#timeoutNs, expired });
    return key;
  }

  /** Whether `key` is still to be answered: true once, and never after its deadline. */
  take(key: number): boolean {
    if (this.#accesses.delete(key)) return true;
    this.late++;
    return false;
  }

  nextDeadlineNs(): number {
    for (const { deadlineNs } of this.#accesses.values()) return deadlineNs;
    return Infinity;
  }

  tick(now: Nanos): void {
    for (const [key, access] of this.#accesses) {
      if (access.deadlineNs > now) return;
      this.#accesses.delete(key);
      this.expired++;
      access.expired(now);
    }
  }

  /** The connection is gone: what is answered now is late. */
  abort(): void {
    this.#accesses.clear();
  }
}
