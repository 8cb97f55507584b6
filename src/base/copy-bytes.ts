/**
 * Bytes from one array to another, quickly. `TypedArray.set` copies fastest, but for a part of an array
 * it needs a view of that part: for a payload that costs as much as the copy, and is garbage after it.
 * Up to a few hundred bytes whole words move instead, through views of the buffers under the arrays,
 * kept from the last calls: 8 bytes at a time where both places are as far from a multiple of 8, else 4.
 */

/** A byte array with word views of the whole buffer under it. */
class WordViews {
  readonly bytes: Uint8Array;
  readonly buffer: ArrayBufferLike;
  /** Where in the buffer the array begins: slow to ask for. */
  readonly base: number;
  readonly words: Int32Array;
  readonly longs: BigInt64Array;

  constructor(bytes: Uint8Array) {
    const { buffer } = bytes;
    this.bytes = bytes;
    this.buffer = buffer;
    this.base = bytes.byteOffset;
    this.words = new Int32Array(buffer, 0, buffer.byteLength >>> 2);
    this.longs = new BigInt64Array(buffer, 0, buffer.byteLength >>> 3);
  }
}

// The arrays seen last, so that going round among a few buffers makes no views.
const KEPT = 8;
const kept = Array.from({ length: KEPT }, () => new WordViews(new Uint8Array(8)));
let oldest = 0;

/** The views of `bytes`, kept or made. */
export function wordViewsOf(bytes: Uint8Array): WordViews {
  for (let i = 0; i < KEPT; i++) {
    const views = kept[i] as WordViews;
    if (views.bytes === bytes) return views;
  }
  const views = new WordViews(bytes);
  kept[oldest] = views;
  oldest = (oldest + 1) % KEPT;
  return views;
}

// Above these, measured, the view that `set` needs costs less than the loop.
const LONGEST_BY_LONGS = 1024;
const LONGEST_BY_WORDS = 512;
const LONGEST_BY_BYTES = 32;
/** Places are counted in 32 bits. */
const HIGHEST_PLACE = 0x7fff_ffff - LONGEST_BY_LONGS;

let target = wordViewsOf(new Uint8Array(8));
let source = target;

/**
 * Copies `bytes` bytes between two arrays; if they share a buffer, as if through a third. Both ranges
 * must lie inside their arrays: not all of them are checked.
 */
export function copyBytes(
  to: Uint8Array,
  toOffset: number,
  from: Uint8Array,
  fromOffset: number,
  bytes: number,
): void {
  if (bytes <= LONGEST_BY_LONGS) {
    if (to !== target.bytes) target = wordViewsOf(to);
    if (from !== source.bytes) source = wordViewsOf(from);
    const t = target.base + toOffset;
    const f = source.base + fromOffset;
    if (target.buffer !== source.buffer && t <= HIGHEST_PLACE && f <= HIGHEST_PLACE) {
      if (((t | f | bytes) & 3) === 0) {
        if (((t ^ f) & 7) === 0) {
          copyLongs(t | 0, f | 0, bytes | 0);
          return;
        }
        if (bytes <= LONGEST_BY_WORDS) {
          copyWords(t >> 2, f >> 2, bytes >> 2);
          return;
        }
      } else if (bytes <= LONGEST_BY_BYTES) {
        for (let i = 0; i < bytes; i++) to[toOffset + i] = from[fromOffset + i] as number;
        return;
      }
    }
  }
  to.set(from.subarray(fromOffset, fromOffset + bytes), toOffset);
}

/** A range of an array, in an array of its own. Not `slice`: of a `Buffer` it copies nothing. */
export function copyOfBytes(from: Uint8Array, offset: number, bytes: number): Uint8Array {
  return new Uint8Array(from.subarray(offset, offset + bytes));
}

// The `| 0` in both loops spare the overflow checks of index arithmetic: they take half the time.

function copyLongs(toByte: number, fromByte: number, bytes: number): void {
  const { longs, words } = target;
  const { longs: fromLongs, words: fromWords } = source;
  let byte = 0;
  if ((toByte & 7) !== 0 && bytes !== 0) {
    words[toByte >> 2] = fromWords[fromByte >> 2] as number;
    byte = 4;
  }
  let t = (toByte + byte) >> 3;
  let f = (fromByte + byte) >> 3;
  const end = (t + ((bytes - byte) >> 3)) | 0;
  for (; ((t + 4) | 0) <= end; t = (t + 4) | 0, f = (f + 4) | 0) {
    longs[t] = fromLongs[f] as bigint;
    longs[(t + 1) | 0] = fromLongs[(f + 1) | 0] as bigint;
    longs[(t + 2) | 0] = fromLongs[(f + 2) | 0] as bigint;
    longs[(t + 3) | 0] = fromLongs[(f + 3) | 0] as bigint;
  }
  for (; t < end; t = (t + 1) | 0, f = (f + 1) | 0) longs[t] = fromLongs[f] as bigint;
  if (((bytes - byte) & 4) !== 0) words[t << 1] = fromWords[f << 1] as number;
}

function copyWords(toWord: number, fromWord: number, count: number): void {
  const { words } = target;
  const { words: fromWords } = source;
  let t = toWord;
  let f = fromWord;
  const end = (t + count) | 0;
  for (; ((t + 4) | 0) <= end; t = (t + 4) | 0, f = (f + 4) | 0) {
    words[t] = fromWords[f] as number;
    words[(t + 1) | 0] = fromWords[(f + 1) | 0] as number;
    words[(t + 2) | 0] = fromWords[(f + 2) | 0] as number;
    words[(t + 3) | 0] = fromWords[(f + 3) | 0] as number;
  }
  for (; t < end; t = (t + 1) | 0, f = (f + 1) | 0) words[t] = fromWords[f] as number;
}
