/**
 * TLPs to bytes and back, as PCIe 5.0 base chapter 2.2 lays them out (network byte order in the
 * header, payload bytes in address order, ECRC last). What is well formed: `tlp-rules.ts`.
 */
import { AssertionError } from '../base/assert.ts';
import { computeEcrc } from './ecrc.ts';
import {
  checkRules,
  FMT_4DW,
  FMT_DATA,
  LAYOUT_COMPLETION,
  LAYOUT_CONFIG,
  LAYOUT_IO,
  LAYOUT_MASK,
  LAYOUT_MESSAGE,
  LAYOUT_PREFIX,
  LAYOUT_RESERVED,
  LAYOUT_UNSUPPORTED,
  LAYOUTS,
  misfit,
  TlpDecode,
} from './tlp-rules.ts';
import { CompletionStatus, type Tlp, type TlpKind } from './tlp.ts';
import { copyWords } from './word-copy.ts';

export { TLP_DECODE_NAMES, TlpDecode } from './tlp-rules.ts';

/** The largest TLP: 4 DW of header, 4096 bytes, ECRC. */
export const MAX_TLP_BYTES = 16 + 4096 + 4;

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
  const { kind, tag, attributes, lengthDw } = tlp;
  const layout = LAYOUTS[kind] as number;
  const field = misfit(tlp, layout);
  if (field !== '') throw new AssertionError(`TLP kind ${kind} cannot be encoded: ${field}`);
  const fault = checkRules(tlp, layout);
  if (fault !== TlpDecode.OK) throw new AssertionError(`TLP kind ${kind} is not valid: ${fault}`);

  const size = encodedTlpBytes(tlp);
  if (offset + size > bytes.length) {
    throw new AssertionError(`no room for a TLP of ${size} bytes at ${offset} of ${bytes.length}`);
  }
  bytes[offset + 1] =
    ((tag & 0x200) >>> 2) |
    (tlp.trafficClass << 4) |
    ((tag & 0x100) >>> 5) |
    (attributes & 4) |
    (tlp.hints ? 1 : 0);
  bytes[offset + 2] =
    (tlp.digest ? 0x80 : 0) |
    (tlp.poisoned ? 0x40 : 0) |
    ((attributes & 3) << 4) |
    (tlp.addressType << 2) |
    ((lengthDw >>> 8) & 3); // 1024 is written as 0
  bytes[offset + 3] = lengthDw;

  let headerBytes = 12;
  if (layout === LAYOUT_COMPLETION) {
    bytes[offset] = kind;
    writeCompletion(tlp, bytes, offset);
  } else {
    const { requesterId } = tlp;
    bytes[offset + 4] = requesterId >>> 8;
    bytes[offset + 5] = requesterId;
    bytes[offset + 6] = tag;
    if (layout === LAYOUT_MESSAGE) {
      bytes[offset] = kind | tlp.messageRouting;
      bytes[offset + 7] = tlp.messageCode;
      writeWord(bytes, offset + 8, tlp.messageDw2);
      writeWord(bytes, offset + 12, tlp.messageDw3);
      headerBytes = 16;
    } else {
      bytes[offset] = kind;
      bytes[offset + 7] = (tlp.lastBe << 4) | tlp.firstBe;
      if (layout === LAYOUT_CONFIG) {
        writeWord(bytes, offset + 8, (tlp.completerId << 16) | tlp.register);
      } else {
        const low = tlp.hints ? tlp.addressLo | tlp.processingHint : tlp.addressLo;
        if ((kind & FMT_4DW) === 0) {
          writeWord(bytes, offset + 8, low);
        } else {
          writeWord(bytes, offset + 8, tlp.addressHi);
          writeWord(bytes, offset + 12, low);
          headerBytes = 16;
        }
      }
    }
  }
  if ((kind & FMT_DATA) !== 0) {
    copyWords(bytes, offset + headerBytes, tlp.payload, tlp.payloadOffset, tlp.payloadBytes);
  }
  if (tlp.digest) {
    writeWord(bytes, offset + size - 4, computeEcrc(bytes, offset, size - 4));
  }
  return size;
}

function writeCompletion(tlp: Tlp, bytes: Uint8Array, offset: number): void {
  const { completerId, requesterId, byteCount } = tlp;
  bytes[offset + 4] = completerId >>> 8;
  bytes[offset + 5] = completerId;
  bytes[offset + 6] =
    (tlp.status << 5) | (tlp.byteCountModified ? 0x10 : 0) | ((byteCount >>> 8) & 15);
  bytes[offset + 7] = byteCount; // 4096 is written as 0
  bytes[offset + 8] = requesterId >>> 8;
  bytes[offset + 9] = requesterId;
  bytes[offset + 10] = tlp.tag;
  bytes[offset + 11] = tlp.lowerAddress;
}

function writeWord(bytes: Uint8Array, at: number, value: number): void {
  bytes[at] = value >>> 24;
  bytes[at + 1] = value >>> 16;
  bytes[at + 2] = value >>> 8;
  bytes[at + 3] = value;
}

function readWord(bytes: Uint8Array, at: number): number {
  return (
    (((bytes[at] as number) << 24) |
      ((bytes[at + 1] as number) << 16) |
      ((bytes[at + 2] as number) << 8) |
      (bytes[at + 3] as number)) >>>
    0
  );
}

function readHalf(bytes: Uint8Array, at: number): number {
  return ((bytes[at] as number) << 8) | (bytes[at + 1] as number);
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
  if (length < 4 || offset + length > bytes.length) return TlpDecode.MALFORMED_TRUNCATED;
  const byte0 = bytes[offset] as number;
  const layoutFlags = LAYOUTS[byte0] as number;
  const layout = layoutFlags & LAYOUT_MASK;
  if (layout === LAYOUT_RESERVED) return TlpDecode.MALFORMED_FORMAT;
  if (layout === LAYOUT_PREFIX) return TlpDecode.UNSUPPORTED_KIND;
  const headerBytes = (byte0 & FMT_4DW) === 0 ? 12 : 16;
  if (length < headerBytes) return TlpDecode.MALFORMED_TRUNCATED;

  readHeader(bytes, offset, byte0, layout, into);
  const payloadBytes = (byte0 & FMT_DATA) === 0 ? 0 : into.lengthDw * 4;
  const digest = into.digest;
  const size = headerBytes + payloadBytes + (digest ? 4 : 0);
  if (length !== size) {
    into.payloadBytes = 0;
    return length < size ? TlpDecode.MALFORMED_TRUNCATED : TlpDecode.MALFORMED_LENGTH;
  }
  into.payload = bytes;
  into.payloadOffset = offset + headerBytes;
  into.payloadBytes = payloadBytes;

  const supported = layoutFlags < LAYOUT_UNSUPPORTED;
  if (supported) {
    const fault = checkRules(into, layout);
    if (fault !== TlpDecode.OK) return fault;
  }
  if (digest && computeEcrc(bytes, offset, size - 4) !== readWord(bytes, offset + size - 4)) {
    return TlpDecode.BAD_ECRC;
  }
  return supported ? TlpDecode.OK : TlpDecode.UNSUPPORTED_KIND;
}

/** Sets the fields of a header that is there in full. Reserved bits are not looked at. */
function readHeader(
  bytes: Uint8Array,
  offset: number,
  byte0: number,
  layout: number,
  into: Tlp,
): void {
  const byte1 = bytes[offset + 1] as number;
  const byte2 = bytes[offset + 2] as number;
  const tagHigh = ((byte1 & 0x80) << 2) | ((byte1 & 0x08) << 5);
  const encodedLength = ((byte2 & 3) << 8) | (bytes[offset + 3] as number);
  into.kind = byte0 as TlpKind;
  into.trafficClass = (byte1 >>> 4) & 7;
  into.attributes = (byte1 & 4) | ((byte2 >>> 4) & 3);
  into.digest = (byte2 & 0x80) !== 0;
  into.poisoned = (byte2 & 0x40) !== 0;
  into.lengthDw = encodedLength === 0 ? 1024 : encodedLength;
  into.addressType = 0;
  into.hints = false;

  if (layout === LAYOUT_COMPLETION) {
    into.tag = tagHigh | (bytes[offset + 10] as number);
    readCompletion(bytes, offset, byte0, into);
    return;
  }
  into.requesterId = readHalf(bytes, offset + 4);
  into.tag = tagHigh | (bytes[offset + 6] as number);
  const byte7 = bytes[offset + 7] as number;
  if (layout === LAYOUT_MESSAGE) {
    into.kind = (byte0 & 0xf8) as TlpKind;
    into.messageRouting = byte0 & 7;
    into.messageCode = byte7;
    into.messageDw2 = readWord(bytes, offset + 8);
    into.messageDw3 = readWord(bytes, offset + 12);
    if ((byte0 & FMT_DATA) === 0) into.lengthDw = 0; // Length is reserved (2.2.8)
    return;
  }
  into.firstBe = byte7 & 15;
  into.lastBe = byte7 >>> 4;
  if (layout === LAYOUT_CONFIG) {
    into.attributes &= 3; // Attr[2] is reserved (2.2.7)
    into.addressType = (byte2 >>> 2) & 3;
    into.completerId = readHalf(bytes, offset + 8);
    into.register = readHalf(bytes, offset + 10) & 0xffc;
    return;
  }
  into.addressType = (byte2 >>> 2) & 3;
  let lowAt = offset + 8;
  if ((byte0 & FMT_4DW) === 0) {
    into.addressHi = 0;
  } else {
    into.addressHi = readWord(bytes, lowAt);
    lowAt = offset + 12;
  }
  const low = readWord(bytes, lowAt);
  into.addressLo = (low & ~3) >>> 0;
  if (layout === LAYOUT_IO) {
    into.attributes &= 3;
  } else if ((byte1 & 1) !== 0) {
    into.hints = true;
    into.processingHint = low & 3;
  } else {
    into.processingHint = 0;
  }
}

function readCompletion(bytes: Uint8Array, offset: number, byte0: number, into: Tlp): void {
  const byte6 = bytes[offset + 6] as number;
  const encodedCount = ((byte6 & 15) << 8) | (bytes[offset + 7] as number);
  into.completerId = readHalf(bytes, offset + 4);
  into.status = COMPLETION_STATUSES[byte6 >>> 5] as CompletionStatus;
  into.byteCountModified = (byte6 & 0x10) !== 0;
  into.byteCount = encodedCount === 0 ? 4096 : encodedCount;
  into.requesterId = readHalf(bytes, offset + 8);
  into.lowerAddress = (bytes[offset + 11] as number) & 0x7f;
  if ((byte0 & FMT_DATA) === 0) into.lengthDw = 0; // Length is reserved
}

// Reserved values are taken as UR (2.2.9, 2.3.2).
const { SC, UR, CRS, CA } = CompletionStatus;
const COMPLETION_STATUSES: readonly CompletionStatus[] = [SC, UR, CRS, UR, CA, UR, UR, UR];
