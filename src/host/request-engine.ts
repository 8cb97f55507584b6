/**
 * Turns the CPU's accesses into requests for the fabric and completions into their results.
 *
 * Who owns what: an `Access` is pooled; it belongs to the engine from `submit` until its callback is
 * called. While it still has requests to make it waits in its slot's queue; while requests of it are
 * unanswered, `#owners` names it by tag. The tag pool holds what is free, the tracker what is in
 * flight or timed out; a timed-out tag stays with the tracker until its completion comes.
 *
 * Order, per slot: posted writes leave in the order they were made; reads and config requests leave
 * in theirs, never before a write made earlier; a write may overtake reads that cannot leave.
 * Callbacks may submit: what they submit is sent after the request in progress has returned.
 */
import { assert } from '#base/assert';
import { copyBytes } from '#base/copy-bytes';
import type { Nanos } from '#base/units';
import type { DownstreamFabric } from '#pcie/root-port';
import { readChunk, setMemoryRead } from '#pcie/split';
import { Accepted, CompletionTracker, Expect, TagPool } from '#pcie/tags';
import { CompletionStatus, FlowClass, Tlp } from '#pcie/tlp';
import { runOfWrites } from '#pcie/tlp-run';
import {
  nextWriteBytes,
  paddedBytes,
  ROOT_COMPLEX_ID,
  setConfigRequest,
  setWriteRequest,
  STAGING_BYTES,
} from './access-tlp.ts';
import { type Access, AccessKind, AccessPool, AccessQueue, AccessStatus } from './cpu-access.ts';
import type { TaskRunner } from './task.ts';

const DEFAULT_PAYLOAD_BYTES = 128;
/** What a vendor ID read answered "retry" gives software (2.3.2, CRS software visibility). */
const VENDOR_ID_RETRY = 0xffff_0001;
/** Between two tries of a config access answered "retry". */
const RETRY_INTERVAL_NS = 1e6;

export interface RequestEngineOptions {
  readonly slots: number;
  readonly tags: number;
  readonly maxReadRequestBytes: number;
  readonly completionTimeoutNs: number;
}

class SlotQueues {
  readonly posted = new AccessQueue();
  readonly nonPosted = new AccessQueue();
  /** Config accesses answered "retry", until they are made again; each with what calls that off. */
  readonly retrying = new Map<Access, () => void>();
  maxPayloadBytes = DEFAULT_PAYLOAD_BYTES;
  linkActive = false;
  /** Requests that were not answered within the completion timeout. */
  timeouts = 0;
}

export class RequestEngine {
  readonly pool = new AccessPool();
  /** Completions that answer nothing outstanding, or do not fit what they answer. */
  unexpectedCompletions = 0;
  /** Completions of requests that had timed out. */
  lateCompletions = 0;
  /** Requests that were not answered within the completion timeout. */
  timeouts = 0;
  readonly #options: RequestEngineOptions;
  readonly #tasks: TaskRunner;
  readonly #deadlineChanged: () => void;
  readonly #slots: readonly SlotQueues[];
  readonly #tags: TagPool;
  readonly #tracker: CompletionTracker;
  readonly #owners: (Access | undefined)[] = new Array<Access | undefined>(1024).fill(undefined);
  /** The length of a tag's request. The tracker's cookie is where in its access it begins. */
  readonly #lengths = new Uint16Array(1024);
  readonly #tlp = new Tlp();
  readonly #staging = new Uint8Array(STAGING_BYTES);
  #fabric: DownstreamFabric | undefined;
  #order = 0;
  #busy = false;
  #turn = 0;
  /** Something was submitted meanwhile. */
  #again = false;
  /** A request waits for a tag and for nothing else. */
  #starved = false;
  #deadlineMayMove = false;
  #tickNow = 0 as Nanos;

  constructor(options: RequestEngineOptions, tasks: TaskRunner, deadlineChanged: () => void) {
    this.#options = options;
    this.#tasks = tasks;
    this.#deadlineChanged = deadlineChanged;
    this.#slots = Array.from({ length: options.slots }, () => new SlotQueues());
    this.#tags = new TagPool(options.tags);
    this.#tracker = new CompletionTracker(this.#tags);
  }

  /** Tags whose requests timed out and have not been answered since. */
  get heldTags(): number {
    return this.#tracker.timedOutCount;
  }

  timeoutsOf(virtualSlot: number): number {
    return this.#slot(virtualSlot).timeouts;
  }

  attach(fabric: DownstreamFabric): void {
    assert(this.#fabric === undefined, 'a host is attached once');
    this.#fabric = fabric;
  }

  setMaxPayload(virtualSlot: number, bytes: number): void {
    this.#slot(virtualSlot).maxPayloadBytes = bytes;
  }

  resetMaxPayload(virtualSlot: number): void {
    this.#slot(virtualSlot).maxPayloadBytes = DEFAULT_PAYLOAD_BYTES;
  }

  /** Takes an access to a slot; its callback comes once, maybe before this returns. */
  submit(now: Nanos, access: Access): void {
    const slot = this.#slot(access.virtualSlot);
    if (!slot.linkActive) {
      this.#abandon(access);
      this.#finish(now, access);
      return;
    }
    access.order = this.#order++;
    if (access.kind === AccessKind.WRITE) slot.posted.push(access);
    else slot.nonPosted.push(access);
    this.#run(now, access.virtualSlot);
  }

  /** The slot's link came up, or went down: then what has not left yet ends, as it would in hardware. */
  setLinkActive(now: Nanos, virtualSlot: number, active: boolean): void {
    const slot = this.#slot(virtualSlot);
    slot.linkActive = active;
    if (active) return;
    // Made again later, they would reach whatever is in the slot by then.
    for (const [access, callOff] of slot.retrying) {
      callOff();
      this.#abandon(access);
      this.#finish(now, access);
    }
    // The callbacks may submit, which ends at once now: the queues only become shorter.
    while (slot.posted.size > 0) {
      const access = slot.posted.shift();
      this.#abandon(access);
      this.#finish(now, access);
    }
    while (slot.nonPosted.size > 0) {
      const access = slot.nonPosted.shift();
      this.#abandon(access);
      if (access.outstanding === 0) this.#finish(now, access);
    }
  }

  /** A completion from the fabric. */
  completion(now: Nanos, tlp: Tlp): void {
    const tracker = this.#tracker;
    const accepted = tracker.accept(tlp);
    if (accepted === Accepted.UNEXPECTED || accepted === Accepted.MISMATCH) {
      this.unexpectedCompletions++;
    } else if (accepted === Accepted.LATE) {
      this.lateCompletions++;
    } else {
      const access = this.#owners[tlp.tag];
      assert(access !== undefined, 'an open request has an owner');
      const offset = tracker.cookie;
      if (accepted === Accepted.FAILED) {
        this.#fill(access, offset, this.#lengths[tlp.tag] as number);
        if (tracker.status === CompletionStatus.CRS) access.status |= AccessStatus.RETRY;
        else if (tracker.status === CompletionStatus.CA) access.status |= AccessStatus.ABORTED;
        else access.status |= AccessStatus.UNSUPPORTED;
      } else if (tlp.poisoned && tracker.bytes > 0) {
        this.#fill(access, offset + tracker.offset, tracker.bytes);
        access.status |= AccessStatus.POISONED;
      } else if (tracker.bytes > 0) {
        const at = offset + tracker.offset;
        copyBytes(access.buffer, at, tlp.payload, tracker.payloadOffset, tracker.bytes);
      }
      if (accepted !== Accepted.PART) this.#answered(now, tlp.tag, access);
    }
    if (this.#starved) this.pump(now);
  }

  nextDeadlineNs(): number {
    return this.#tracker.nextDeadlineNs();
  }

  tick(now: Nanos): void {
    this.#tickNow = now;
    this.#tracker.expire(now, this.#timedOut);
  }

  /** Requests may leave again: the fabric has room, or a tag is free. */
  pump(now: Nanos): void {
    this.#again = true;
    this.#run(now, -1);
  }

  /**
   * Sends what can leave of one slot, then, as long as something happened meanwhile, of all. Never
   * from inside itself: `#tlp` must not change while the fabric holds it, and a chain of instant
   * answers must not become a chain of calls.
   */
  #run(now: Nanos, first: number): void {
    if (this.#busy) {
      this.#again = true;
      return;
    }
    this.#busy = true;
    try {
      if (first >= 0) this.#drain(now, first);
      while (this.#again) {
        this.#again = false;
        this.#starved = false;
        // Each time another slot is the first to find free tags and room.
        this.#turn = (this.#turn + 1) % this.#slots.length;
        for (let step = 0; step < this.#slots.length; step++) {
          this.#drain(now, (this.#turn + step) % this.#slots.length);
        }
      }
    } finally {
      this.#busy = false;
    }
    if (!this.#deadlineMayMove) return;
    this.#deadlineMayMove = false;
    this.#deadlineChanged();
  }

  #drain(now: Nanos, index: number): void {
    const slot = this.#slots[index] as SlotQueues;
    while (slot.posted.size + slot.nonPosted.size > 0 && this.#sendNext(now, index, slot));
  }

  #sendNext(now: Nanos, index: number, slot: SlotQueues): boolean {
    const posted = slot.posted.head;
    const nonPosted = slot.nonPosted.head;
    if (nonPosted !== undefined && (posted === undefined || nonPosted.order < posted.order)) {
      if (this.#sendNonPosted(now, index, slot, nonPosted)) return true;
    }
    return posted !== undefined && this.#sendPosted(now, index, slot, posted);
  }

  #sendPosted(now: Nanos, index: number, slot: SlotQueues, access: Access): boolean {
    const bytes = nextWriteBytes(access, slot.maxPayloadBytes);
    const fabric = this.#fabric as DownstreamFabric;
    const payloadBytes = paddedBytes(access, bytes);
    if (!fabric.canRequest(index, FlowClass.POSTED, payloadBytes)) return false;
    setWriteRequest(this.#tlp, access, bytes, this.#staging);
    // The last one ends the access: it goes by itself.
    const run = runOfWrites(
      access.address + access.issued,
      access.bytes - access.issued - 1,
      slot.maxPayloadBytes,
    );
    if (run > 1) {
      const sent = fabric.requestWrites(now, this.#tlp, run);
      access.issued += sent * bytes;
      if (sent > 0) return true;
    }
    access.issued += bytes;
    const isLast = access.issued === access.bytes;
    // Out of the queue first: the fabric may report the link down from inside the call.
    if (isLast) slot.posted.shift();
    fabric.request(now, this.#tlp);
    if (isLast) this.#finish(now, access);
    return true;
  }

  #sendNonPosted(now: Nanos, index: number, slot: SlotQueues, access: Access): boolean {
    const isWrite = access.kind === AccessKind.CONFIG_WRITE;
    const fabric = this.#fabric as DownstreamFabric;
    if (!fabric.canRequest(index, FlowClass.NON_POSTED, isWrite ? 4 : 0)) return false;
    const tag = this.#tags.alloc();
    if (tag < 0) {
      this.#starved = true;
      return false;
    }
    const tlp = this.#tlp;
    let bytes = 4;
    let expect: Expect = Expect.DATA;
    if (access.kind === AccessKind.READ) {
      const address = access.address + access.issued;
      bytes = readChunk(address, access.bytes - access.issued, this.#options.maxReadRequestBytes);
      setMemoryRead(tlp, address, bytes, ROOT_COMPLEX_ID, tag);
      expect = Expect.MEMORY_DATA;
    } else {
      setConfigRequest(tlp, access, tag);
      if (isWrite) expect = Expect.NO_DATA;
    }
    if (this.#tracker.openCount === 0) this.#deadlineMayMove = true;
    const deadlineNs = now + this.#options.completionTimeoutNs;
    this.#tracker.open(
      tag,
      access.address + access.issued,
      bytes,
      deadlineNs,
      access.issued,
      expect,
    );
    this.#owners[tag] = access;
    this.#lengths[tag] = bytes;
    access.outstanding++;
    access.issued += bytes;
    if (access.issued === access.bytes) slot.nonPosted.shift();
    fabric.request(now, this.#tlp);
    return true;
  }

  /** The request with this tag is over, well or not. */
  #answered(now: Nanos, tag: number, access: Access): void {
    this.#owners[tag] = undefined;
    access.outstanding--;
    if (access.outstanding > 0 || access.issued < access.bytes) return;
    if ((access.status & AccessStatus.RETRY) !== 0 && this.#retry(now, access)) return;
    this.#finish(now, access);
  }

  /** Makes a config access again that was answered "retry". Returns false when it is over after all. */
  #retry(now: Nanos, access: Access): boolean {
    if (access.kind === AccessKind.CONFIG_READ && access.register === 0) {
      access.setScratch(VENDOR_ID_RETRY);
      return false;
    }
    const isConfig =
      access.kind === AccessKind.CONFIG_READ || access.kind === AccessKind.CONFIG_WRITE;
    if (!isConfig || now >= access.retryUntilNs) return false;
    access.issued = 0;
    access.status = AccessStatus.OK;
    const slot = this.#slot(access.virtualSlot);
    const cancel = this.#tasks.at(now + RETRY_INTERVAL_NS, (at) => {
      slot.retrying.delete(access);
      this.submit(at, access);
    });
    slot.retrying.set(access, () => {
      slot.retrying.delete(access);
      cancel();
    });
    return true;
  }

  readonly #timedOut = (tag: number, cookie: number): void => {
    const access = this.#owners[tag];
    assert(access !== undefined, 'an open request has an owner');
    this.timeouts++;
    this.#slot(access.virtualSlot).timeouts++;
    access.status |= AccessStatus.TIMEOUT;
    this.#fill(access, cookie, this.#lengths[tag] as number);
    this.#answered(this.#tickNow, tag, access);
  };

  /** What is not answered reads all ones. */
  #fill(access: Access, offset: number, bytes: number): void {
    const isRead = access.kind === AccessKind.READ || access.kind === AccessKind.CONFIG_READ;
    if (isRead) access.buffer.fill(0xff, offset, offset + bytes);
  }

  /** What has not been asked for yet will not be. */
  #abandon(access: Access): void {
    this.#fill(access, access.issued, access.bytes - access.issued);
    access.issued = access.bytes;
    access.status |= AccessStatus.UNSUPPORTED;
  }

  #finish(now: Nanos, access: Access): void {
    const { readDone, done, status } = access;
    const value = readDone === undefined ? 0 : access.scratchValue();
    // Back in the pool first: the callback may make the next access.
    this.pool.give(access);
    readDone?.(now, value, status);
    done?.(now, status);
  }

  #slot(virtualSlot: number): SlotQueues {
    const slot = this.#slots[virtualSlot];
    assert(slot !== undefined, 'a virtual slot of this host');
    return slot;
  }
}
