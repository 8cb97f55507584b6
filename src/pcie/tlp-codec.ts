/**
 * TLPs to bytes and back, as PCIe 5.0 base chapter 2.2 lays them out (network byte order in the
 * header, payload bytes in address order, ECRC last). What is well formed: `tlp-rules.ts`.
 *
 * A header is handled as its three or four double words, DW 0 to 3, bit 31 being byte 0 bit 7.
 */
import { AssertionError } from '#base/assert';
import { copyBytes } from '#base/copy-bytes';
import { computeEcrc } from './ecrc.ts';
import {
  checkRules,
  fits,
  LAYOUTS as ALL_LAYOUTS,
  memoryFault,
  misfit,
  TlpDecode,
  TlpLayout,
} from './tlp-rules.ts';
import { CompletionStatus, type Tlp, type TlpKind } from './tlp.ts';
import { reaches, readBigEndian, writeBigEndian, writeHeader } from './word-copy.ts';

export { TLP_DECODE_NAMES, TlpDecode } from './tlp-rules.ts';

/** The largest TLP: 4 DW of header, 4096 bytes, ECRC. */
export const MAX_TLP_BYTES = 16 + 4096 + 4;

// A module's own constants are folded by engines; imported ones are loaded and tested every time.
const LAYOUTS = ALL_LAYOUTS;
const { MEMORY, IO, CONFIG, MESSAGE, COMPLETION, PREFIX, RESERVED, UNSUPPORTED } = TlpLayout;
const { OK, MALFORMED_TRUNCATED, MALFORMED_LENGTH, MALFORMED_FORMAT } = TlpDecode;
const { BAD_ECRC, UNSUPPORTED_KIND } = TlpDecode;
const LAYOUT_MASK = 7;
// Bits of Fmt in byte 0.
const FMT_4DW = 0x20;
const FMT_DATA = 0x40;
// Bits of DW 0.
const TH = 1 << 16;
const TD = 1 << 15;
const EP = 1 << 14;

/** Bytes `encodeTlp` will write: 12 or 16 of header, payload, 4 of ECRC if `digest`. */
export function encodedTlpBytes(tlp: Tlp): number {
  const { kind } = tlp;
  return (
    ((kind & FMT_4DW) === 0 ? 12 : 16) +
    ((kind & FMT_DATA) === 0 ? 0 : tlp.payloadBytes) +
    (tlp.digest ? 4 : 0)
  );
}

/**
 * Writes `tlp` at `offset` of `bytes`, which must have room for `encodedTlpBytes(tlp)`.
 * The record must be valid (`decodeTlp` of the result gives `OK`): asserted, for a mistake here is a bug.
 * Returns the bytes written.
 */
export function encodeTlp(tlp: Tlp, bytes: Uint8Array, offset: number): number {
  const layout = LAYOUTS[tlp.kind] as number;
  if (layout !== MEMORY) return encodeOther(tlp, layout, bytes, offset);
  // Memory requests are most of all traffic: each field is read once, checked and placed.
  const { kind, lengthDw, firstBe, lastBe, payloadOffset, processingHint } = tlp;
  const high = tlp.addressHi | 0;
  const low = tlp.addressLo | 0;
  const hints = tlp.hints === true;
  const is64 = (kind & FMT_4DW) !== 0;
  let dataBytes = 0;
  let hasPayload = true;
  if ((kind & FMT_DATA) !== 0) {
    dataBytes = lengthDw << 2;
    hasPayload = payloadOffset >= 0 && reaches(tlp.payload, (payloadOffset + dataBytes) | 0);
  }
  // Any bit where the header has no place for it.
  const misfits =
    (tlp.trafficClass & ~7) |
    (tlp.attributes & ~7) |
    (tlp.tag & ~0x3ff) |
    (tlp.requesterId & ~0xffff) |
    (tlp.addressType & ~3) |
    (firstBe & ~15) |
    (lastBe & ~15) |
    (processingHint & ~3) |
    (low & 3) |
    (is64 ? 0 : high) |
    (dataBytes ^ tlp.payloadBytes);
  const inRange =
    lengthDw >= 1 &&
    lengthDw <= 1024 &&
    high >>> 0 === tlp.addressHi &&
    low >>> 0 === tlp.addressLo;
  const steered = hints && dataBytes === 0;
  if (
    misfits !== 0 ||
    !inRange ||
    !hasPayload ||
    memoryFault(lengthDw, firstBe, lastBe, low, steered) !== OK
  ) {
    throw refusal(tlp, MEMORY);
  }
  const dw1 = (tlp.requesterId << 16) | ((tlp.tag & 0xff) << 8) | (lastBe << 4) | firstBe;
  const dw3 = hints ? low | processingHint : low;
  return write(tlp, bytes, offset, firstDw(tlp), dw1, is64 ? high : dw3, dw3);
}

function encodeOther(tlp: Tlp, layout: number, bytes: Uint8Array, offset: number): number {
  if (!fits(tlp, layout) || checkRules(tlp, layout) !== OK) throw refusal(tlp, layout);
  let dw0 = firstDw(tlp);
  let dw1 = (tlp.requesterId << 16) | ((tlp.tag & 0xff) << 8);
  let dw2 = 0;
  let dw3 = 0;
  if (layout === COMPLETION) {
    dw1 =
      (tlp.completerId << 16) |
      (tlp.status << 13) |
      (tlp.byteCountModified === true ? 0x1000 : 0) |
      (tlp.byteCount & 0xfff); // 4096 is written as 0
    dw2 = (tlp.requesterId << 16) | ((tlp.tag & 0xff) << 8) | tlp.lowerAddress;
  } else if (layout === CONFIG) {
    dw1 |= tlp.firstBe;
    dw2 = (tlp.completerId << 16) | tlp.register;
  } else if (layout === MESSAGE) {
    dw0 |= tlp.messageRouting << 24;
    dw1 |= tlp.messageCode;
    dw2 = tlp.messageDw2 | 0;
    dw3 = tlp.messageDw3 | 0;
  } else {
    const low = tlp.addressLo | (tlp.hints === true ? tlp.processingHint : 0);
    const is64 = (tlp.kind & FMT_4DW) !== 0;
    dw1 |= (tlp.lastBe << 4) | tlp.firstBe;
    dw2 = is64 ? tlp.addressHi | 0 : low;
    dw3 = low;
  }
  return write(tlp, bytes, offset, dw0, dw1, dw2, dw3);
}

function refusal(tlp: Tlp, layout: number): AssertionError {
  if (!fits(tlp, layout)) {
    return new AssertionError(`TLP kind ${tlp.kind} cannot be encoded: ${misfit(tlp, layout)}`);
  }
  return new AssertionError(`TLP kind ${tlp.kind} is not valid: ${checkRules(tlp, layout)}`);
}

/** DW 0, without the routing of a message. */
function firstDw(tlp: Tlp): number {
  const { tag, attributes } = tlp;
  return (
    (tlp.kind << 24) |
    ((tag & 0x200) << 14) |
    (tlp.trafficClass << 20) |
    ((tag & 0x100) << 11) |
    ((attributes & 4) << 16) |
    // Against the boolean itself, which is one comparison; truth of anything takes several.
    (tlp.hints === true ? TH : 0) |
    (tlp.digest === true ? TD : 0) |
    (tlp.poisoned === true ? EP : 0) |
    ((attributes & 3) << 12) |
    (tlp.addressType << 10) |
    (tlp.lengthDw & 0x3ff) // 1024 is written as 0
  );
}

/** Writes the double words of a checked TLP, the last one only where Fmt says so, and what follows. */
function write(
  tlp: Tlp,
  bytes: Uint8Array,
  offset: number,
  dw0: number,
  dw1: number,
  dw2: number,
  dw3: number,
): number {
  const { payloadBytes } = tlp;
  const headerBytes = (dw0 & (FMT_4DW << 24)) === 0 ? 12 : 16;
  const digest = (dw0 & TD) !== 0;
  const size = (headerBytes + payloadBytes + (digest ? 4 : 0)) | 0;
  if (!reaches(bytes, (offset + size) | 0)) {
    throw new AssertionError(`no room for a TLP of ${size} bytes at ${offset} of ${bytes.length}`);
  }
  writeHeader(bytes, offset, headerBytes, dw0, dw1, dw2, dw3);
  if (payloadBytes !== 0) {
    copyBytes(bytes, (offset + headerBytes) | 0, tlp.payload, tlp.payloadOffset, payloadBytes);
  }
  if (digest) writeBigEndian(bytes, offset + size - 4, computeEcrc(bytes, offset, size - 4));
  return size;
}

/**
 * Reads the `length` bytes at `offset` as exactly one TLP into `into`, with full validation.
 * On success every field the kind has is set and the payload is a window into `bytes` (no copy).
 * On failure `into` holds whatever header fields could be read; the caller answers as 2.3 says.
 * Never reads outside the given range, never throws on any bytes.
 *
 * Faults are reported in the order of 6.2.3.2.3: malformed, then ECRC, then unsupported. For
 * `UNSUPPORTED_KIND` of a whole header, `into.kind` is byte 0 as it came, which `flowClassOf` knows;
 * a prefix sets nothing.
 */
export function decodeTlp(bytes: Uint8Array, offset: number, length: number, into: Tlp): TlpDecode {
  if (length < 4 || !reaches(bytes, (offset + length) | 0)) return MALFORMED_TRUNCATED;
  const byte0 = bytes[offset] as number;
  const layoutFlags = LAYOUTS[byte0] as number;
  const layout = layoutFlags & LAYOUT_MASK;
  if (layout === RESERVED) return MALFORMED_FORMAT;
  if (layout === PREFIX) return UNSUPPORTED_KIND;
  const headerBytes = (byte0 & FMT_4DW) === 0 ? 12 : 16;
  if (length < headerBytes) return MALFORMED_TRUNCATED;

  const dw0 = readBigEndian(bytes, offset);
  const dw1 = readBigEndian(bytes, (offset + 4) | 0);
  const dw2 = readBigEndian(bytes, (offset + 8) | 0);
  const dw3 = headerBytes === 12 ? 0 : readBigEndian(bytes, (offset + 12) | 0);
  const encodedLength = dw0 & 0x3ff;
  let lengthDw = encodedLength === 0 ? 1024 : encodedLength;
  let payloadBytes = 0;
  if ((byte0 & FMT_DATA) !== 0) payloadBytes = lengthDw << 2;
  else if (layout >= MESSAGE) lengthDw = 0; // Length is reserved
  const digest = (dw0 & TD) !== 0;
  const size = (headerBytes + payloadBytes + (digest ? 4 : 0)) | 0;

  into.kind = byte0 as TlpKind;
  into.lengthDw = lengthDw;
  into.trafficClass = (dw0 >> 20) & 7;
  into.attributes = ((dw0 >> 16) & 4) | ((dw0 >> 12) & 3);
  into.digest = digest;
  into.poisoned = (dw0 & EP) !== 0;
  const tagHigh = ((dw0 >> 14) & 0x200) | ((dw0 >> 11) & 0x100);
  into.tag = tagHigh | ((dw1 >> 8) & 0xff);
  into.requesterId = dw1 >>> 16;
  let fault: TlpDecode;
  if (layout === MEMORY) {
    const lastDw = headerBytes === 12 ? dw2 : dw3;
    const low = lastDw & ~3;
    const hints = (dw0 & TH) !== 0;
    const firstBe = dw1 & 15;
    const lastBe = (dw1 >> 4) & 15;
    into.addressType = (dw0 >> 10) & 3;
    into.hints = hints;
    into.processingHint = hints ? lastDw & 3 : 0;
    into.firstBe = firstBe;
    into.lastBe = lastBe;
    into.addressHi = headerBytes === 12 ? 0 : dw2 >>> 0;
    into.addressLo = low >>> 0;
    fault = memoryFault(lengthDw, firstBe, lastBe, low, hints && payloadBytes === 0);
  } else {
    readOther(into, layout, dw0, dw1, dw2, dw3);
    fault = checkRules(into, layout);
  }
  if (length !== size) {
    into.payloadBytes = 0;
    return length < size ? MALFORMED_TRUNCATED : MALFORMED_LENGTH;
  }
  into.payload = bytes;
  into.payloadOffset = (offset + headerBytes) | 0;
  into.payloadBytes = payloadBytes;
  if (fault !== OK && layoutFlags < UNSUPPORTED) return fault;
  if (digest) {
    const found = readBigEndian(bytes, (offset + size - 4) | 0) >>> 0;
    if (computeEcrc(bytes, offset, size - 4) !== found) return BAD_ECRC;
  }
  return layoutFlags < UNSUPPORTED ? OK : UNSUPPORTED_KIND;
}

/** Sets the fields beyond those all TLPs have. Reserved bits are not looked at. */
function readOther(
  into: Tlp,
  layout: number,
  dw0: number,
  dw1: number,
  dw2: number,
  dw3: number,
): void {
  into.addressType = 0;
  into.hints = false;
  into.processingHint = 0;
  if (layout === COMPLETION) {
    into.completerId = dw1 >>> 16;
    into.status = COMPLETION_STATUSES[(dw1 >>> 13) & 7] as CompletionStatus;
    into.byteCountModified = (dw1 & 0x1000) !== 0;
    into.byteCount = (dw1 & 0xfff) === 0 ? 4096 : dw1 & 0xfff;
    into.requesterId = dw2 >>> 16;
    into.tag = (into.tag & 0x300) | ((dw2 >>> 8) & 0xff);
    into.lowerAddress = dw2 & 0x7f;
    return;
  }
  if (layout === MESSAGE) {
    into.kind = ((dw0 >>> 24) & 0xf8) as TlpKind;
    into.messageRouting = (dw0 >>> 24) & 7;
    into.messageCode = dw1 & 0xff;
    into.messageDw2 = dw2 >>> 0;
    into.messageDw3 = dw3 >>> 0;
    return;
  }
  into.addressType = (dw0 >>> 10) & 3;
  into.firstBe = dw1 & 15;
  into.lastBe = (dw1 >>> 4) & 15;
  if (layout === CONFIG) {
    into.attributes &= 3; // Attr[2] is reserved (2.2.7)
    into.completerId = dw2 >>> 16;
    into.register = dw2 & 0xffc;
    return;
  }
  const is64 = (dw0 & (FMT_4DW << 24)) !== 0;
  const low = is64 ? dw3 : dw2;
  into.addressHi = is64 ? dw2 >>> 0 : 0;
  into.addressLo = (low & ~3) >>> 0;
  if (layout === IO) {
    into.attributes &= 3;
  } else if ((dw0 & TH) !== 0) {
    into.hints = true;
    into.processingHint = low & 3;
  }
}

// Reserved values are taken as UR (2.2.9, 2.3.2).
const { SC, UR, CRS, CA } = CompletionStatus;
const COMPLETION_STATUSES: readonly CompletionStatus[] = [SC, UR, CRS, UR, CA, UR, UR, UR];
