/**
 * A capture put in order for a replay: which completions answer which request, in either direction,
 * what the device wrote where, and where the capture contradicts itself: TLPs that PCIe would not let
 * be there, or not be missing.
 *
 * A capture has ends: requests of before it may be answered in it, and its last ones may not be. Both
 * are told from missing TLPs by order, for either side answers in the order it was asked: an answer to
 * nothing is of before the capture only until the first one to a request in it, and a request was cut
 * off only when none after it was answered.
 */
import { appendTo } from '#base/append-to';
import {
  type Tlp,
  Tlp as TlpRecord,
  TlpKind,
  flowClassOf,
  FlowClass,
  CompletionStatus,
} from '#pcie/tlp';
import { answeredBytes, isLastCompletion, requestByteCount } from '#pcie/completion';
import { decodeTlp, TlpDecode } from '#pcie/tlp-codec';

export interface CapturedPacket {
  readonly number: number;
  readonly timeNs: bigint;
  readonly direction: 'down' | 'up';
  readonly tlp: Uint8Array;
  /** TLPs that the capture lost before this one. */
  readonly lostBefore?: number;
}

/** A non-posted request and what answered it. */
export interface Exchange {
  readonly packet: CapturedPacket;
  readonly completions: CapturedPacket[];
  /** Whether the last completion of it is there. */
  complete: boolean;
  /** Whether it only misses what the end of the capture cut off. */
  cutOff: boolean;
  used: boolean;
  /** Bytes that remain to be answered. */
  remainingBytes: number;
}

/** What a capture says that cannot have been. */
export interface CaptureFault {
  readonly packet: CapturedPacket;
  readonly what: 'undecodable' | 'tag-in-use' | 'unasked' | 'gap';
}

export interface CaptureIndex {
  /** What a completion of the capture belongs to, by its packet number. */
  readonly exchangeOf: ReadonlyMap<number, Exchange>;
  /** Requests of the host, by packet number. */
  readonly hostRequests: ReadonlyMap<number, Exchange>;
  /** Reads and atomics of the device, oldest first, by `requestKey`. */
  readonly deviceRequests: ReadonlyMap<string, Exchange[]>;
  /** Posted writes of the device, oldest first, by address. */
  readonly deviceWrites: ReadonlyMap<string, CapturedPacket[]>;
  readonly faults: readonly CaptureFault[];
  /** Packets that contradict the rest, and are not replayed. */
  readonly ignored: ReadonlySet<number>;
}

/** No request waits longer for its answer: a capture that goes on for so long did not cut it off. */
export const COMPLETION_TIMEOUT_NS = 4_000_000_000;

/** Requester and tag: what a completion is matched by (2.2.9). */
export const transactionOf = (tlp: Tlp): number => tlp.requesterId * 1024 + tlp.tag;

const addressOf = (tlp: Tlp): string =>
  `${tlp.addressHi.toString(16)}:${tlp.addressLo.toString(16)}`;

/** What makes two requests of a device the same but for their tag: kind, address, length, enables. */
export function requestKey(tlp: Tlp): string {
  return [tlp.kind, addressOf(tlp), tlp.lengthDw, tlp.firstBe, tlp.lastBe].join(' ');
}

/** Where a posted request goes: its address, or which message it is. */
export function writeKey(tlp: Tlp): string {
  return isMemoryWrite(tlp) ? addressOf(tlp) : `message ${tlp.messageCode}`;
}

export function isCompletion(tlp: Tlp): boolean {
  return flowClassOf(tlp.kind) === FlowClass.COMPLETION;
}

export function isNonPosted(tlp: Tlp): boolean {
  return flowClassOf(tlp.kind) === FlowClass.NON_POSTED;
}

export function isPosted(tlp: Tlp): boolean {
  return flowClassOf(tlp.kind) === FlowClass.POSTED;
}

function isMemoryWrite(tlp: Tlp): boolean {
  return tlp.kind === TlpKind.MWr32 || tlp.kind === TlpKind.MWr64;
}

export function indexCapture(packets: readonly CapturedPacket[]): CaptureIndex {
  return new Indexer().run(packets);
}

/** What one side asked, and how far it has been answered. */
class Asked {
  readonly open = new Map<number, Exchange>();
  readonly all: Exchange[] = [];
  /** Packet number of the latest request that was answered in full. */
  lastAnswered = 0;
}

class Indexer {
  readonly #tlp = new TlpRecord();
  readonly #exchangeOf = new Map<number, Exchange>();
  readonly #hostRequests = new Map<number, Exchange>();
  readonly #deviceRequests = new Map<string, Exchange[]>();
  readonly #deviceWrites = new Map<string, CapturedPacket[]>();
  readonly #faults: CaptureFault[] = [];
  readonly #ignored = new Set<number>();
  readonly #asked = { down: new Asked(), up: new Asked() };

  run(packets: readonly CapturedPacket[]): CaptureIndex {
    for (const packet of packets) this.#packet(packet);
    const endNs = packets.at(-1)?.timeNs ?? 0n;
    for (const { all, lastAnswered } of [this.#asked.down, this.#asked.up]) {
      for (const exchange of all) {
        const { complete, packet } = exchange;
        const waitedNs = endNs - packet.timeNs;
        exchange.cutOff =
          !complete && packet.number > lastAnswered && waitedNs < COMPLETION_TIMEOUT_NS;
      }
    }
    return {
      exchangeOf: this.#exchangeOf,
      hostRequests: this.#hostRequests,
      deviceRequests: this.#deviceRequests,
      deviceWrites: this.#deviceWrites,
      faults: this.#faults,
      ignored: this.#ignored,
    };
  }

  #packet(packet: CapturedPacket): void {
    const tlp = this.#tlp;
    if (decodeTlp(packet.tlp, 0, packet.tlp.length, tlp) !== TlpDecode.OK) {
      this.#fault(packet, 'undecodable');
    } else if (isCompletion(tlp)) {
      this.#completion(packet);
    } else if (isNonPosted(tlp)) {
      this.#request(packet);
    } else if (packet.direction === 'up') {
      appendTo(this.#deviceWrites, writeKey(tlp), packet);
    }
  }

  #request(packet: CapturedPacket): void {
    const tlp = this.#tlp;
    const asked = this.#asked[packet.direction];
    if (asked.open.has(transactionOf(tlp))) {
      this.#fault(packet, 'tag-in-use');
      return;
    }
    const exchange: Exchange = {
      packet,
      completions: [],
      complete: false,
      cutOff: false,
      used: false,
      remainingBytes: requestByteCount(tlp),
    };
    asked.open.set(transactionOf(tlp), exchange);
    asked.all.push(exchange);
    if (packet.direction === 'down') this.#hostRequests.set(packet.number, exchange);
    else appendTo(this.#deviceRequests, requestKey(tlp), exchange);
  }

  #completion(packet: CapturedPacket): void {
    const tlp = this.#tlp;
    const asked = packet.direction === 'up' ? this.#asked.down : this.#asked.up;
    const exchange = asked.open.get(transactionOf(tlp));
    if (exchange === undefined) {
      if (asked.lastAnswered > 0) this.#fault(packet, 'unasked');
      return;
    }
    if (tlp.kind === TlpKind.CplD && tlp.status === CompletionStatus.SC) {
      if (tlp.byteCount !== exchange.remainingBytes) this.#faults.push({ packet, what: 'gap' });
      exchange.remainingBytes = tlp.byteCount - answeredBytes(tlp);
    }
    exchange.completions.push(packet);
    this.#exchangeOf.set(packet.number, exchange);
    if (!isLastCompletion(tlp)) return;
    exchange.complete = true;
    asked.open.delete(transactionOf(tlp));
    asked.lastAnswered = Math.max(asked.lastAnswered, exchange.packet.number);
  }

  #fault(packet: CapturedPacket, what: CaptureFault['what']): void {
    this.#faults.push({ packet, what });
    this.#ignored.add(packet.number);
  }
}
