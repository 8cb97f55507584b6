/**
 * Runs, which long transfers become: TLPs alike in everything but their payload and one number that
 * follows from it. Memory writes, each address right behind the last byte of the one before; or
 * completions of one memory read, each with the byte count that the one before has left, their payloads
 * multiples of 128 bytes, so that their lower addresses are alike too. What holds for the first, and for
 * the range of addresses or bytes, holds for all; so it is found out once a run, not once a TLP.
 */
import { assert } from '#base/assert';
import { copyBytes } from '#base/copy-bytes';
import { type Tlp, TlpKind } from './tlp.ts';
import { encodeTlp } from './tlp-codec.ts';
import { readBigEndian, reaches, writeHeader } from './word-copy.ts';

/** More are not taken together, so that others get their turns and a peer's run bounds its work. */
export const MAX_RUN_TLPS = 64;
const FOUR_GIB = 0x1_0000_0000;
/** What a completion says of its address goes up to here. */
const LOWER_ADDRESSES = 128;
const BYTE_COUNT = 0xfff;

/**
 * How many writes of `mps` bytes each, from `address` on, are a run within `bytes` bytes: none unless
 * the address is a multiple of `mps` (a power of two), which keeps each within its 4 KiB (2.2.7).
 */
export function runOfWrites(address: number, bytes: number, mps: number): number {
  if ((address & (mps - 1)) !== 0 || bytes < mps) return 0;
  const count = Math.min(MAX_RUN_TLPS, Math.floor(bytes / mps));
  // The upper half of the address is one of the things that are alike. Not `%`: of numbers this large it
  // is a call.
  const low = address >>> 0;
  return low + count * mps <= FOUR_GIB ? count : 0;
}

/**
 * How many completions of `mps` bytes each, from `address` on, are a run within the `remaining` bytes of
 * a read: none unless the address is a multiple of `rcb`, as `completionChunk` gives other sizes then.
 */
export function runOfCompletions(
  address: number,
  remaining: number,
  mps: number,
  rcb: number,
): number {
  if ((address & (rcb - 1)) !== 0 || mps % LOWER_ADDRESSES !== 0) return 0;
  return Math.min(MAX_RUN_TLPS, Math.floor(remaining / mps));
}

/** Copies the payloads of a run, `strideBytes` apart, to `at` of `to` side by side. */
export function copyRunPayload(
  first: Tlp,
  count: number,
  strideBytes: number,
  to: Uint8Array,
  at: number,
): void {
  const { payload, payloadOffset, payloadBytes } = first;
  for (let index = 0; index < count; index++) {
    const from = payloadOffset + index * strideBytes;
    copyBytes(to, at + index * payloadBytes, payload, from, payloadBytes);
  }
}

/**
 * Encodes a run of `count` TLPs, `strideBytes` apart from `offset` of `bytes` on. `first` is as `encodeTlp`
 * wants it, and as `runOfWrites` or `runOfCompletions` does; the payloads of the others lie behind its own.
 * All is asserted.
 */
export function encodeRun(
  first: Tlp,
  count: number,
  bytes: Uint8Array,
  offset: number,
  strideBytes: number,
): void {
  const size = encodeTlp(first, bytes, offset);
  const { payload, payloadBytes } = first;
  const headerBytes = size - payloadBytes;
  assert(startsRun(first, count), 'not a run');
  assert(
    !first.digest &&
      reaches(payload, first.payloadOffset + count * payloadBytes) &&
      reaches(bytes, offset + (count - 1) * strideBytes + size),
    'a run has no digests, and is no longer than its payload and the room for it',
  );
  const dw0 = readBigEndian(bytes, offset);
  let dw1 = readBigEndian(bytes, offset + 4);
  const is64 = headerBytes === 16;
  const high = is64 ? readBigEndian(bytes, offset + 8) : 0;
  let low = readBigEndian(bytes, offset + headerBytes - 4);
  let from = first.payloadOffset;
  let at = offset;
  const counts = first.kind === TlpKind.CplD;
  for (let index = 1; index < count; index++) {
    // 4096 bytes are written as 0, of which the rest is as much as of 4096.
    if (counts) dw1 = (dw1 & ~BYTE_COUNT) | ((dw1 - payloadBytes) & BYTE_COUNT);
    else low = (low + payloadBytes) | 0;
    from = (from + payloadBytes) | 0;
    at = (at + strideBytes) | 0;
    writeHeader(bytes, at, headerBytes, dw0, dw1, is64 ? high : low, low);
    copyBytes(bytes, (at + headerBytes) | 0, payload, from, payloadBytes);
  }
}

function startsRun(first: Tlp, count: number): boolean {
  const { kind, payloadBytes, byteCount, lowerAddress } = first;
  const bytes = count * payloadBytes;
  if (kind !== TlpKind.CplD) {
    const isPower = (payloadBytes & (payloadBytes - 1)) === 0;
    return isPower && runOfWrites(first.addressLo, bytes, payloadBytes) === count;
  }
  return (
    bytes <= byteCount &&
    !first.byteCountModified &&
    runOfCompletions(lowerAddress, bytes, payloadBytes, 4) === count
  );
}
