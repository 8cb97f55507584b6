/**
 * Finds where a JSON value ends and whether it is one, over bytes that come in pieces. Nothing is
 * kept of the value but a few numbers, so that its size does not matter.
 *
 * Beyond RFC 8259 it takes the words that C and Python programs print for numbers that are none:
 * `NaN`, `Infinity`, `nan`, `inf`, with or without a sign. Numbers are checked for their characters
 * alone, and text may be any bytes but control characters.
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
  OPEN_ARRAY,
  OPEN_OBJECT,
  OUTSIDE,
  QUOTE,
  TEXT,
  UNICODE_ESCAPE,
  WORDS,
} from './json-bytes.ts';
import { MAX_DEPTH } from './json-skip.ts';

export const SCAN = {
  /** The piece ended within the value. */
  more: 0,
  done: 1,
  bad: 2,
} as const;
export type ScanStatus = (typeof SCAN)[keyof typeof SCAN];

/** What is expected next. */
const VALUE = 0;
const FIRST_VALUE = 1;
const KEY = 2;
const FIRST_KEY = 3;
const AFTER_KEY = 4;
const AFTER_VALUE = 5;
const IN_STRING = 6;
const IN_KEY = 7;
const ESCAPED_IN_STRING = 8;
const ESCAPED_IN_KEY = 9;
const IN_NUMBER = 10;
const IN_WORD = 11;
const HEX_IN_STRING = 12;
const HEX_IN_KEY = 13;

export class JsonScanner {
  /** Where the last `scan` stopped: behind the value, at the byte that is wrong, or at the end. */
  position = 0;
  #state = VALUE;
  #depth = 0;
  /** 1 for an object. */
  readonly #kinds = new Uint8Array(MAX_DEPTH + 1);
  #word = 0;
  /** Of a `\u`, so far. */
  #digits = 0;

  /** Forgets what came before; the next byte scanned is the first of a value. */
  begin(): void {
    this.#state = VALUE;
    this.#depth = 0;
    this.#word = 0;
  }

  /** A number or word ends at the byte behind it; before that byte is seen it is not done. */
  scan(bytes: Uint8Array, from: number, end: number): ScanStatus {
    const kinds = this.#kinds;
    let state = this.#state;
    let depth = this.#depth;
    let i = from;
    while (i < end) {
      const byte = bytes[i] as number;
      switch (state) {
        case VALUE:
        case FIRST_VALUE:
          if (byte === QUOTE) state = IN_STRING;
          else if (byte === OPEN_OBJECT || byte === OPEN_ARRAY) {
            if (depth === MAX_DEPTH) return this.#stop(SCAN.bad, i, state, depth);
            depth += 1;
            kinds[depth] = byte === OPEN_OBJECT ? 1 : 0;
            state = byte === OPEN_OBJECT ? FIRST_KEY : FIRST_VALUE;
          } else if (byte === CLOSE_ARRAY && state === FIRST_VALUE) {
            depth -= 1;
            if (depth === 0) return this.#stop(SCAN.done, i + 1, state, depth);
            state = AFTER_VALUE;
          } else if (BARE[byte] === OUTSIDE.number) state = IN_NUMBER;
          else if (BARE[byte] === OUTSIDE.letter) {
            state = IN_WORD;
            this.#word = 0;
            continue;
          } else if (BARE[byte] !== OUTSIDE.space) return this.#stop(SCAN.bad, i, state, depth);
          i += 1;
          break;
        case KEY:
        case FIRST_KEY:
          if (byte === QUOTE) state = IN_KEY;
          else if (byte === CLOSE_OBJECT && state === FIRST_KEY) {
            depth -= 1;
            if (depth === 0) return this.#stop(SCAN.done, i + 1, state, depth);
            state = AFTER_VALUE;
          } else if (BARE[byte] !== OUTSIDE.space) return this.#stop(SCAN.bad, i, state, depth);
          i += 1;
          break;
        case AFTER_KEY:
          if (byte === COLON) state = VALUE;
          else if (BARE[byte] !== OUTSIDE.space) return this.#stop(SCAN.bad, i, state, depth);
          i += 1;
          break;
        case AFTER_VALUE:
          if (byte === COMMA) state = kinds[depth] === 1 ? KEY : VALUE;
          else if (byte === (kinds[depth] === 1 ? CLOSE_OBJECT : CLOSE_ARRAY)) {
            depth -= 1;
            if (depth === 0) return this.#stop(SCAN.done, i + 1, state, depth);
          } else if (BARE[byte] !== OUTSIDE.space) return this.#stop(SCAN.bad, i, state, depth);
          i += 1;
          break;
        case IN_STRING:
        case IN_KEY: {
          let kind = TEXT[byte] as number;
          while (kind === IN_TEXT.plain) {
            i += 1;
            if (i === end) return this.#stop(SCAN.more, i, state, depth);
            kind = TEXT[bytes[i] as number] as number;
          }
          if (kind === IN_TEXT.control) return this.#stop(SCAN.bad, i, state, depth);
          i += 1;
          if (kind === IN_TEXT.backslash) {
            state = state === IN_KEY ? ESCAPED_IN_KEY : ESCAPED_IN_STRING;
          } else if (state === IN_KEY) state = AFTER_KEY;
          else {
            state = AFTER_VALUE;
            if (depth === 0) return this.#stop(SCAN.done, i, state, depth);
          }
          break;
        }
        case ESCAPED_IN_STRING:
        case ESCAPED_IN_KEY:
          if (ESCAPES[byte] === 0) return this.#stop(SCAN.bad, i, state, depth);
          if (byte === UNICODE_ESCAPE) {
            state = state === ESCAPED_IN_KEY ? HEX_IN_KEY : HEX_IN_STRING;
            this.#digits = 0;
          } else state = state === ESCAPED_IN_KEY ? IN_KEY : IN_STRING;
          i += 1;
          break;
        case HEX_IN_STRING:
        case HEX_IN_KEY:
          if (HEX[byte] !== 1) return this.#stop(SCAN.bad, i, state, depth);
          this.#digits += 1;
          if (this.#digits === 4) state = state === HEX_IN_KEY ? IN_KEY : IN_STRING;
          i += 1;
          break;
        case IN_NUMBER: {
          let kind = BARE[byte] as number;
          while (kind === OUTSIDE.number) {
            i += 1;
            if (i === end) return this.#stop(SCAN.more, i, state, depth);
            kind = BARE[bytes[i] as number] as number;
          }
          if (kind === OUTSIDE.letter) {
            state = IN_WORD;
            this.#word = 0;
            break;
          }
          state = AFTER_VALUE;
          if (depth === 0) return this.#stop(SCAN.done, i, state, depth);
          break;
        }
        default: {
          // A word, or the exponent of a number.
          if (BARE[byte] === OUTSIDE.letter) {
            this.#word = hashByte(this.#word, byte);
            i += 1;
            break;
          }
          if (!WORDS.has(this.#word)) return this.#stop(SCAN.bad, i, state, depth);
          if (BARE[byte] === OUTSIDE.number) {
            state = IN_NUMBER;
            break;
          }
          state = AFTER_VALUE;
          if (depth === 0) return this.#stop(SCAN.done, i, state, depth);
        }
      }
    }
    return this.#stop(SCAN.more, i, state, depth);
  }

  #stop(status: ScanStatus, position: number, state: number, depth: number): ScanStatus {
    this.position = position;
    this.#state = state;
    this.#depth = depth;
    return status;
  }
}
