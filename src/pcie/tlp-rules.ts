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
import { TlpKind, type Tlp } from './tlp.ts';
import { reaches } from './word-copy.ts';

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
const { OK, MALFORMED_LENGTH, MALFORMED_FORMAT, MALFORMED_BYTE_ENABLES } = TlpDecode;
const { MALFORMED_4K_CROSSING, MALFORMED_FIELD } = TlpDecode;

/** The name of each `TlpDecode` value, for messages. */
export const TLP_DECODE_NAMES: readonly string[] = Object.keys(TlpDecode);

// Kept local, as are copies of them where they are used: engines fold a module's own constants, but
// load and test imported or exported ones every time.
const RESERVED = 0;
const MEMORY = 1;
const ATOMIC = 2;
const IO = 3;
const CONFIG = 4;
const MESSAGE = 5;
const COMPLETION = 6;
const PREFIX = 7;
const UNSUPPORTED = 8;

/** How a header is laid out and judged; looked up by byte 0. */
export const TlpLayout = {
  RESERVED,
  MEMORY,
  ATOMIC,
  IO,
  CONFIG,
  MESSAGE,
  COMPLETION,
  PREFIX,
  /** Set beside a layout for kinds that are real, but not handled here. */
  UNSUPPORTED,
} as const;

/** Layout by byte 0 of the header (table 2-3): Fmt in bits 7:5, Type in 4:0. */
export const LAYOUTS: Uint8Array = buildLayouts();

function buildLayouts(): Uint8Array {
  const layouts = new Uint8Array(256);
  const set = (layout: number, ...kinds: number[]): void => {
    for (const kind of kinds) layouts[kind] = layout;
  };
  set(MEMORY, TlpKind.MRd32, TlpKind.MRd64, TlpKind.MWr32, TlpKind.MWr64);
  set(ATOMIC, TlpKind.FetchAdd32, TlpKind.FetchAdd64, TlpKind.Swap32, TlpKind.Swap64);
  set(ATOMIC, TlpKind.CAS32, TlpKind.CAS64);
  set(IO, TlpKind.IORd, TlpKind.IOWr);
  set(CONFIG, TlpKind.CfgRd0, TlpKind.CfgWr0, TlpKind.CfgRd1, TlpKind.CfgWr1);
  set(COMPLETION, TlpKind.Cpl, TlpKind.CplD);
  // Routing values 6 and 7 are reserved, but end at the receiver like any other (table 2-18).
  for (let routing = 0; routing < 8; routing++) {
    set(MESSAGE, TlpKind.Msg | routing, TlpKind.MsgD | routing);
  }
  // MRdLk; TCfgRd; DMWr (whose 3 DW form was TCfgWr); CplLk and CplDLk.
  set(MEMORY | UNSUPPORTED, 0x01, 0x21, 0x5b, 0x7b);
  set(CONFIG | UNSUPPORTED, 0x1b);
  set(COMPLETION | UNSUPPORTED, 0x0b, 0x4b);
  for (let prefix = 0x80; prefix < 0xa0; prefix++) {
    layouts[prefix] = PREFIX | UNSUPPORTED;
  }
  return layouts;
}

// Bits of Fmt in byte 0: a header of four double words, and a payload behind it.
const FMT_4DW = 0x20;
const FMT_DATA = 0x40;

// One bit a byte-enable value: those that run up to the last byte, and those that start at the first.
const RUN_TO_END = (1 << 0b1000) | (1 << 0b1100) | (1 << 0b1110) | (1 << 0b1111);
const RUN_FROM_START = (1 << 0b0001) | (1 << 0b0011) | (1 << 0b0111) | (1 << 0b1111);

/**
 * The rules of memory requests (2.2.5, 2.2.7), on plain numbers, since these are most of all traffic.
 * `steered`: the byte enables are a steering tag, which may be any.
 */
export function memoryFault(
  lengthDw: number,
  firstBe: number,
  lastBe: number,
  addressLo: number,
  steered: boolean,
): TlpDecode {
  if ((addressLo & 4095) + (lengthDw << 2) > 4096) return MALFORMED_4K_CROSSING;
  if (steered) return OK;
  if (lengthDw === 1) return lastBe === 0 ? OK : MALFORMED_BYTE_ENABLES;
  if (((RUN_TO_END >>> firstBe) & (RUN_FROM_START >>> lastBe) & 1) !== 0) return OK;
  const mayHaveHoles = lengthDw === 2 && (addressLo & 7) === 0;
  return mayHaveHoles && firstBe !== 0 && lastBe !== 0 ? OK : MALFORMED_BYTE_ENABLES;
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

// Type, byte 0 bits 4:0, of both address forms.
const CAS_TYPE = 0x0e;

function checkAtomic(tlp: Tlp): TlpDecode {
  const { lengthDw } = tlp;
  const isCas = (tlp.kind & 0x1f) === CAS_TYPE;
  // CAS carries two operands: the value to compare with and the one to swap in.
  const operandDw = isCas ? lengthDw / 2 : lengthDw;
  const sizeAllowed = operandDw === 1 || operandDw === 2 || (isCas && operandDw === 4);
  if (!sizeAllowed) return MALFORMED_LENGTH;
  // Natural alignment; addresses are DW aligned anyway. It also rules out crossing 4 KiB.
  if ((tlp.addressLo & (operandDw * 4 - 1)) !== 0) return MALFORMED_FIELD;
  return OK;
}

function checkCompletion(tlp: Tlp): TlpDecode {
  if ((tlp.kind & FMT_DATA) === 0) return OK;
  // Byte Count is what remains including this completion, so it bounds the data (2.3.1.1).
  const remainingDw = (tlp.byteCount + (tlp.lowerAddress & 3) + 3) >>> 2;
  return tlp.lengthDw <= remainingDw ? OK : MALFORMED_LENGTH;
}

/** Judges a record whose fields are within their widths. `layout` is that of its kind. */
export function checkRules(tlp: Tlp, layout: number): TlpDecode {
  switch (layout) {
    case MEMORY: {
      const steered = tlp.hints === true && (tlp.kind & FMT_DATA) === 0;
      return memoryFault(tlp.lengthDw, tlp.firstBe, tlp.lastBe, tlp.addressLo, steered);
    }
    case ATOMIC:
      return checkAtomic(tlp);
    case IO:
    case CONFIG:
      // 2.2.7: length 1, no last byte enables, TC, Attr and AT zero.
      if (tlp.lengthDw !== 1) return MALFORMED_LENGTH;
      if (tlp.lastBe !== 0) return MALFORMED_BYTE_ENABLES;
      return (tlp.trafficClass | tlp.attributes | tlp.addressType) === 0 ? OK : MALFORMED_FIELD;
    case COMPLETION:
      return checkCompletion(tlp);
    case MESSAGE:
      return tlp.trafficClass !== 0 && needsTrafficClass0(tlp.messageCode) ? MALFORMED_FIELD : OK;
    default:
      return MALFORMED_FORMAT;
  }
}

/**
 * Whether every field is an integer within its place in the header, the fields that must be empty are,
 * and the payload window has the right size and lies in its buffer. Encoding asks it for each TLP, so
 * ranges are tested many at a time; `misfit` then names the culprit.
 */
export function fits(tlp: Tlp, layout: number): boolean {
  const { kind, lengthDw, payloadBytes, addressType } = tlp;
  const outside =
    (tlp.trafficClass & ~7) |
    (tlp.attributes & ~7) |
    (tlp.tag & ~0x3ff) |
    (tlp.requesterId & ~0xffff) |
    (addressType & ~3);
  if (outside !== 0) return false;
  if ((kind & FMT_DATA) !== 0) {
    if (lengthDw < 1 || lengthDw > 1024 || payloadBytes !== lengthDw << 2) return false;
    const { payloadOffset } = tlp;
    if (payloadOffset < 0 || !reaches(tlp.payload, (payloadOffset + payloadBytes) | 0))
      return false;
  } else {
    if (payloadBytes !== 0 || lengthDw > 1024) return false;
    if (lengthDw < 1 !== layout >= MESSAGE) return false;
  }
  switch (layout) {
    case MEMORY:
    case ATOMIC:
      return (
        ((tlp.processingHint & ~3) | (tlp.firstBe & ~15) | (tlp.lastBe & ~15)) === 0 &&
        addressFits(tlp)
      );
    case IO:
      return ((tlp.firstBe & ~15) | addressType) === 0 && !tlp.hints && addressFits(tlp);
    case CONFIG:
      return (
        ((tlp.firstBe & ~15) |
          addressType |
          (tlp.completerId & ~0xffff) |
          (tlp.register & ~0xffc)) ===
          0 && !tlp.hints
      );
    case MESSAGE:
      return (
        ((kind & 7) |
          addressType |
          (tlp.messageCode & ~0xff) |
          (tlp.messageRouting & ~7) |
          (tlp.messageDw2 >>> 0 === tlp.messageDw2 ? 0 : 1) |
          (tlp.messageDw3 >>> 0 === tlp.messageDw3 ? 0 : 1)) ===
          0 && !tlp.hints
      );
    case COMPLETION:
      return (
        (addressType | (tlp.completerId & ~0xffff) | (tlp.lowerAddress & ~0x7f)) === 0 &&
        !tlp.hints &&
        tlp.byteCount >= 1 &&
        tlp.byteCount <= 4096 &&
        statusFits(tlp.status)
      );
    default:
      return false;
  }
}

function addressFits(tlp: Tlp): boolean {
  const { addressHi, addressLo } = tlp;
  if (addressLo >>> 0 !== addressLo || (addressLo & 3) !== 0) return false;
  return (tlp.kind & FMT_4DW) === 0 ? addressHi === 0 : addressHi >>> 0 === addressHi;
}

function statusFits(status: number): boolean {
  return status === 0 || status === 1 || status === 2 || status === 4;
}

/** For the message of a failed assertion: the name of a field for which `fits` said no. */
export function misfit(tlp: Tlp, layout: number): string {
  const isOdd = (name: (typeof WIDTHS)[number][0], mask: number): boolean =>
    (tlp[name] & mask) !== tlp[name];
  if (layout === RESERVED || layout > COMPLETION) return 'kind';
  if (layout === MESSAGE && (tlp.kind & 7) !== 0) return 'kind';
  for (const [name, mask, layouts] of WIDTHS) {
    if (((layouts >> layout) & 1) === 1 && isOdd(name, mask)) return name;
  }
  if (layout > ATOMIC && tlp.hints) return 'hints';
  if (layout > ATOMIC && tlp.addressType !== 0) return 'addressType';
  if (layout === COMPLETION) {
    if (!statusFits(tlp.status)) return 'status';
    if (tlp.byteCount < 1 || tlp.byteCount > 4096) return 'byteCount';
  }
  if (layout <= IO && !addressFits(tlp)) return 'address';
  if (layout === MESSAGE && tlp.messageDw2 >>> 0 !== tlp.messageDw2) return 'messageDw2';
  if (layout === MESSAGE && tlp.messageDw3 >>> 0 !== tlp.messageDw3) return 'messageDw3';
  const hasData = (tlp.kind & FMT_DATA) !== 0;
  if (tlp.payloadBytes !== (hasData ? tlp.lengthDw * 4 : 0)) return 'payloadBytes';
  if (tlp.lengthDw < 1 !== (!hasData && layout >= MESSAGE)) return 'lengthDw';
  return tlp.lengthDw > 1024 ? 'lengthDw' : 'payload';
}

const ALL = 0x7f;
const REQUESTS_WITH_BE = 0x1e;
const WIDTHS = [
  ['trafficClass', 7, ALL],
  ['attributes', 7, ALL],
  ['addressType', 3, ALL],
  ['tag', 0x3ff, ALL],
  ['requesterId', 0xffff, ALL],
  ['firstBe', 15, REQUESTS_WITH_BE],
  ['lastBe', 15, REQUESTS_WITH_BE],
  ['processingHint', 3, (1 << MEMORY) | (1 << ATOMIC)],
  ['completerId', 0xffff, (1 << CONFIG) | (1 << COMPLETION)],
  ['register', 0xffc, 1 << CONFIG],
  ['lowerAddress', 0x7f, 1 << COMPLETION],
  ['messageCode', 0xff, 1 << MESSAGE],
  ['messageRouting', 7, 1 << MESSAGE],
] as const;
