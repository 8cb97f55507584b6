/**
 * What makes a TLP well formed, beyond its size: the rules of PCIe 5.0 base 2.2 that a receiver may
 * check from the packet alone. Decoding and encoding share them, so nothing is ever sent that our own
 * receiver would refuse.
 *
 * Bits the specification calls reserved are no rule: decoding ignores them, encoding writes zero.
 * Address forms: a 64-bit form with an address below 4 GiB breaks a rule for requesters only, and
 * 2.2.4.1 leaves the receiver's behaviour open; it is taken as it is.
 * Byte enables of AtomicOps, and of memory reads with TH set (where they carry a steering tag), mean
 * nothing to a receiver and are passed through.
 */
import { CompletionStatus, TlpKind, type Tlp } from './tlp.ts';

/** What `decodeTlp` returns: 0, or why not. `MALFORMED_*` and `UNSUPPORTED_*` are told apart (2.3). */
export const TlpDecode = {
  OK: 0,
  MALFORMED_TRUNCATED: 1,
  MALFORMED_LENGTH: 2,
  MALFORMED_FORMAT: 3,
  MALFORMED_BYTE_ENABLES: 4,
  MALFORMED_4K_CROSSING: 5,
  MALFORMED_FIELD: 6,
  BAD_ECRC: 7,
  /** Well formed, but not a kind this implementation handles: locked reads, prefixes, deferrable writes. */
  UNSUPPORTED_KIND: 8,
} as const;
export type TlpDecode = (typeof TlpDecode)[keyof typeof TlpDecode];

/** The name of each `TlpDecode` value, for messages. */
export const TLP_DECODE_NAMES: readonly string[] = Object.keys(TlpDecode);

/** How a header is laid out and judged; looked up by byte 0. Numbers, for the hot path. */
export const LAYOUT_RESERVED = 0;
export const LAYOUT_MEMORY = 1;
export const LAYOUT_ATOMIC = 2;
export const LAYOUT_IO = 3;
export const LAYOUT_CONFIG = 4;
export const LAYOUT_MESSAGE = 5;
export const LAYOUT_COMPLETION = 6;
export const LAYOUT_PREFIX = 7;
/** Set beside a layout for kinds that are real, but not handled here. */
export const LAYOUT_UNSUPPORTED = 8;
export const LAYOUT_MASK = 7;

/** Layout by byte 0 of the header (table 2-3): Fmt in bits 7:5, Type in 4:0. */
export const LAYOUTS: Uint8Array = buildLayouts();

function buildLayouts(): Uint8Array {
  const layouts = new Uint8Array(256);
  const set = (layout: number, ...kinds: number[]): void => {
    for (const kind of kinds) layouts[kind] = layout;
  };
  set(LAYOUT_MEMORY, TlpKind.MRd32, TlpKind.MRd64, TlpKind.MWr32, TlpKind.MWr64);
  set(LAYOUT_ATOMIC, TlpKind.FetchAdd32, TlpKind.FetchAdd64, TlpKind.Swap32, TlpKind.Swap64);
  set(LAYOUT_ATOMIC, TlpKind.CAS32, TlpKind.CAS64);
  set(LAYOUT_IO, TlpKind.IORd, TlpKind.IOWr);
  set(LAYOUT_CONFIG, TlpKind.CfgRd0, TlpKind.CfgWr0, TlpKind.CfgRd1, TlpKind.CfgWr1);
  set(LAYOUT_COMPLETION, TlpKind.Cpl, TlpKind.CplD);
  // Routing values 6 and 7 are reserved, but end at the receiver like any other (table 2-18).
  for (let routing = 0; routing < 8; routing++) {
    set(LAYOUT_MESSAGE, TlpKind.Msg | routing, TlpKind.MsgD | routing);
  }
  // MRdLk; TCfgRd; DMWr (whose 3 DW form was TCfgWr); CplLk and CplDLk.
  set(LAYOUT_MEMORY | LAYOUT_UNSUPPORTED, 0x01, 0x21, 0x5b, 0x7b);
  set(LAYOUT_CONFIG | LAYOUT_UNSUPPORTED, 0x1b);
  set(LAYOUT_COMPLETION | LAYOUT_UNSUPPORTED, 0x0b, 0x4b);
  for (let prefix = 0x80; prefix < 0xa0; prefix++) {
    layouts[prefix] = LAYOUT_PREFIX | LAYOUT_UNSUPPORTED;
  }
  return layouts;
}

/** Bits of Fmt in byte 0: a header of four double words, and a payload behind it. */
export const FMT_4DW = 0x20;
export const FMT_DATA = 0x40;

// One bit a byte-enable value: those that run up to the last byte, and those that start at the first.
const RUN_TO_END = (1 << 0b1000) | (1 << 0b1100) | (1 << 0b1110) | (1 << 0b1111);
const RUN_FROM_START = (1 << 0b0001) | (1 << 0b0011) | (1 << 0b0111) | (1 << 0b1111);

/** The rules of 2.2.5 for memory requests whose byte enables are byte enables. */
function byteEnablesAllowed(tlp: Tlp): boolean {
  const { lengthDw, firstBe, lastBe } = tlp;
  if (lengthDw === 1) return lastBe === 0;
  if (firstBe === 0 || lastBe === 0) return false;
  if (lengthDw === 2 && (tlp.addressLo & 7) === 0) return true;
  return ((RUN_TO_END >>> firstBe) & (RUN_FROM_START >>> lastBe) & 1) === 1;
}

/** True for messages that 2.2.8 allows in traffic class 0 alone, to be checked by receivers. */
function needsTrafficClass0(messageCode: number): boolean {
  switch (messageCode) {
    case 0x00: // Unlock
    case 0x14: // PM_Active_State_Nak
    case 0x18: // PM_PME
    case 0x19: // PME_Turn_Off
    case 0x1b: // PME_TO_Ack
    case 0x30: // ERR_COR
    case 0x31: // ERR_NONFATAL
    case 0x33: // ERR_FATAL
    case 0x50: // Set_Slot_Power_Limit
      return true;
    default:
      return messageCode >= 0x20 && messageCode <= 0x27; // Assert and Deassert INTx
  }
}

function checkAtomic(tlp: Tlp): TlpDecode {
  const { kind, lengthDw } = tlp;
  const isCas = kind === TlpKind.CAS32 || kind === TlpKind.CAS64;
  // CAS carries two operands: the value to compare with and the one to swap in.
  const operandDw = isCas ? lengthDw / 2 : lengthDw;
  const sizeAllowed = operandDw === 1 || operandDw === 2 || (isCas && operandDw === 4);
  if (!sizeAllowed) return TlpDecode.MALFORMED_LENGTH;
  // Natural alignment; addresses are DW aligned anyway. It also rules out crossing 4 KiB.
  if ((tlp.addressLo & (operandDw * 4 - 1)) !== 0) return TlpDecode.MALFORMED_FIELD;
  return TlpDecode.OK;
}

function checkCompletion(tlp: Tlp): TlpDecode {
  if (tlp.kind === TlpKind.Cpl) return TlpDecode.OK;
  // Byte Count is what remains including this completion, so it bounds the data (2.3.1.1).
  const remainingDw = (tlp.byteCount + (tlp.lowerAddress & 3) + 3) >>> 2;
  return tlp.lengthDw <= remainingDw ? TlpDecode.OK : TlpDecode.MALFORMED_LENGTH;
}

/** Judges a record whose fields are within their widths. `layout` is that of its kind. */
export function checkRules(tlp: Tlp, layout: number): TlpDecode {
  switch (layout) {
    case LAYOUT_MEMORY: {
      const steeringTag = tlp.hints && (tlp.kind & FMT_DATA) === 0;
      if (!steeringTag && !byteEnablesAllowed(tlp)) return TlpDecode.MALFORMED_BYTE_ENABLES;
      if ((tlp.addressLo & 4095) + tlp.lengthDw * 4 > 4096) return TlpDecode.MALFORMED_4K_CROSSING;
      return TlpDecode.OK;
    }
    case LAYOUT_ATOMIC:
      return checkAtomic(tlp);
    case LAYOUT_IO:
    case LAYOUT_CONFIG:
      // 2.2.7: length 1, no last byte enables, TC, Attr and AT zero.
      if (tlp.lengthDw !== 1) return TlpDecode.MALFORMED_LENGTH;
      if (tlp.lastBe !== 0) return TlpDecode.MALFORMED_BYTE_ENABLES;
      return (tlp.trafficClass | tlp.attributes | tlp.addressType) === 0
        ? TlpDecode.OK
        : TlpDecode.MALFORMED_FIELD;
    case LAYOUT_COMPLETION:
      return checkCompletion(tlp);
    case LAYOUT_MESSAGE:
      return tlp.trafficClass !== 0 && needsTrafficClass0(tlp.messageCode)
        ? TlpDecode.MALFORMED_FIELD
        : TlpDecode.OK;
    default:
      return TlpDecode.MALFORMED_FORMAT;
  }
}

/**
 * The name of the first field that does not fit its place in the header, or '' when all do. Every
 * number must be an integer in range and the payload window must lie in its buffer.
 */
export function misfit(tlp: Tlp, layout: number): string {
  const { kind, lengthDw, payloadBytes, payloadOffset } = tlp;
  const isMessage = layout === LAYOUT_MESSAGE;
  if (layout === LAYOUT_RESERVED || layout > LAYOUT_COMPLETION) return 'kind';
  if (isMessage && (kind & 7) !== 0) return 'kind';
  if ((tlp.trafficClass & 7) !== tlp.trafficClass) return 'trafficClass';
  if ((tlp.attributes & 7) !== tlp.attributes) return 'attributes';
  if ((tlp.tag & 0x3ff) !== tlp.tag) return 'tag';
  if ((tlp.requesterId & 0xffff) !== tlp.requesterId) return 'requesterId';
  if ((lengthDw & 0x7ff) !== lengthDw || lengthDw > 1024) return 'lengthDw';
  const hasData = (kind & FMT_DATA) !== 0;
  const lengthIsReserved = !hasData && (isMessage || layout === LAYOUT_COMPLETION);
  if ((lengthDw === 0) !== lengthIsReserved) return 'lengthDw';
  if (payloadBytes !== (hasData ? lengthDw * 4 : 0)) return 'payloadBytes';
  if (hasData) {
    if (payloadOffset >>> 0 !== payloadOffset) return 'payloadOffset';
    if (payloadOffset + payloadBytes > tlp.payload.length) return 'payload';
  }
  if (layout > LAYOUT_ATOMIC) {
    if (tlp.hints) return 'hints';
    if (tlp.addressType !== 0) return 'addressType';
  } else {
    if ((tlp.addressType & 3) !== tlp.addressType) return 'addressType';
    if (tlp.hints && (tlp.processingHint & 3) !== tlp.processingHint) return 'processingHint';
  }
  if (layout <= LAYOUT_CONFIG) {
    if ((tlp.firstBe & 15) !== tlp.firstBe) return 'firstBe';
    if ((tlp.lastBe & 15) !== tlp.lastBe) return 'lastBe';
  }
  if (layout <= LAYOUT_IO) {
    const { addressLo, addressHi } = tlp;
    if (addressLo >>> 0 !== addressLo || (addressLo & 3) !== 0) return 'addressLo';
    if ((kind & FMT_4DW) === 0 ? addressHi !== 0 : addressHi >>> 0 !== addressHi)
      return 'addressHi';
    return '';
  }
  if (isMessage) return messageMisfit(tlp);
  if ((tlp.completerId & 0xffff) !== tlp.completerId) return 'completerId';
  if (layout === LAYOUT_CONFIG) return (tlp.register & 0xffc) === tlp.register ? '' : 'register';
  return completionMisfit(tlp);
}

function messageMisfit(tlp: Tlp): string {
  if ((tlp.messageCode & 0xff) !== tlp.messageCode) return 'messageCode';
  if ((tlp.messageRouting & 7) !== tlp.messageRouting) return 'messageRouting';
  if (tlp.messageDw2 >>> 0 !== tlp.messageDw2) return 'messageDw2';
  if (tlp.messageDw3 >>> 0 !== tlp.messageDw3) return 'messageDw3';
  return '';
}

function completionMisfit(tlp: Tlp): string {
  const { status, byteCount, lowerAddress } = tlp;
  const statusKnown =
    status === CompletionStatus.SC ||
    status === CompletionStatus.UR ||
    status === CompletionStatus.CRS ||
    status === CompletionStatus.CA;
  if (!statusKnown) return 'status';
  if ((byteCount & 0x1fff) !== byteCount || byteCount < 1 || byteCount > 4096) return 'byteCount';
  if ((lowerAddress & 0x7f) !== lowerAddress) return 'lowerAddress';
  return '';
}
