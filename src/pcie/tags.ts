/**
 * The requester's side of non-posted requests. A `TagPool` hands out tags; a `CompletionTracker` knows
 * which request each outstanding tag stands for and judges every completion against it. The tracker
 * gives a tag back to its pool when the request is over, so a caller only ever takes them:
 *
 *   tag = pool.alloc() → tracker.open(tag, …) → send → accept(completion) … → DONE or FAILED
 *
 * A request that timed out keeps its tag until its completion has come after all or `abort` ends the
 * session: reused earlier, the late completion would answer the wrong request.
 */
import { assert } from '#base/assert';
import type { Nanos } from '#base/units';
import { CompletionStatus, TlpKind, type Tlp } from './tlp.ts';

const MAX_TAGS = 1024;

/**
 * Tags for up to 768 outstanding requests. Up to 256 they are 8-bit tags from 0; more are 10-bit tags,
 * which start at 256, since Tag[9:8] of a 10-bit requester must not be 00 (2.2.6.2). The tag given
 * back longest ago is handed out first.
 */
export class TagPool {
  readonly limit: number;
  readonly firstTag: number;
  readonly #ring: Uint16Array;
  readonly #isFree = new Uint8Array(MAX_TAGS);
  #head = 0;
  #available: number;

  constructor(limit: number) {
    assert(Number.isInteger(limit) && limit >= 1 && limit <= 768, `not a tag limit: ${limit}`);
    this.limit = limit;
    this.firstTag = limit <= 256 ? 0 : 256;
    this.#ring = new Uint16Array(limit);
    for (let i = 0; i < limit; i++) {
      this.#ring[i] = this.firstTag + i;
      this.#isFree[this.firstTag + i] = 1;
    }
    this.#available = limit;
  }

  get available(): number {
    return this.#available;
  }

  /** A tag nobody holds, or −1 when all are outstanding. */
  alloc(): number {
    if (this.#available === 0) return -1;
    const tag = this.#ring[this.#head] as number;
    this.#head = this.#head + 1 === this.limit ? 0 : this.#head + 1;
    this.#available--;
    this.#isFree[tag] = 0;
    return tag;
  }

  /** Gives a tag back. It must be one that `alloc` handed out and that is still held. */
  free(tag: number): void {
    const held =
      tag >= this.firstTag && tag < this.firstTag + this.limit && this.#isFree[tag] === 0;
    assert(held, 'a tag that is freed is not held');
    let tail = this.#head + this.#available;
    if (tail >= this.limit) tail -= this.limit;
    this.#ring[tail] = tag;
    this.#available++;
    this.#isFree[tag] = 1;
  }
}

/** What a request expects, which decides what `accept` checks. */
export const Expect = {
  /** A memory read: data in one or more completions, at the right lower addresses. */
  MEMORY_DATA: 0,
  /** Config and I/O reads, AtomicOps: all data in one completion; its lower address says nothing. */
  DATA: 1,
  /** Config and I/O writes: one completion without data. */
  NO_DATA: 2,
} as const;
export type Expect = (typeof Expect)[keyof typeof Expect];

/** What `accept` says of a completion. */
export const Accepted = {
  /** Part of a request; more completions follow. `offset`, `bytes`, `payloadOffset`, `cookie` are set. */
  PART: 0,
  /** As PART, and the last: the request is over, its tag free. */
  DONE: 1,
  /** A status other than SC: the request is over, its tag free. `cookie` and `status` are set. */
  FAILED: 2,
  /** No request has this tag: an unexpected completion (2.3.2). */
  UNEXPECTED: 3,
  /**
   * The tag is right, but byte count, lower address or presence of data contradict the request. Dropped:
   * the request stays open and will time out.
   */
  MISMATCH: 4,
  /** Of a request that had timed out; dropped. Its tag becomes free with the last of them. */
  LATE: 5,
} as const;
export type Accepted = (typeof Accepted)[keyof typeof Accepted];

const CLOSED = 0;
const OPEN = 1;
const TIMED_OUT = 2;
const NONE = -1;

/** Everything is O(1) per TLP and allocates nothing after construction. */
export class CompletionTracker {
  /** Set by `accept`: the cookie of the request. */
  cookie = 0;
  /** Set by `accept`: where in the request these bytes belong, from its first byte. */
  offset = 0;
  /** Set by `accept`: how many bytes of the request this completion brings. */
  bytes = 0;
  /** Set by `accept`: where the first of them lies in `tlp.payload`. */
  payloadOffset = 0;
  /** Set by `accept`: status of the completion. */
  status: CompletionStatus = CompletionStatus.SC;

  readonly #pool: TagPool | undefined;
  readonly #state = new Uint8Array(MAX_TAGS);
  readonly #expect = new Uint8Array(MAX_TAGS);
  readonly #address = new Uint8Array(MAX_TAGS);
  readonly #total = new Uint16Array(MAX_TAGS);
  readonly #remaining = new Uint16Array(MAX_TAGS);
  readonly #deadline = new Float64Array(MAX_TAGS);
  readonly #cookie = new Float64Array(MAX_TAGS);
  // Open requests in order of deadline, as a doubly linked list through the tags.
  readonly #next = new Int16Array(MAX_TAGS).fill(NONE);
  readonly #previous = new Int16Array(MAX_TAGS).fill(NONE);
  #first = NONE;
  #last = NONE;
  #openCount = 0;
  #timedOutCount = 0;

  /** Without a pool the tags are somebody else's, and are not given back to anyone. */
  constructor(pool?: TagPool) {
    this.#pool = pool;
  }

  /** Requests waiting for completions, timed-out ones not counted. */
  get openCount(): number {
    return this.#openCount;
  }

  /** Tags held back because their completion never came. */
  get timedOutCount(): number {
    return this.#timedOutCount;
  }

  /** True while a request with this tag waits, or has timed out and holds the tag. */
  holds(tag: number): boolean {
    return this.#state[tag] !== CLOSED;
  }

  /**
   * Starts waiting for the completions of a request: `byteCount` and `address` as `requestByteCount` and
   * `firstByteAddress` give them (the address matters for memory reads alone). `cookie` is any number
   * that helps the caller find its own state. O(1) when deadlines do not go backwards.
   */
  open(
    tag: number,
    address: number,
    byteCount: number,
    deadlineNs: number,
    cookie: number,
    expect: Expect = Expect.MEMORY_DATA,
  ): void {
    assert(this.#state[tag] === CLOSED, 'tag is outstanding already, or out of range');
    assert(byteCount >= 1 && byteCount <= 4096, 'byte count of a request out of range');
    this.#state[tag] = OPEN;
    this.#expect[tag] = expect;
    this.#address[tag] = address & 127;
    this.#total[tag] = byteCount;
    this.#remaining[tag] = byteCount;
    this.#deadline[tag] = deadlineNs;
    this.#cookie[tag] = cookie;
    this.#openCount++;
    this.#link(tag, deadlineNs);
  }

  /**
   * Judges a completion whose requester ID is ours (that is the caller's to check), and says in the
   * public fields which part of which request it brings. A poisoned one counts like any other: look at
   * `tlp.poisoned`.
   */
  accept(tlp: Tlp): Accepted {
    const { tag } = tlp;
    const state = this.#state[tag];
    if (state !== OPEN && state !== TIMED_OUT) return Accepted.UNEXPECTED;
    const remaining = this.#remaining[tag] as number;
    this.cookie = this.#cookie[tag] as number;
    this.status = tlp.status;
    this.bytes = 0;
    if (tlp.status !== CompletionStatus.SC) {
      this.#close(tag);
      return state === OPEN ? Accepted.FAILED : Accepted.LATE;
    }
    const bytes = this.#bytesOf(tlp, remaining);
    if (bytes < 0) return Accepted.MISMATCH;
    const total = this.#total[tag] as number;
    this.offset = total - remaining;
    this.bytes = tlp.kind === TlpKind.CplD ? bytes : 0;
    const skipped = this.#expect[tag] === Expect.MEMORY_DATA ? tlp.lowerAddress & 3 : 0;
    this.payloadOffset = tlp.payloadOffset + skipped;
    if (bytes === remaining) this.#close(tag);
    else this.#remaining[tag] = remaining - bytes;
    if (state === TIMED_OUT) return Accepted.LATE;
    return bytes === remaining ? Accepted.DONE : Accepted.PART;
  }

  /**
   * Judges a run of `count` completions (tlp-run.ts): whether `accept` would call each of them a PART of an
   * open request. Then they count as accepted, and `offset` is that of the first; else nothing has changed.
   */
  acceptRun(first: Tlp, count: number): boolean {
    const { tag, payloadBytes } = first;
    if (this.#state[tag] !== OPEN || this.#expect[tag] !== Expect.MEMORY_DATA) return false;
    const remaining = this.#remaining[tag] as number;
    const left = remaining - count * payloadBytes;
    if (left <= 0 || this.#bytesOf(first, remaining) !== payloadBytes) return false;
    this.offset = (this.#total[tag] as number) - remaining;
    this.#remaining[tag] = left;
    return true;
  }

  /** How many of the remaining bytes a successful completion settles, or −1 when it does not fit. */
  #bytesOf(tlp: Tlp, remaining: number): number {
    const { tag } = tlp;
    const expect = this.#expect[tag];
    const hasData = tlp.kind === TlpKind.CplD;
    if (expect === Expect.NO_DATA) return hasData ? -1 : remaining;
    if (!hasData) return -1;
    const payloadBytes = tlp.lengthDw * 4;
    if (expect === Expect.DATA) {
      return tlp.byteCount === remaining && payloadBytes === ((remaining + 3) & ~3)
        ? remaining
        : -1;
    }
    const done = (this.#total[tag] as number) - remaining;
    if (tlp.lowerAddress !== (((this.#address[tag] as number) + done) & 0x7f)) return -1;
    const carried = payloadBytes - (tlp.lowerAddress & 3);
    const bytes = carried < remaining ? carried : remaining;
    // A set BCM (from a PCI-X bridge) makes Byte Count that of this completion alone.
    const expectedCount = tlp.byteCountModified ? bytes : remaining;
    return tlp.byteCount === expectedCount ? bytes : -1;
  }

  /** The earliest deadline of an open request, or Infinity. */
  nextDeadlineNs(): number {
    return this.#first === NONE ? Infinity : (this.#deadline[this.#first] as number);
  }

  /** Calls `timedOut` for every open request due at `now`. Its tag stays held. */
  expire(now: Nanos, timedOut: (tag: number, cookie: number) => void): void {
    for (;;) {
      const tag = this.#first;
      if (tag === NONE || (this.#deadline[tag] as number) > now) return;
      this.#unlink(tag);
      this.#state[tag] = TIMED_OUT;
      this.#openCount--;
      this.#timedOutCount++;
      timedOut(tag, this.#cookie[tag] as number);
    }
  }

  /**
   * Ends the session: no completion of anything outstanding can come any more. All tags become free;
   * `aborted` is called for each request that was open, in order of deadline, after its tag was freed.
   */
  abort(aborted?: (tag: number, cookie: number) => void): void {
    for (let tag = 0; this.#timedOutCount > 0 && tag < MAX_TAGS; tag++) {
      if (this.#state[tag] === TIMED_OUT) this.#close(tag);
    }
    // The chain is taken off first: what the callback opens belongs to what comes next.
    let tag = this.#first;
    this.#first = NONE;
    this.#last = NONE;
    this.#openCount = 0;
    while (tag !== NONE) {
      const next = this.#next[tag] as number;
      this.#state[tag] = CLOSED;
      this.#pool?.free(tag);
      aborted?.(tag, this.#cookie[tag] as number);
      tag = next;
    }
  }

  #close(tag: number): void {
    if (this.#state[tag] === OPEN) {
      this.#unlink(tag);
      this.#openCount--;
    } else {
      this.#timedOutCount--;
    }
    this.#state[tag] = CLOSED;
    this.#pool?.free(tag);
  }

  #link(tag: number, deadlineNs: number): void {
    let after = this.#last;
    while (after !== NONE && (this.#deadline[after] as number) > deadlineNs) {
      after = this.#previous[after] as number;
    }
    const before = after === NONE ? this.#first : (this.#next[after] as number);
    this.#previous[tag] = after;
    this.#next[tag] = before;
    if (after === NONE) this.#first = tag;
    else this.#next[after] = tag;
    if (before === NONE) this.#last = tag;
    else this.#previous[before] = tag;
  }

  #unlink(tag: number): void {
    const next = this.#next[tag] as number;
    const previous = this.#previous[tag] as number;
    if (previous === NONE) this.#first = next;
    else this.#next[previous] = next;
    if (next === NONE) this.#last = previous;
    else this.#previous[next] = previous;
    this.#next[tag] = NONE;
    this.#previous[tag] = NONE;
  }
}
