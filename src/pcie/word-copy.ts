/**
 * Copies of a few words between two byte arrays, quicker than a byte loop and without the view object
 * that `set(subarray())` makes. Where both places are 4-byte aligned, as frames and payloads are,
 * whole words move through word views of the two underlying buffers, kept from the last call.
 */

let target: Uint8Array = new Uint8Array(4);
let targetWords = new Int32Array(target.buffer);
let source: Uint8Array = target;
let sourceWords = targetWords;

// From here on one short-lived view costs less than the loop.
const LOOP_LIMIT_BYTES = 256;

function wordsOf(bytes: Uint8Array): Int32Array {
  return new Int32Array(bytes.buffer, 0, bytes.buffer.byteLength >>> 2);
}

/** Copies `length` bytes, a multiple of 4; both ranges must lie inside, and not overlap. */
export function copyWords(
  to: Uint8Array,
  toOffset: number,
  from: Uint8Array,
  fromOffset: number,
  length: number,
): void {
  if (length > LOOP_LIMIT_BYTES) {
    to.set(from.subarray(fromOffset, fromOffset + length), toOffset);
    return;
  }
  const toByte = to.byteOffset + toOffset;
  const fromByte = from.byteOffset + fromOffset;
  if (((toByte | fromByte) & 3) !== 0) {
    for (let i = 0; i < length; i++) to[toOffset + i] = from[fromOffset + i] as number;
    return;
  }
  if (to !== target) {
    targetWords = wordsOf(to);
    target = to;
  }
  if (from !== source) {
    sourceWords = wordsOf(from);
    source = from;
  }
  const words = targetWords;
  const fromWords = sourceWords;
  let t = toByte >>> 2;
  let f = fromByte >>> 2;
  const end = t + (length >>> 2);
  for (; t + 4 <= end; t += 4, f += 4) {
    words[t] = fromWords[f] as number;
    words[t + 1] = fromWords[f + 1] as number;
    words[t + 2] = fromWords[f + 2] as number;
    words[t + 3] = fromWords[f + 3] as number;
  }
  for (; t < end; t++, f++) words[t] = fromWords[f] as number;
}
