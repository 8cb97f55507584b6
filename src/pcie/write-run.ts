/**
 * Runs of memory writes, which long transfers become: TLPs alike in everything but their addresses
 * and payloads, each address right behind the last byte of the one before. What holds for the first,
 * and for the range of addresses, holds for all; so it is found out once a run, not once a TLP.
 */
import { assert } from '#base/assert';
import { copyBytes } from '#base/copy-bytes';
import type { Tlp } from './tlp.ts';
import { encodeTlp } from './tlp-codec.ts';
import { readBigEndian, reaches, writeHeader } from './word-copy.ts';

/** More are not taken together, so that others get their turns and a peer's run bounds its work. */
export const MAX_RUN_TLPS = 64;
const FOUR_GIB = 0x1_0000_0000;

/**
 * How many writes of `mps` bytes each, from `address` on, are a run within `bytes` bytes: none unless
 * the address is a multiple of `mps` (a power of two), which keeps each within its 4 KiB (2.2.7).
 */
export function runOfWrites(address: number, bytes: number, mps: number): number {
  if ((address & (mps - 1)) !== 0 || bytes < mps) return 0;
  const count = Math.min(MAX_RUN_TLPS, Math.floor(bytes / mps));
  // The upper half of the address is one of the things that are alike.
  const low = address % FOUR_GIB;
  return low + count * mps <= FOUR_GIB ? count : 0;
}

/** Copies the payloads of a run, `strideBytes` apart from that of `first` on, to `at` of `to` side by side. */
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
 * Encodes a run of `count` writes, `strideBytes` apart from `offset` of `bytes` on. `first` is as
 * `encodeTlp` wants it, its address as `runOfWrites` does; the payloads of the others lie behind its own.
 * All is asserted.
 */
export function encodeWriteRun(
  first: Tlp,
  count: number,
  bytes: Uint8Array,
  offset: number,
  strideBytes: number,
): void {
  const size = encodeTlp(first, bytes, offset);
  const { payload, payloadBytes, addressLo } = first;
  const headerBytes = size - payloadBytes;
  assert(runOfWrites(addressLo, count * payloadBytes, payloadBytes) === count, 'not a run');
  assert(
    !first.digest &&
      (payloadBytes & (payloadBytes - 1)) === 0 &&
      reaches(payload, first.payloadOffset + count * payloadBytes) &&
      reaches(bytes, offset + (count - 1) * strideBytes + size),
    'a run has no digests, and is no longer than its payload and the room for it',
  );
  const dw0 = readBigEndian(bytes, offset);
  const dw1 = readBigEndian(bytes, offset + 4);
  const is64 = headerBytes === 16;
  const high = is64 ? readBigEndian(bytes, offset + 8) : 0;
  let low = readBigEndian(bytes, offset + headerBytes - 4);
  let from = first.payloadOffset;
  let at = offset;
  for (let index = 1; index < count; index++) {
    low = (low + payloadBytes) | 0;
    from = (from + payloadBytes) | 0;
    at = (at + strideBytes) | 0;
    writeHeader(bytes, at, headerBytes, dw0, dw1, is64 ? high : low, low);
    copyBytes(bytes, (at + headerBytes) | 0, payload, from, payloadBytes);
  }
}
