/**
 * Completions are made from the request they answer (2.2.9): its requester ID, tag, TC and attributes,
 * and the byte count and lower address that follow from its byte enables.
 */
import { ATTR_ID_BASED_ORDERING, CompletionStatus, TlpKind, type Tlp } from './tlp.ts';

// Index of the lowest and the highest set bit of a byte-enable field; table 2-38's rows for 0 follow.
const LOWEST = [0, 0, 1, 0, 2, 0, 1, 0, 3, 0, 1, 0, 2, 0, 1, 0];
const HIGHEST = [0, 0, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3];

export function isMemoryRead(kind: TlpKind): boolean {
  return kind === TlpKind.MRd32 || kind === TlpKind.MRd64;
}

function isMemory(kind: TlpKind): boolean {
  return isMemoryRead(kind) || kind === TlpKind.MWr32 || kind === TlpKind.MWr64;
}

/** Memory reads with TH carry a steering tag where byte enables are; all bytes count (2.2.5). */
function allBytesEnabled(request: Tlp): boolean {
  return !isMemory(request.kind) || (request.hints && isMemoryRead(request.kind));
}

/**
 * The byte enables of double word `index` of a memory, I/O or config request, 0 to 15. Those of an
 * AtomicOp, or of a read with a steering tag, are all ones.
 */
export function byteEnablesAt(request: Tlp, index: number): number {
  const { kind, lengthDw } = request;
  const isAtomic = (kind & 0x1f) >= 0x0c && (kind & 0x1f) <= 0x0e;
  if (isAtomic || (request.hints && isMemoryRead(kind))) return 0xf;
  if (index === 0) return request.firstBe;
  return index === lengthDw - 1 ? request.lastBe : 0xf;
}

/**
 * The bytes a completion with status SC answers, all in all: for a memory read from the first enabled
 * byte to the last (table 2-38, a zero-length read counts 1), for an AtomicOp its operand size, for
 * config and I/O requests 4. For a memory write the same span, and 0 when nothing is enabled.
 */
export function requestByteCount(request: Tlp): number {
  const { kind, lengthDw } = request;
  switch (kind) {
    case TlpKind.FetchAdd32:
    case TlpKind.FetchAdd64:
    case TlpKind.Swap32:
    case TlpKind.Swap64:
      return lengthDw * 4;
    case TlpKind.CAS32:
    case TlpKind.CAS64:
      return lengthDw * 2;
    default:
      break;
  }
  if (!isMemory(kind)) return 4;
  if (allBytesEnabled(request)) return lengthDw * 4;
  const { firstBe } = request;
  const first = LOWEST[firstBe] as number;
  if (lengthDw === 1) {
    if (firstBe === 0) return isMemoryRead(kind) ? 1 : 0;
    return (HIGHEST[firstBe] as number) - first + 1;
  }
  const last = HIGHEST[request.lastBe] as number;
  return (lengthDw - 1) * 4 + last - first + 1;
}

/**
 * The address of the first enabled byte of a memory, I/O or atomic request; of the double word itself
 * when none is enabled. Exact below 2^53 (`hasSafeAddress`).
 */
export function firstByteAddress(request: Tlp): number {
  const address = request.addressHi * 0x1_0000_0000 + request.addressLo;
  return allBytesEnabled(request) ? address : address + (LOWEST[request.firstBe] as number);
}

/** True when every byte from the first to the last enabled one is enabled (false for 0b101 and such). */
export function isContiguous(request: Tlp): boolean {
  if (allBytesEnabled(request)) return true;
  const { firstBe, lengthDw } = request;
  if (lengthDw === 1) return NO_HOLE[firstBe] === true;
  const { lastBe } = request;
  return firstBe + (firstBe & -firstBe) === 16 && ((lastBe + 1) & lastBe) === 0;
}

// A run of ones plus its lowest bit is a power of two.
const NO_HOLE = Array.from({ length: 16 }, (_, be) => {
  const sum = be + (be & -be);
  return (sum & (sum - 1)) === 0;
});

/** Whether nothing of its request remains after this completion (2.3.1.1). */
export function isLastCompletion(completion: Tlp): boolean {
  const { kind, status, byteCount } = completion;
  if (kind === TlpKind.Cpl || status !== CompletionStatus.SC) return true;
  return byteCount <= answeredBytes(completion);
}

/** Bytes of its request that a completion with data has, as long as more remain. */
export function answeredBytes({ payloadBytes, lowerAddress }: Tlp): number {
  return payloadBytes - (lowerAddress & 3);
}

/**
 * Makes `out` a completion without data (`Cpl`) of the given transaction. Byte count and lower address
 * are those of what remains; `setCompletionPayload` turns it into a `CplD`. IDO is not copied from
 * the request's attributes: it is the completer's own to set (2.2.6.4).
 */
export function setCompletion(
  out: Tlp,
  requesterId: number,
  tag: number,
  trafficClass: number,
  attributes: number,
  completerId: number,
  status: CompletionStatus,
  byteCount: number,
  lowerAddress: number,
): void {
  out.kind = TlpKind.Cpl;
  out.trafficClass = trafficClass;
  out.attributes = attributes & ~ATTR_ID_BASED_ORDERING;
  out.addressType = 0;
  out.hints = false;
  out.processingHint = 0;
  out.poisoned = false;
  out.digest = false;
  out.lengthDw = 0;
  out.requesterId = requesterId;
  out.tag = tag;
  out.completerId = completerId;
  out.status = status;
  out.byteCountModified = false;
  out.byteCount = byteCount;
  out.lowerAddress = lowerAddress & 0x7f;
  out.payloadBytes = 0;
}

/**
 * Gives the completion in `out` its data: `lengthDw` double words at `payloadOffset` of `payload`, the
 * first byte that counts at `lowerAddress % 4` of them.
 */
export function setCompletionPayload(
  out: Tlp,
  payload: Uint8Array,
  payloadOffset: number,
  lengthDw: number,
): void {
  out.kind = TlpKind.CplD;
  out.lengthDw = lengthDw;
  out.payload = payload;
  out.payloadOffset = payloadOffset;
  out.payloadBytes = lengthDw * 4;
}

/**
 * Makes `out` the whole answer without data to `request`: any status for I/O and config writes, a
 * status other than SC for the rest. `out` may be `request` itself.
 */
export function completeWithoutData(
  out: Tlp,
  request: Tlp,
  completerId: number,
  status: CompletionStatus,
): void {
  setCompletion(
    out,
    request.requesterId,
    request.tag,
    request.trafficClass,
    request.attributes,
    completerId,
    status,
    requestByteCount(request),
    isMemoryRead(request.kind) ? firstByteAddress(request) & 127 : 0,
  );
}

/**
 * Makes `out` one of the completions with data (SC) of `request`: of a memory read the part of `bytes`
 * bytes (`completionChunk`) that starts at `address`, with `remaining` bytes left including these; of
 * any other request all of it, where `address` is 0 and `remaining` and `bytes` are its byte count.
 * The payload is `payload` from `payloadOffset`, in whole double words as `setCompletionPayload` says.
 */
export function completeWithData(
  out: Tlp,
  request: Tlp,
  completerId: number,
  address: number,
  remaining: number,
  bytes: number,
  payload: Uint8Array,
  payloadOffset: number,
): void {
  const { requesterId, tag, trafficClass, attributes } = request;
  const low = address & 127;
  setCompletion(
    out,
    requesterId,
    tag,
    trafficClass,
    attributes,
    completerId,
    CompletionStatus.SC,
    remaining,
    low,
  );
  setCompletionPayload(out, payload, payloadOffset, ((low & 3) + bytes + 3) >>> 2);
}
