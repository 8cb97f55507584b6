/**
 * Where the parts of a JSON value end that lies whole in one piece. `limit` is where the bytes to look at
 * end, and at least `SPARE_BYTES` more can be looked at without harm; -1 says that the part does not end
 * before the limit, or is not JSON as `JsonScanner` takes it.
 */
import {
  BARE,
  CLOSE_ARRAY,
  CLOSE_OBJECT,
  COLON,
  COMMA,
  ESCAPES,
  hashByte,
  HEX,
  IN_TEXT,
  isSpace,
  NEWLINE,
  OPEN_ARRAY,
  OPEN_OBJECT,
  OUTSIDE,
  QUOTE,
  SPACE,
  TEXT,
  UNICODE_ESCAPE,
  WORDS,
} from './json-bytes.ts';

export const SPARE_BYTES = 8;
export const MAX_DEPTH = 512;
const MAX_INDENT = 64;

export function behindSpace(bytes: Uint8Array, from: number, limit: number): number {
  let i = from;
  while (i < limit && isSpace(bytes[i] as number)) i += 1;
  return i;
}

/** Behind the commas and space between events, up to the end of the piece; how many commas is all the same. */
export function behindSeparators(bytes: Uint8Array, from: number): number {
  let i = from;
  while (i < bytes.length && (bytes[i] === COMMA || isSpace(bytes[i] as number))) i += 1;
  return i;
}

/** Behind the closing quote of the text whose opening quote is at `from`. */
export function endOfText(bytes: Uint8Array, from: number, limit: number): number {
  let i = from + 1;
  while (i < limit) {
    const kind = TEXT[bytes[i] as number] as number;
    i += 1;
    if (kind === IN_TEXT.plain) continue;
    if (kind === IN_TEXT.quote) return i;
    if (kind === IN_TEXT.control || ESCAPES[bytes[i] as number] === 0) return -1;
    if (bytes[i] === UNICODE_ESCAPE && !hasFourDigits(bytes, i + 1)) return -1;
    i += 1;
  }
  return -1;
}

function hasFourDigits(bytes: Uint8Array, from: number): boolean {
  for (let i = from; i < from + 4; i++) if (HEX[bytes[i] as number] !== 1) return false;
  return true;
}

/** At the value of the key whose closing quote is at `keyEnd - 1`. */
export function valueOfKey(bytes: Uint8Array, keyEnd: number, limit: number): number {
  let i = keyEnd;
  if (bytes[i] !== COLON) {
    i = behindSpace(bytes, i, limit);
    if (bytes[i] !== COLON) return -1;
  }
  return behindSpace(bytes, i + 1, limit);
}

/** Behind the value at `from`, which is at `depth`. */
export function endOfValue(bytes: Uint8Array, from: number, limit: number, depth: number): number {
  if (from >= limit) return -1;
  const byte = bytes[from] as number;
  if (byte === QUOTE) return endOfText(bytes, from, limit);
  if (byte === OPEN_OBJECT) return endOfObject(bytes, from, limit, depth + 1);
  if (byte === OPEN_ARRAY) return endOfArray(bytes, from, limit, depth + 1);
  return endOfBare(bytes, from, limit);
}

/** Numbers and words. */
function endOfBare(bytes: Uint8Array, from: number, limit: number): number {
  let i = from;
  while (i < limit) {
    const kind = BARE[bytes[i] as number] as number;
    if (kind === OUTSIDE.number) {
      i += 1;
      continue;
    }
    if (kind !== OUTSIDE.letter) return i === from ? -1 : i;
    let word = 0;
    while (i < limit && BARE[bytes[i] as number] === OUTSIDE.letter) {
      word = hashByte(word, bytes[i] as number);
      i += 1;
    }
    if (!WORDS.has(word)) return -1;
  }
  return -1;
}

function endOfArray(bytes: Uint8Array, from: number, limit: number, depth: number): number {
  if (depth > MAX_DEPTH) return -1;
  let i = behindSpace(bytes, from + 1, limit);
  if (bytes[i] === CLOSE_ARRAY) return i < limit ? i + 1 : -1;
  while (i < limit) {
    i = endOfValue(bytes, i, limit, depth);
    if (i < 0) return -1;
    if (bytes[i] !== COMMA) {
      i = behindSpace(bytes, i, limit);
      if (bytes[i] === CLOSE_ARRAY) return i < limit ? i + 1 : -1;
      if (bytes[i] !== COMMA) return -1;
    }
    i = behindSpace(bytes, i + 1, limit);
  }
  return -1;
}

function endOfObject(bytes: Uint8Array, from: number, limit: number, depth: number): number {
  if (depth > MAX_DEPTH) return -1;
  const i = behindSpace(bytes, from + 1, limit);
  if (bytes[i] === CLOSE_OBJECT) return i < limit ? i + 1 : -1;
  return endOfMembers(bytes, i, limit, depth);
}

/** Behind the closing brace, from the quote of a key on. */
export function endOfMembers(
  bytes: Uint8Array,
  from: number,
  limit: number,
  depth: number,
): number {
  let i = from;
  while (i < limit) {
    if (bytes[i] !== QUOTE) return -1;
    i = endOfText(bytes, i, limit);
    if (i < 0) return -1;
    i = valueOfKey(bytes, i, limit);
    if (i < 0) return -1;
    i = endOfValue(bytes, i, limit, depth);
    if (i < 0) return -1;
    if (bytes[i] !== COMMA) {
      i = behindSpace(bytes, i, limit);
      if (bytes[i] === CLOSE_OBJECT) return i < limit ? i + 1 : -1;
      if (bytes[i] !== COMMA) return -1;
    }
    i = behindSpace(bytes, i + 1, limit);
  }
  return -1;
}

/**
 * Behind the object whose opening brace, at `start`, stands alone behind the indentation of its line, from
 * `from` on: at the brace that stands first behind the same indentation. All lines between must be
 * indented more; what they hold is not looked at. -1 where the object is not laid out like that.
 */
export function endOfLines(bytes: Uint8Array, start: number, from: number, limit: number): number {
  if (bytes[start + 1] !== NEWLINE) return -1;
  let indent = 0;
  while (indent <= MAX_INDENT && indent < start && bytes[start - 1 - indent] === SPACE) indent += 1;
  if (indent === 0 || indent > MAX_INDENT || bytes[start - 1 - indent] !== NEWLINE) return -1;
  let i = from;
  while (i < limit) {
    while (i < limit && bytes[i] !== NEWLINE) i += 1;
    const line = i + 1;
    if (line + indent >= limit) return -1;
    for (i = line; i < line + indent; i += 1) if (bytes[i] !== SPACE) return -1;
    if (bytes[i] === CLOSE_OBJECT) return i + 1;
    if (bytes[i] !== SPACE) return -1;
  }
  return -1;
}
