/**
 * TLPs to bytes and back, as PCIe 5.0 base chapter 2.2 lays them out (network byte order in the
 * header, payload bytes in address order, ECRC last). What is well formed: `tlp-rules.ts`.
 *
 * A header is handled as its three or four double words, DW 0 to 3, bit 31 being byte 0 bit 7.
 */
import { AssertionError } from '#base/assert';
import { computeEcrc } from './ecrc.ts';
import {
  checkRules,
  fits,
  LAYOUTS as ALL_LAYOUTS,
  misfit,
  TlpDecode,
  TlpLayout,
} from './tlp-rules.ts';
import { CompletionStatus, type Tlp, type TlpKind } from './tlp.ts';
import { copyWords, reaches, readBigEndian, writeBigEndian, writeHeader } from './word-copy.ts';

export { TLP_DECODE_NAMES, TlpDecode } from './tlp-rules.ts';

/** The largest TLP: 4 DW of header, 4096 bytes, ECRC. */
export const MAX_TLP_BYTES = 16 + 4096 + 4;

// A module's own constants are folded by engines; imported ones are loaded and tested every time.
const LAYOUTS = ALL_LAYOUTS;
const { IO, CONFIG, MESSAGE, COMPLETION, PREFIX, RESERVED, UNSUPPORTED } = TlpLayout;
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
  const { kind, tag, attributes } = tlp;
  const layout = LAYOUTS[kind] as number;
  if (!fits(tlp, layout)) {
    throw new AssertionError(`TLP kind ${kind} cannot be encoded: ${misfit(tlp, layout)}`);
  }
  const fault = checkRules(tlp, layout);
  if (fault !== OK) throw new AssertionError(`TLP kind ${kind} is not valid: ${fault}`);
  // Against the boolean itself, which is one comparison; truth of anything takes several.
  const digest = tlp.digest === true;
  const headerBytes = (kind & FMT_4DW) === 0 ? 12 : 16;
  const { payloadBytes } = tlp;
  const size = (headerBytes + payloadBytes + (digest ? 4 : 0)) | 0;
  if (!reaches(bytes, (offset + size) | 0)) {
    throw new AssertionError(`no room for a TLP of ${size} bytes at ${offset} of ${bytes.length}`);
  }

  let dw0 =
    (kind << 24) |
    ((tag & 0x200) << 14) |
    (tlp.trafficClass << 20) |
    ((tag & 0x100) << 11) |
    ((attributes & 4) << 16) |
    ((attributes & 3) << 12) |
    (tlp.addressType << 10) |
    (tlp.lengthDw & 0x3ff); // 1024 is written as 0
  if (tlp.hints === true) dw0 |= TH;
  if (digest) dw0 |= TD;
  if (tlp.poisoned === true) dw0 |= EP;
  let dw1 = (tlp.requesterId << 16) | ((tag & 0xff) << 8);
  let dw2 = 0;
  let dw3 = 0;
  if (layout <= IO) {
    dw1 |= (tlp.lastBe << 4) | tlp.firstBe;
    const low = tlp.addressLo | (tlp.hints === true ? tlp.processingHint : 0);
    if (headerBytes === 12) {
      dw2 = low;
    } else {
      dw2 = tlp.addressHi | 0;
      dw3 = low;
    }
  } else if (layout === COMPLETION) {
    dw1 =
      (tlp.completerId << 16) |
      (tlp.status << 13) |
      (tlp.byteCountModified === true ? 0x1000 : 0) |
      (tlp.byteCount & 0xfff); // 4096 is written as 0
    dw2 = (tlp.requesterId << 16) | ((tag & 0xff) << 8) | tlp.lowerAddress;
  } else if (layout === CONFIG) {
    dw1 |= tlp.firstBe;
    dw2 = (tlp.completerId << 16) | tlp.register;
  } else {
    dw0 |= tlp.messageRouting << 24;
    dw1 |= tlp.messageCode;
    dw2 = tlp.messageDw2 | 0;
    dw3 = tlp.messageDw3 | 0;
  }
  writeHeader(bytes, offset, headerBytes, dw0, dw1, dw2, dw3);
  if (payloadBytes !== 0) {
    copyWords(bytes, (offset + headerBytes) | 0, tlp.payload, tlp.payloadOffset, payloadBytes);
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
  const digest = (dw0 & TD) !== 0;
  const encodedLength = dw0 & 0x3ff;
  let lengthDw = encodedLength === 0 ? 1024 : encodedLength;
  let payloadBytes = 0;
  if ((byte0 & FMT_DATA) !== 0) payloadBytes = lengthDw << 2;
  else if (layout >= MESSAGE) lengthDw = 0; // Length is reserved
  readHeader(bytes, offset, dw0, layout, into);
  into.digest = digest;
  into.lengthDw = lengthDw;
  const size = (headerBytes + payloadBytes + (digest ? 4 : 0)) | 0;
  if (length !== size) {
    into.payloadBytes = 0;
    return length < size ? MALFORMED_TRUNCATED : MALFORMED_LENGTH;
  }
  into.payload = bytes;
  into.payloadOffset = (offset + headerBytes) | 0;
  into.payloadBytes = payloadBytes;

  const supported = layoutFlags < UNSUPPORTED;
  if (supported) {
    const fault = checkRules(into, layout);
    if (fault !== OK) return fault;
  }
  if (digest) {
    const found = readBigEndian(bytes, offset + size - 4) >>> 0;
    if (computeEcrc(bytes, offset, size - 4) !== found) return BAD_ECRC;
  }
  return supported ? OK : UNSUPPORTED_KIND;
}

/** Sets the fields of a header that is there in full. Reserved bits are not looked at. */
function readHeader(
  bytes: Uint8Array,
  offset: number,
  dw0: number,
  layout: number,
  into: Tlp,
): void {
  const tagHigh = ((dw0 >>> 14) & 0x200) | ((dw0 >>> 11) & 0x100);
  const dw1 = readBigEndian(bytes, (offset + 4) | 0);
  const dw2 = readBigEndian(bytes, (offset + 8) | 0);
  into.kind = (dw0 >>> 24) as TlpKind;
  into.trafficClass = (dw0 >>> 20) & 7;
  into.attributes = ((dw0 >>> 16) & 4) | ((dw0 >>> 12) & 3);
  into.poisoned = (dw0 & EP) !== 0;
  into.hints = false;
  into.processingHint = 0;
  if (layout === COMPLETION) {
    into.addressType = 0;
    into.completerId = dw1 >>> 16;
    into.status = COMPLETION_STATUSES[(dw1 >>> 13) & 7] as CompletionStatus;
    into.byteCountModified = (dw1 & 0x1000) !== 0;
    into.byteCount = (dw1 & 0xfff) === 0 ? 4096 : dw1 & 0xfff;
    into.requesterId = dw2 >>> 16;
    into.tag = tagHigh | ((dw2 >>> 8) & 0xff);
    into.lowerAddress = dw2 & 0x7f;
    return;
  }
  into.requesterId = dw1 >>> 16;
  into.tag = tagHigh | ((dw1 >>> 8) & 0xff);
  if (layout === MESSAGE) {
    into.addressType = 0;
    into.kind = ((dw0 >>> 24) & 0xf8) as TlpKind;
    into.messageRouting = (dw0 >>> 24) & 7;
    into.messageCode = dw1 & 0xff;
    into.messageDw2 = dw2 >>> 0;
    into.messageDw3 = readBigEndian(bytes, (offset + 12) | 0) >>> 0;
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
  let low = dw2;
  let high = 0;
  if ((dw0 & (FMT_4DW << 24)) !== 0) {
    high = dw2 >>> 0;
    low = readBigEndian(bytes, (offset + 12) | 0);
  }
  into.addressHi = high;
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
