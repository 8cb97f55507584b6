/**
 * Finds the next place in a damaged trace where reading can go on, over bytes that come in pieces:
 *
 * - `{ "ph":`, or another key that events begin with, behind a `,` or `}`: an event;
 * - `"traceEvents": [`: the events;
 * - `], "traceName":`, or another key that stands beside the events: a field.
 */
import {
  CLOSE_ARRAY,
  CLOSE_OBJECT,
  COLON,
  COMMA,
  isSpace,
  OPEN_ARRAY,
  OPEN_OBJECT,
  QUOTE,
} from './json-bytes.ts';

const EVENT_KEYS = new Set(['ph', 'cat', 'name', 'pid', 'tid', 'ts', 'dur', 'id', 'args']);
const FIELD_KEYS = new Set([
  'schemaVersion',
  'deviceProperties',
  'distributedInfo',
  'displayTimeUnit',
  'baseTimeNanoseconds',
  'traceName',
  'metadata',
  'trace_id',
  'INFO',
]);
export const EVENTS_KEY = 'traceEvents';
const MAX_KEY = 24;
/** Of the brace, the key and the colon with the white space between. */
const MAX_PREFIX = 256;

export type Boundary =
  /** `prefix` is what was seen of it, up to and with the byte at `position - 1`. */
  | { readonly kind: 'event'; readonly prefix: Uint8Array; readonly position: number }
  | { readonly kind: 'events'; readonly position: number }
  /** Behind the colon. */
  | { readonly kind: 'field'; readonly key: string; readonly position: number };

/** What a key found would mean, by what stands before it. */
const NOTHING = 0;
const EVENT = 1;
const FIELD = 2;

export class EventBoundary {
  /** The last bytes that are no white space, the newest first. */
  #last = 0;
  #beforeLast = 0;
  #meaning = NOTHING;
  #inKey = false;
  /** The key that was closed, and whether its colon was seen. */
  #key: string | undefined;
  #hasColon = false;
  #text = '';
  readonly #prefix: number[] = [];

  begin(): void {
    this.#last = 0;
    this.#beforeLast = 0;
    this.#forget();
    // The quote before the first byte may have been taken for the end of text.
    this.#inKey = true;
  }

  /** Whether what was seen last closes the events, and the object around them if there is one. */
  get isClosed(): boolean {
    return (
      this.#last === CLOSE_ARRAY ||
      (this.#last === CLOSE_OBJECT && this.#beforeLast === CLOSE_ARRAY)
    );
  }

  /** From `from` on; `undefined`: not in this piece. */
  search(bytes: Uint8Array, from: number, end: number): Boundary | undefined {
    let i = from;
    while (i < end) {
      if (this.#isIdle()) i = this.#passOver(bytes, i, end);
      if (i === end) break;
      const found = this.#take(bytes[i] as number, i + 1);
      if (found !== undefined) return found;
      i += 1;
    }
    return undefined;
  }

  /** Whether only a quote or a brace can begin something. */
  #isIdle(): boolean {
    return !this.#inKey && this.#key === undefined && this.#prefix.length === 0;
  }

  /** At the next byte that can begin something. */
  #passOver(bytes: Uint8Array, from: number, end: number): number {
    let last = this.#last;
    let beforeLast = this.#beforeLast;
    let i = from;
    while (i < end) {
      const byte = bytes[i] as number;
      if (byte === QUOTE || byte === OPEN_OBJECT) break;
      if (!isSpace(byte)) {
        beforeLast = last;
        last = byte;
      }
      i += 1;
    }
    this.#last = last;
    this.#beforeLast = beforeLast;
    return i;
  }

  #take(byte: number, position: number): Boundary | undefined {
    if (this.#prefix.length > 0 && this.#prefix.push(byte) > MAX_PREFIX) this.#forget();
    if (this.#inKey) {
      if (isKeyByte(byte) && this.#text.length < MAX_KEY) {
        this.#text += String.fromCharCode(byte);
        return undefined;
      }
      const meaning = this.#meaning;
      const key = this.#text;
      this.#inKey = false;
      const isKnown =
        (meaning === EVENT && EVENT_KEYS.has(key)) ||
        (meaning === FIELD && FIELD_KEYS.has(key)) ||
        key === EVENTS_KEY;
      if (byte === QUOTE && isKnown) {
        this.#key = key;
        this.#note(byte);
        return undefined;
      }
      // Not a key that counts; where quotes are out of step this byte may begin one.
      this.#forget();
    }
    if (isSpace(byte)) return undefined;
    if (this.#key !== undefined) {
      const found = this.#behindKey(this.#key, byte, position);
      if (found !== undefined) return found;
      if (this.#key !== undefined) {
        this.#note(byte);
        return undefined;
      }
    }
    if (byte === QUOTE) {
      const isFirst = this.#last === OPEN_OBJECT && this.#prefix.length > 0;
      if (!isFirst) this.#prefix.length = 0;
      this.#meaning = isFirst
        ? EVENT
        : this.#last === COMMA && this.#beforeLast === CLOSE_ARRAY
          ? FIELD
          : NOTHING;
      this.#inKey = true;
      this.#text = '';
    } else if (byte === OPEN_OBJECT && (this.#last === COMMA || this.#last === CLOSE_OBJECT)) {
      this.#prefix.length = 0;
      this.#prefix.push(byte);
    } else this.#prefix.length = 0;
    this.#note(byte);
    return undefined;
  }

  #behindKey(key: string, byte: number, position: number): Boundary | undefined {
    if (!this.#hasColon) {
      if (byte !== COLON) this.#forget();
      else if (key === EVENTS_KEY) this.#hasColon = true;
      else if (this.#meaning === FIELD) {
        this.begin();
        return { kind: 'field', key, position };
      } else {
        const prefix = Uint8Array.from(this.#prefix);
        this.begin();
        return { kind: 'event', prefix, position };
      }
      return undefined;
    }
    if (byte !== OPEN_ARRAY) {
      this.#forget();
      return undefined;
    }
    this.begin();
    return { kind: 'events', position };
  }

  #note(byte: number): void {
    this.#beforeLast = this.#last;
    this.#last = byte;
  }

  #forget(): void {
    this.#meaning = NOTHING;
    this.#inKey = false;
    this.#key = undefined;
    this.#hasColon = false;
    this.#text = '';
    this.#prefix.length = 0;
  }
}

/** Letters and underscores: the keys searched for have no others. */
function isKeyByte(byte: number): boolean {
  return (byte >= 0x41 && byte <= 0x5a) || (byte >= 0x61 && byte <= 0x7a) || byte === 0x5f;
}
