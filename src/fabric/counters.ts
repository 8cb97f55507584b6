/** What a proxy counts, one record a slot. Numbers only grow while the proxy lives. */
import { FlowClass, flowClassOf, TLP_KIND_NAMES, type Tlp, type TlpKind } from '#pcie/tlp';

/** Towards the device, or towards the host. */
export const Direction = { DOWN: 0, UP: 1 } as const;
export type Direction = (typeof Direction)[keyof typeof Direction];

/** Why the host proxy refused what came from a box (invariant 3), in the order of its checks. */
export const Refusal = {
  /** Not decodable (2.3); an ECRC that does not match; well formed but of no kind that is handled. */
  MALFORMED: 0,
  ECRC: 1,
  UNSUPPORTED_KIND: 2,
  /** AT is not 00: address translation services were never offered. */
  ADDRESS_TYPE: 3,
  CONFIG_OR_IO: 4,
  /** Any but Assert_INTA and Deassert_INTA of a function in which the host has seen that pin. */
  MESSAGE: 5,
  /** Not the function's captured bus, device and function. */
  REQUESTER_ID: 6,
  BUS_MASTER_OFF: 7,
  /** From 2^53 on. */
  ADDRESS: 8,
  /** A write into the interrupt range that is not an enabled, unmasked MSI or MSI-X of the function. */
  INTERRUPT: 9,
  /** An address in a window of this host: another function's, or its own. */
  PEER_TO_PEER: 10,
  UNREGISTERED: 11,
  /** Registered, but not for this access. */
  ACCESS: 12,
  POISONED: 13,
} as const;
export type Refusal = (typeof Refusal)[keyof typeof Refusal];

/** By `Refusal`. */
export const REFUSAL_NAMES = [
  'malformed',
  'ecrc',
  'unsupported-kind',
  'address-type',
  'config-or-io',
  'message',
  'requester-id',
  'bus-master-off',
  'address',
  'interrupt',
  'peer-to-peer',
  'unregistered',
  'access',
  'poisoned',
] as const;
export type RefusalName = (typeof REFUSAL_NAMES)[number];

/** `TlpKind` is below this. */
const KINDS = 128;

export class SlotCounters {
  /** TLPs that passed, by `TlpKind`. */
  readonly down = new Float64Array(KINDS);
  readonly up = new Float64Array(KINDS);
  /** Payload bytes of the TLPs that passed. */
  downPayloadBytes = 0;
  upPayloadBytes = 0;
  /** Interrupts raised (host proxy). */
  interrupts = 0;
  /** Stale by row, generation or peer (invariant 2): answered UR, or dropped. */
  staleNonPosted = 0;
  stalePosted = 0;
  staleCompletions = 0;
  /** Completions that answer nothing outstanding, or not as it was asked: dropped. */
  unexpectedCompletions = 0;
  /** Undecodable TLPs from the host (box proxy): dropped. */
  malformed = 0;
  /** TLPs from the host whose ECRC is wrong (box proxy): passed on all the same. */
  ecrc = 0;
  /** Requests with nowhere to go: non-posted ones answered UR, posted ones dropped. */
  unroutable = 0;
  /** Posted requests and completions dropped because the link or the slot was down (invariant 6c). */
  dropped = 0;
  /** Non-posted requests answered UR because the link or the slot was down (invariant 6c). */
  aborted = 0;
  /** Refused by the host proxy, by `Refusal`. */
  readonly refused = new Float64Array(REFUSAL_NAMES.length);

  /** `count` TLPs like this one have passed. */
  countDown(tlp: Tlp, count = 1): void {
    const { kind } = tlp;
    this.down[kind] = (this.down[kind] as number) + count;
    if (hasPayload(kind)) this.downPayloadBytes += count * tlp.payloadBytes;
  }

  countUp(tlp: Tlp, count = 1): void {
    const { kind } = tlp;
    this.up[kind] = (this.up[kind] as number) + count;
    if (hasPayload(kind)) this.upPayloadBytes += count * tlp.payloadBytes;
  }

  countStale(tlp: Tlp): void {
    switch (flowClassOf(tlp.kind)) {
      case FlowClass.POSTED:
        this.stalePosted++;
        break;
      case FlowClass.NON_POSTED:
        this.staleNonPosted++;
        break;
      default:
        this.staleCompletions++;
    }
  }

  /** All refusals together. */
  get refusedTotal(): number {
    return this.refused.reduce((sum, count) => sum + count, 0);
  }
}

/** Fmt[1], bit 6 of byte 0: with data (table 2-2). */
function hasPayload(kind: TlpKind): boolean {
  return (kind & 0x40) !== 0;
}

/** The kinds counted so far, by name: `{ MWr64: 12 }`. For display. */
export function countsByKind(counts: Float64Array): Record<string, number> {
  const result: Record<string, number> = {};
  for (const [kind, count] of counts.entries()) {
    const name = TLP_KIND_NAMES[kind];
    if (count > 0 && name !== undefined) result[name] = count;
  }
  return result;
}
