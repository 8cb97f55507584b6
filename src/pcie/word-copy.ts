/**
 * Double words in and out of byte arrays, quickly: where the place is 4-byte aligned, as frames are,
 * through a word view of the underlying buffer, kept from the last call.
 */
import { wordViewsOf } from '#base/copy-bytes';

let target = wordViewsOf(new Uint8Array(4));

/** Whether word views have the byte order that `writeHeader` turns words into. */
const LITTLE_ENDIAN = new Uint8Array(new Int32Array([1]).buffer)[0] === 1;

/** Writes the three or four double words of a header, `headerBytes` being 12 or 16. */
export function writeHeader(
  to: Uint8Array,
  offset: number,
  headerBytes: number,
  dw0: number,
  dw1: number,
  dw2: number,
  dw3: number,
): void {
  if (to !== target.bytes) target = wordViewsOf(to);
  const at = (target.base + offset) | 0;
  if ((at & 3) !== 0 || !LITTLE_ENDIAN) {
    writeBigEndian(to, offset, dw0);
    writeBigEndian(to, offset + 4, dw1);
    writeBigEndian(to, offset + 8, dw2);
    if (headerBytes === 16) writeBigEndian(to, offset + 12, dw3);
    return;
  }
  // Bytes are swapped in place: as a function that would be four calls, too many to be inlined.
  const { words } = target;
  const i = at >> 2;
  words[i] = (dw0 << 24) | ((dw0 & 0xff00) << 8) | ((dw0 >>> 8) & 0xff00) | (dw0 >>> 24);
  words[(i + 1) | 0] = (dw1 << 24) | ((dw1 & 0xff00) << 8) | ((dw1 >>> 8) & 0xff00) | (dw1 >>> 24);
  words[(i + 2) | 0] = (dw2 << 24) | ((dw2 & 0xff00) << 8) | ((dw2 >>> 8) & 0xff00) | (dw2 >>> 24);
  if (headerBytes !== 16) return;
  words[(i + 3) | 0] = (dw3 << 24) | ((dw3 & 0xff00) << 8) | ((dw3 >>> 8) & 0xff00) | (dw3 >>> 24);
}

/** Writes the low 32 bits of `value`. */
export function writeBigEndian(bytes: Uint8Array, at: number, value: number): void {
  const word = value | 0;
  bytes[at] = word >>> 24;
  bytes[at + 1] = word >>> 16;
  bytes[at + 2] = word >>> 8;
  bytes[at + 3] = word;
}

/** Reads a double word, as a signed number. */
export function readBigEndian(bytes: Uint8Array, at: number): number {
  return (
    ((bytes[at] as number) << 24) |
    ((bytes[(at + 1) | 0] as number) << 16) |
    ((bytes[(at + 2) | 0] as number) << 8) |
    (bytes[(at + 3) | 0] as number)
  );
}

/**
 * Whether `bytes` has at least `end` bytes, `end` being 1 or more. An element read tells it in a tenth
 * of the time that `bytes.length` takes in current engines.
 */
export function reaches(bytes: Uint8Array, end: number): boolean {
  return bytes[end - 1] !== undefined;
}
