/**
 * A capture put in order for a replay: which completions answer which request, in either direction,
 * and what the device wrote where.
 */
import {
  type Tlp,
  Tlp as TlpRecord,
  TlpKind,
  flowClassOf,
  FlowClass,
  CompletionStatus,
} from '#pcie/tlp';
import { decodeTlp, TlpDecode } from '#pcie/tlp-codec';

export interface CapturedPacket {
  readonly number: number;
  readonly timeNs: bigint;
  readonly direction: 'down' | 'up';
  readonly tlp: Uint8Array;
}

/** A non-posted request and what answered it. */
export interface Exchange {
  readonly packet: CapturedPacket;
  readonly completions: CapturedPacket[];
  /** Whether the last completion of it is there. */
  complete: boolean;
  used: boolean;
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
  /** Packets that are no TLPs. */
  readonly undecodable: readonly number[];
}

/** Requester and tag: what a completion is matched by (2.2.9). */
export const transactionOf = (tlp: Tlp): number => tlp.requesterId * 1024 + tlp.tag;

const addressOf = (tlp: Tlp): string =>
  `${tlp.addressHi.toString(16)}:${tlp.addressLo.toString(16)}`;

/** What makes two requests of a device the same but for their tag: kind, address, length, enables. */
export function requestKey(tlp: Tlp): string {
  return [tlp.kind, addressOf(tlp), tlp.lengthDw, tlp.firstBe, tlp.lastBe].join(' ');
}

export function writeKey(tlp: Tlp): string {
  return addressOf(tlp);
}

export function isCompletion(tlp: Tlp): boolean {
  return flowClassOf(tlp.kind) === FlowClass.COMPLETION;
}

export function isNonPosted(tlp: Tlp): boolean {
  return flowClassOf(tlp.kind) === FlowClass.NON_POSTED;
}

export function isMemoryWrite(tlp: Tlp): boolean {
  return tlp.kind === TlpKind.MWr32 || tlp.kind === TlpKind.MWr64;
}

/** Whether nothing of the request remains after this completion (2.3.1.1). */
export function isLastCompletion(tlp: Tlp): boolean {
  if (tlp.kind === TlpKind.Cpl || tlp.status !== CompletionStatus.SC) return true;
  return tlp.byteCount <= tlp.payloadBytes - (tlp.lowerAddress & 3);
}

export function indexCapture(packets: readonly CapturedPacket[]): CaptureIndex {
  const tlp = new TlpRecord();
  const exchangeOf = new Map<number, Exchange>();
  const hostRequests = new Map<number, Exchange>();
  const deviceRequests = new Map<string, Exchange[]>();
  const deviceWrites = new Map<string, CapturedPacket[]>();
  const undecodable: number[] = [];
  // Outstanding now, by who asked.
  const open = { down: new Map<number, Exchange>(), up: new Map<number, Exchange>() };
  for (const packet of packets) {
    if (decodeTlp(packet.tlp, 0, packet.tlp.length, tlp) !== TlpDecode.OK) {
      undecodable.push(packet.number);
      continue;
    }
    if (isCompletion(tlp)) {
      const asked = packet.direction === 'up' ? open.down : open.up;
      const exchange = asked.get(transactionOf(tlp));
      // Without one, the request came before the capture began.
      if (exchange === undefined) continue;
      exchange.completions.push(packet);
      exchangeOf.set(packet.number, exchange);
      if (!isLastCompletion(tlp)) continue;
      exchange.complete = true;
      asked.delete(transactionOf(tlp));
    } else if (isNonPosted(tlp)) {
      const exchange: Exchange = { packet, completions: [], complete: false, used: false };
      open[packet.direction].set(transactionOf(tlp), exchange);
      if (packet.direction === 'down') hostRequests.set(packet.number, exchange);
      else append(deviceRequests, requestKey(tlp), exchange);
    } else if (packet.direction === 'up' && isMemoryWrite(tlp)) {
      append(deviceWrites, writeKey(tlp), packet);
    }
  }
  return { exchangeOf, hostRequests, deviceRequests, deviceWrites, undecodable };
}

function append<T>(lists: Map<string, T[]>, key: string, value: T): void {
  const list = lists.get(key);
  if (list === undefined) lists.set(key, [value]);
  else list.push(value);
}
