/**
 * The read requests of the DMA engine (endpoint-dma.ts) that are in flight: their tags, their
 * deadlines, and where their data goes. `CompletionTracker` judges completions; this puts their data
 * in place and says when a request is over.
 */
import { assertDefined } from '#base/assert';
import { copyBytes } from '#base/copy-bytes';
import type { Nanos } from '#base/units';
import { DmaStatus, type Transfer } from './endpoint-transfer.ts';
import { Accepted, CompletionTracker, TagPool } from './tags.ts';
import { CompletionStatus, type Tlp } from './tlp.ts';
import { copyRunPayload } from './tlp-run.ts';

const ALL_TAGS = 1024;
export const MAX_OUTSTANDING_READS = 768;

export interface ReadsUser {
  /** A request is over: all its data is in place, or `status` says why not. Its tag may be free. */
  requestDone(now: Nanos, transfer: Transfer, status: DmaStatus): void;
}

export class ReadsInFlight {
  readonly #user: ReadsUser;
  readonly #tags: number;
  readonly #owners = new Array<Transfer | undefined>(ALL_TAGS).fill(undefined);
  /** Where in its transfer a tag's request begins. */
  readonly #offsets = new Float64Array(ALL_TAGS);
  /** 1 once a completion of this tag's request was poisoned. */
  readonly #poisoned = new Uint8Array(ALL_TAGS);
  #tagBits: 5 | 8 | 10 = 5;
  #pool: TagPool;
  #tracker: CompletionTracker;
  #now: Nanos = 0 as Nanos;

  /** At most `tags` requests are in flight, whatever the host allows. */
  constructor(user: ReadsUser, tags: number) {
    this.#user = user;
    this.#tags = tags;
    this.#pool = new TagPool(this.#usableTags());
    this.#tracker = new CompletionTracker(this.#pool);
  }

  /** Requests waiting for their completions. */
  get outstanding(): number {
    return this.#tracker.openCount;
  }

  /** Tags that are not free: of requests that wait, and of those that timed out unanswered. */
  get tagsHeld(): number {
    return this.#tracker.openCount + this.#tracker.timedOutCount;
  }

  /** A tag for a request of a function whose tags are `tagBits` wide, or −1. */
  takeTag(tagBits: 5 | 8 | 10): number {
    // Software may change the width only while nothing is outstanding (7.5.3.4); nor do we before.
    if (tagBits !== this.#tagBits && this.tagsHeld === 0) {
      this.#tagBits = tagBits;
      this.#pool = new TagPool(this.#usableTags());
      this.#tracker = new CompletionTracker(this.#pool);
    }
    return this.#pool.alloc();
  }

  /** Starts waiting: the next `bytes` bytes of `transfer`, from `address`, are asked for with `tag`. */
  open(tag: number, transfer: Transfer, address: number, bytes: number, deadlineNs: number): void {
    this.#tracker.open(tag, address, bytes, deadlineNs, 0);
    this.#owners[tag] = transfer;
    this.#offsets[tag] = transfer.sentBytes;
    this.#poisoned[tag] = 0;
  }

  /**
   * Takes a completion. Returns false when no request has its tag, or it contradicts the request
   * that has (which then times out).
   */
  completion(now: Nanos, tlp: Tlp): boolean {
    const { tag } = tlp;
    const tracker = this.#tracker;
    const accepted = tracker.accept(tlp);
    switch (accepted) {
      case Accepted.UNEXPECTED:
      case Accepted.MISMATCH:
        return false;
      case Accepted.LATE:
        return true;
      case Accepted.FAILED:
        this.#over(now, tag, statusOf(tlp.status));
        return true;
      default:
        break;
    }
    const owner = this.#ownerOf(tag);
    if (tlp.poisoned) {
      this.#poisoned[tag] = 1;
    } else if (!owner.abandoned) {
      const offset = (this.#offsets[tag] as number) + tracker.offset;
      copyBytes(
        owner.memory,
        owner.memoryOffset + offset,
        tlp.payload,
        tracker.payloadOffset,
        tracker.bytes,
      );
    }
    if (accepted === Accepted.DONE) {
      this.#over(now, tag, this.#poisoned[tag] === 1 ? DmaStatus.POISONED : DmaStatus.OK);
    }
    return true;
  }

  /** A run of completions, all parts of one request; false when nothing has happened. */
  completionRun(first: Tlp, stride: number, count: number): boolean {
    const { tag } = first;
    const tracker = this.#tracker;
    if (!tracker.acceptRun(first, count)) return false;
    const owner = this.#ownerOf(tag);
    if (!owner.abandoned) {
      const offset = (this.#offsets[tag] as number) + tracker.offset;
      copyRunPayload(first, count, stride, owner.memory, owner.memoryOffset + offset);
    }
    return true;
  }

  nextDeadlineNs(): number {
    return this.#tracker.nextDeadlineNs();
  }

  expire(now: Nanos): void {
    this.#now = now;
    this.#tracker.expire(now, this.#expired);
  }

  /** Drops what still comes for the transfers of `channel`. Its tags stay taken until then. */
  abandon(channel: number): void {
    if (this.#tracker.openCount === 0) return;
    for (let tag = 0; tag < ALL_TAGS; tag++) {
      const owner = this.#owners[tag];
      if (owner !== undefined && owner.channel === channel) owner.abandoned = true;
    }
  }

  /** Forgets all requests: no completion of them can come any more. */
  reset(): void {
    this.#owners.fill(undefined);
    this.#tracker.abort();
  }

  readonly #expired = (tag: number): void => {
    this.#over(this.#now, tag, DmaStatus.TIMEOUT);
  };

  #over(now: Nanos, tag: number, status: DmaStatus): void {
    const owner = this.#ownerOf(tag);
    this.#owners[tag] = undefined;
    this.#user.requestDone(now, owner, status);
  }

  #ownerOf(tag: number): Transfer {
    return assertDefined(this.#owners[tag], 'a tag in flight belongs to nobody');
  }

  #usableTags(): number {
    const usable = this.#tagBits === 10 ? MAX_OUTSTANDING_READS : 2 ** this.#tagBits;
    return Math.min(this.#tags, usable);
  }
}

function statusOf(status: CompletionStatus): DmaStatus {
  return status === CompletionStatus.UR ? DmaStatus.UNSUPPORTED : DmaStatus.ABORTED;
}
