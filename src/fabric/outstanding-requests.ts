/**
 * The non-posted requests a proxy has passed on and what is still to come of each. A completion is
 * let through only if it answers one of them, of that very slot and generation, as it was asked: the
 * other end may lie (invariant 3).
 *
 * Records are pooled; one handed out lives until the next call.
 */
import { assert } from '#base/assert';
import { firstByteAddress, isMemoryRead, requestByteCount, setCompletion } from '#pcie/completion';
import { CompletionStatus, type Tlp, TlpKind } from '#pcie/tlp';

/** What a completion means for its request. */
export const Answer = {
  /** Answers nothing outstanding, or not as asked. Nothing has changed. */
  UNEXPECTED: 0,
  /** A part of what a memory read asked for. */
  PART: 1,
  /** The last, or an error: the request is no longer outstanding. */
  LAST: 2,
} as const;
export type Answer = (typeof Answer)[keyof typeof Answer];

export class OutstandingRequest {
  kind: TlpKind = TlpKind.MRd32;
  requesterId = 0;
  tag = 0;
  trafficClass = 0;
  attributes = 0;
  slot = 0;
  generation = 0;
  /** Config register of a config request. */
  register = 0;
  /** Destination of a config request. */
  bdf = 0;
  /** Bytes still to come. */
  byteCount = 0;
  /** Bits 6:0 of the address of the first byte still to come. */
  lowerAddress = 0;
  /** Place in the order of opening, and the next in the chain of the tag. */
  opened = 0;
  next: OutstandingRequest | undefined = undefined;
}

/** Makes `out` the completion that ends `request` with UR for what is still to come of it. */
export function setAbort(out: Tlp, request: OutstandingRequest, completerBdf: number): void {
  setCompletion(
    out,
    request.requesterId,
    request.tag,
    request.trafficClass,
    request.attributes,
    completerBdf,
    CompletionStatus.UR,
    request.byteCount,
    request.lowerAddress,
  );
}

const TAGS = 1024;

export class OutstandingRequests {
  /** By tag, those of one tag chained: there is hardly ever more than one requester. */
  readonly #byTag = new Array<OutstandingRequest | undefined>(TAGS).fill(undefined);
  readonly #pool: OutstandingRequest[] = [];
  #size = 0;
  #opened = 0;
  /** The request of the last `accept` that did not return UNEXPECTED. */
  accepted = new OutstandingRequest();

  get size(): number {
    return this.#size;
  }

  has(tlp: Tlp): boolean {
    return this.#find(tlp.requesterId, tlp.tag) !== undefined;
  }

  /** Records a request; one with the same requester and tag is forgotten. */
  open(tlp: Tlp, slot: number, generation: number): void {
    const { tag } = tlp;
    let request = this.#find(tlp.requesterId, tag);
    if (request === undefined) {
      request = this.#pool.pop() ?? new OutstandingRequest();
      request.opened = this.#opened++;
      request.next = this.#byTag[tag];
      this.#byTag[tag] = request;
      this.#size++;
    }
    request.kind = tlp.kind;
    request.requesterId = tlp.requesterId;
    request.tag = tag;
    request.trafficClass = tlp.trafficClass;
    request.attributes = tlp.attributes;
    request.slot = slot;
    request.generation = generation;
    request.register = tlp.register;
    request.bdf = tlp.completerId;
    request.byteCount = requestByteCount(tlp);
    request.lowerAddress = isMemoryRead(tlp.kind) ? firstByteAddress(tlp) & 0x7f : 0;
  }

  /** Checks a completion that came from `slot` and `generation` and takes it into account. */
  accept(tlp: Tlp, slot: number, generation: number): Answer {
    const request = this.#find(tlp.requesterId, tlp.tag);
    if (request === undefined || request.slot !== slot || request.generation !== generation) {
      return Answer.UNEXPECTED;
    }
    const answer = answerOf(request, tlp);
    if (answer === Answer.UNEXPECTED) return answer;
    this.accepted = request;
    if (answer === Answer.LAST) {
      this.#unlink(request);
      this.#pool.push(request);
    }
    return answer;
  }

  /**
   * The request that `count` completions are parts of which are a run (pcie/tlp-run.ts), if they came from
   * `slot` and `generation`, fit it, and leave something to come. Nothing changes: `advance` does that.
   */
  requestOfRun(
    first: Tlp,
    slot: number,
    generation: number,
    count: number,
  ): OutstandingRequest | undefined {
    const request = this.#find(first.requesterId, first.tag);
    const fits =
      request !== undefined &&
      request.slot === slot &&
      request.generation === generation &&
      isMemoryRead(request.kind) &&
      request.byteCount === first.byteCount &&
      request.lowerAddress === first.lowerAddress &&
      request.byteCount > count * first.payloadBytes;
    return fits ? request : undefined;
  }

  /** Takes out the requests of a slot, or all, oldest first. */
  takeAll(slot?: number): OutstandingRequest[] {
    const taken: OutstandingRequest[] = [];
    for (let tag = 0; tag < TAGS; tag++) {
      for (let request = this.#byTag[tag]; request !== undefined; request = request.next) {
        if (slot === undefined || request.slot === slot) taken.push(request);
      }
    }
    for (const request of taken) this.#unlink(request);
    return taken.sort((a, b) => a.opened - b.opened);
  }

  #find(requesterId: number, tag: number): OutstandingRequest | undefined {
    let request = this.#byTag[tag];
    while (request !== undefined && request.requesterId !== requesterId) request = request.next;
    return request;
  }

  #unlink(request: OutstandingRequest): void {
    const { tag, next } = request;
    this.#size--;
    request.next = undefined;
    let before = this.#byTag[tag];
    if (before === request) {
      this.#byTag[tag] = next;
      return;
    }
    while (before !== undefined && before.next !== request) before = before.next;
    assert(before !== undefined, 'a request is in the chain of its tag');
    before.next = next;
  }
}

function isConfig(kind: TlpKind): boolean {
  return (kind & 0x1e) === 0x04;
}

/** Config and I/O writes are answered without data. */
function isAnsweredWithoutData(kind: TlpKind): boolean {
  return kind === TlpKind.CfgWr0 || kind === TlpKind.CfgWr1 || kind === TlpKind.IOWr;
}

/** Advances `request` when the completion is a part of it (2.2.9, 2.3.1.1). */
function answerOf(request: OutstandingRequest, tlp: Tlp): Answer {
  if (tlp.status !== CompletionStatus.SC) {
    if (tlp.kind !== TlpKind.Cpl) return Answer.UNEXPECTED;
    // The retry status belongs to config requests alone (2.3.2).
    if (tlp.status === CompletionStatus.CRS && !isConfig(request.kind)) return Answer.UNEXPECTED;
    return Answer.LAST;
  }
  if (isAnsweredWithoutData(request.kind)) {
    return tlp.kind === TlpKind.Cpl ? Answer.LAST : Answer.UNEXPECTED;
  }
  if (tlp.kind !== TlpKind.CplD || tlp.byteCount !== request.byteCount) return Answer.UNEXPECTED;
  const payloadBytes = 4 * tlp.lengthDw;
  if (!isMemoryRead(request.kind)) {
    return payloadBytes === request.byteCount ? Answer.LAST : Answer.UNEXPECTED;
  }
  if (tlp.lowerAddress !== request.lowerAddress) return Answer.UNEXPECTED;
  const skipped = request.lowerAddress & 3;
  // The last completion ends in the double word of the last byte.
  if (payloadBytes > ((skipped + request.byteCount + 3) & ~3)) return Answer.UNEXPECTED;
  const bytes = payloadBytes - skipped;
  if (bytes >= request.byteCount) return Answer.LAST;
  advance(request, bytes);
  return Answer.PART;
}

/** So many bytes of what a memory read asked for have come; not all. */
export function advance(request: OutstandingRequest, bytes: number): void {
  request.byteCount -= bytes;
  request.lowerAddress = (request.lowerAddress + bytes) & 0x7f;
}
