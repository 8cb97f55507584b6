/**
 * TLPs to bytes and back, as PCIe 5.0 base chapter 2.2 lays them out (network byte order in the
 * header, payload bytes in address order, ECRC last).
 */
import type { Tlp } from './tlp.ts';

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

/** Bytes `encodeTlp` will write: 12 or 16 of header, payload, 4 of ECRC if `digest`. */
export function encodedTlpBytes(_tlp: Tlp): number {
  throw new Error('to be written');
}

/**
 * Writes `tlp` at `offset` of `bytes`, which must have room for `encodedTlpBytes(tlp)`.
 * The record must be valid (`decodeTlp` of the result gives `OK`): asserted, for a mistake here is a bug.
 * Returns the bytes written.
 */
export function encodeTlp(_tlp: Tlp, _bytes: Uint8Array, _offset: number): number {
  throw new Error('to be written');
}

/**
 * Reads the `length` bytes at `offset` as exactly one TLP into `into`, with full validation.
 * On success every field the kind has is set and the payload is a window into `bytes` (no copy).
 * On failure `into` holds whatever header fields could be read; the caller answers as 2.3 says.
 * Never reads outside the given range, never throws on any bytes.
 */
export function decodeTlp(
  _bytes: Uint8Array,
  _offset: number,
  _length: number,
  _into: Tlp,
): TlpDecode {
  throw new Error('to be written');
}
