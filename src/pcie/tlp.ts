/**
 * A transaction layer packet as a mutable record. One record is reused for many packets on the hot
 * path: whoever is handed a `Tlp` may read it during the call alone, and copies what it wants to
 * keep. The payload is a window into somebody else's buffer, with the same life.
 *
 * Field names are those of PCIe 5.0 base, chapter 2.2. Fields a kind does not have are left as they
 * were, except that `resetTlp` clears them all.
 */

/**
 * The kinds, numbered as byte 0 of the header packs Fmt and Type (2.2.1). A message's three routing
 * bits are kept apart, in `messageRouting`.
 */
export const TlpKind = {
  MRd32: 0x00,
  MRd64: 0x20,
  MWr32: 0x40,
  MWr64: 0x60,
  IORd: 0x02,
  IOWr: 0x42,
  CfgRd0: 0x04,
  CfgWr0: 0x44,
  CfgRd1: 0x05,
  CfgWr1: 0x45,
  Msg: 0x30,
  MsgD: 0x70,
  Cpl: 0x0a,
  CplD: 0x4a,
  FetchAdd32: 0x4c,
  FetchAdd64: 0x6c,
  Swap32: 0x4d,
  Swap64: 0x6d,
  CAS32: 0x4e,
  CAS64: 0x6e,
} as const;
export type TlpKind = (typeof TlpKind)[keyof typeof TlpKind];

export const TLP_KIND_NAMES: Readonly<Record<number, string>> = Object.fromEntries(
  Object.entries(TlpKind).map(([name, kind]) => [kind, name]),
);

/** Flow-control types (2.6.1); the numbers index arrays. */
export const FlowClass = { POSTED: 0, NON_POSTED: 1, COMPLETION: 2 } as const;
export type FlowClass = (typeof FlowClass)[keyof typeof FlowClass];

/** Completion status (table 2-34). */
export const CompletionStatus = { SC: 0, UR: 1, CRS: 2, CA: 4 } as const;
export type CompletionStatus = (typeof CompletionStatus)[keyof typeof CompletionStatus];

/** Attribute bits as Attr[2:0] (2.2.6.3). */
export const ATTR_NO_SNOOP = 1;
export const ATTR_RELAXED_ORDERING = 2;
export const ATTR_ID_BASED_ORDERING = 4;

const NO_BYTES = new Uint8Array(0);

export class Tlp {
  kind: TlpKind = TlpKind.MRd32;
  /** TC, 0 to 7. */
  trafficClass = 0;
  /** Attr[2:0]: IDO 4, RO 2, NS 1. */
  attributes = 0;
  /** AT: 0 untranslated, 1 translation request, 2 translated. */
  addressType = 0;
  /** TH: processing hints present; the hint itself (PH) is in `processingHint`. */
  hints = false;
  processingHint = 0;
  /** EP: the payload is poisoned. */
  poisoned = false;
  /** TD: an ECRC follows. On encode it is computed; on decode it has been checked. */
  digest = false;
  /** Payload or requested length in double words: 1 to 1024, or 0 for a message or Cpl without data. */
  lengthDw = 0;
  requesterId = 0;
  /** 0 to 1023 (10-bit tags: T9 and T8 are byte 1 bits 7 and 3). */
  tag = 0;
  firstBe = 0;
  lastBe = 0;
  /** Bits 63:32 and 31:2 of a memory, I/O or atomic request's address. `addressLo` is DW aligned. */
  addressHi = 0;
  addressLo = 0;
  /** Completer of a completion; destination bus, device, function of a config request. */
  completerId = 0;
  /** Config register as a byte offset, 0 to 4092, DW aligned. */
  register = 0;
  status: CompletionStatus = CompletionStatus.SC;
  /** BCM; PCI-X only, 0 in PCIe. */
  byteCountModified = false;
  /** Remaining bytes of the request this completion answers, 1 to 4096. */
  byteCount = 0;
  /** Bits 6:0 of the address of the first enabled byte of this completion. */
  lowerAddress = 0;
  messageCode = 0;
  /** Routing r[2:0] of a message (table 2-18). */
  messageRouting = 0;
  /** Bytes 8 to 15 of a message header, as two big-endian words. */
  messageDw2 = 0;
  messageDw3 = 0;
  /** The payload: `payloadBytes` (always 4 × lengthDw, or 0) at `payloadOffset` of `payload`. */
  payload: Uint8Array = NO_BYTES;
  payloadOffset = 0;
  payloadBytes = 0;
}

/** Sets every field back to what `new Tlp()` has. */
export function resetTlp(tlp: Tlp): void {
  tlp.kind = TlpKind.MRd32;
  tlp.trafficClass = 0;
  tlp.attributes = 0;
  tlp.addressType = 0;
  tlp.hints = false;
  tlp.processingHint = 0;
  tlp.poisoned = false;
  tlp.digest = false;
  tlp.lengthDw = 0;
  tlp.requesterId = 0;
  tlp.tag = 0;
  tlp.firstBe = 0;
  tlp.lastBe = 0;
  tlp.addressHi = 0;
  tlp.addressLo = 0;
  tlp.completerId = 0;
  tlp.register = 0;
  tlp.status = CompletionStatus.SC;
  tlp.byteCountModified = false;
  tlp.byteCount = 0;
  tlp.lowerAddress = 0;
  tlp.messageCode = 0;
  tlp.messageRouting = 0;
  tlp.messageDw2 = 0;
  tlp.messageDw3 = 0;
  tlp.payload = NO_BYTES;
  tlp.payloadOffset = 0;
  tlp.payloadBytes = 0;
}

/** Copies every field, and with them the window of the payload, not its bytes. */
export function copyTlp(to: Tlp, from: Tlp): void {
  to.kind = from.kind;
  to.trafficClass = from.trafficClass;
  to.attributes = from.attributes;
  to.addressType = from.addressType;
  to.hints = from.hints;
  to.processingHint = from.processingHint;
  to.poisoned = from.poisoned;
  to.digest = from.digest;
  to.lengthDw = from.lengthDw;
  to.requesterId = from.requesterId;
  to.tag = from.tag;
  to.firstBe = from.firstBe;
  to.lastBe = from.lastBe;
  to.addressHi = from.addressHi;
  to.addressLo = from.addressLo;
  to.completerId = from.completerId;
  to.register = from.register;
  to.status = from.status;
  to.byteCountModified = from.byteCountModified;
  to.byteCount = from.byteCount;
  to.lowerAddress = from.lowerAddress;
  to.messageCode = from.messageCode;
  to.messageRouting = from.messageRouting;
  to.messageDw2 = from.messageDw2;
  to.messageDw3 = from.messageDw3;
  to.payload = from.payload;
  to.payloadOffset = from.payloadOffset;
  to.payloadBytes = from.payloadBytes;
}

// Completions of locked reads; not among our kinds, but they reach `flowClassOf` as byte 0 of a header
// that decoded as unsupported, and must not be answered like a request.
const CPL_LOCKED = 0x0b as TlpKind;
const CPL_D_LOCKED = 0x4b as TlpKind;

/** The flow-control type of a kind (table 2-40). */
export function flowClassOf(kind: TlpKind): FlowClass {
  switch (kind) {
    case TlpKind.MWr32:
    case TlpKind.MWr64:
    case TlpKind.Msg:
    case TlpKind.MsgD:
      return FlowClass.POSTED;
    case TlpKind.Cpl:
    case TlpKind.CplD:
    case CPL_LOCKED:
    case CPL_D_LOCKED:
      return FlowClass.COMPLETION;
    default:
      return FlowClass.NON_POSTED;
  }
}

/** The address of a request as a number. Exact only while `addressHi` is below 2^21. */
export function tlpAddress(tlp: Tlp): number {
  return tlp.addressHi * 0x1_0000_0000 + tlp.addressLo;
}

/** True when the address is below 2^53, that is, `tlpAddress` is exact. */
export function hasSafeAddress(tlp: Tlp): boolean {
  return tlp.addressHi < 0x20_0000;
}

/**
 * Sets both address words, and picks between the two forms of `kind32`/`kind64`: PCIe forbids the
 * 64-bit form below 4 GiB (2.2.4.1).
 */
export function setTlpAddress(tlp: Tlp, address: number, kind32: TlpKind, kind64: TlpKind): void {
  const hi = Math.floor(address / 0x1_0000_0000);
  tlp.addressHi = hi;
  tlp.addressLo = (address & ~3) >>> 0;
  tlp.kind = hi === 0 ? kind32 : kind64;
}
