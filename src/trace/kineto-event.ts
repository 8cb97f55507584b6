/**
 * The fields of a Kineto event that anybody needs, found in its bytes in one pass that also checks that
 * they are JSON. The pass can stop as soon as the category says that nobody needs the event.
 */
import { CLOSE_OBJECT, COMMA, OPEN_OBJECT, QUOTE } from './json-bytes.ts';
import {
  behindSpace,
  endOfLines,
  endOfMembers,
  endOfText,
  endOfValue,
  valueOfKey,
} from './json-skip.ts';

export const FIELD = {
  ph: 0,
  cat: 1,
  name: 2,
  pid: 3,
  tid: 4,
  ts: 5,
  dur: 6,
  args: 7,
} as const;
export type Field = (typeof FIELD)[keyof typeof FIELD];

export const ARG = {
  correlation: 8,
  device: 9,
  stream: 10,
  bytes: 11,
  /** Of a ROCm copy call. */
  size: 12,
  kind: 13,
  graphNode: 14,
  syncKind: 15,
  waitOnStream: 16,
  recordCorrelation: 17,
  /** Of metadata. */
  name: 18,
} as const;
export type Arg = (typeof ARG)[keyof typeof ARG];

const SLOTS = 19;
const ALL = -1;

interface Key {
  readonly bytes: Uint8Array;
  readonly slot: number;
}

/** Keys by length. */
function keysByLength(keys: Readonly<Record<string, number>>): readonly (readonly Key[])[] {
  const byLength: Key[][] = Array.from({ length: 40 }, () => []);
  for (const [key, slot] of Object.entries(keys)) {
    byLength[key.length]?.push({ bytes: Buffer.from(key, 'latin1'), slot });
  }
  return byLength;
}

const FIELDS = keysByLength(FIELD);
const ARGS = keysByLength({
  correlation: ARG.correlation,
  device: ARG.device,
  stream: ARG.stream,
  bytes: ARG.bytes,
  size: ARG.size,
  kind: ARG.kind,
  'graph node id': ARG.graphNode,
  cuda_sync_kind: ARG.syncKind,
  wait_on_stream: ARG.waitOnStream,
  wait_on_cuda_event_record_corr_id: ARG.recordCorrelation,
  name: ARG.name,
});

export class KinetoEvent {
  /** Of the event last looked at; valid as long as they are. */
  bytes: Uint8Array = new Uint8Array(0);
  /** Where reading goes on; behind the event once it is whole. */
  position = 0;
  #start = 0;
  #limit = 0;
  #isWhole = false;
  readonly #starts = new Int32Array(SLOTS);
  readonly #ends = new Int32Array(SLOTS);

  /** At the opening brace of an event; `limit` as in `json-skip.ts`. */
  begin(bytes: Uint8Array, start: number, limit: number): void {
    this.bytes = bytes;
    this.#start = start;
    this.#limit = limit;
    this.#isWhole = false;
    this.#starts.fill(-1);
    this.position = behindSpace(bytes, start + 1, limit);
    if (bytes[this.position] === CLOSE_OBJECT) this.#close(this.position + 1);
  }

  /** Reads on until `field` is known, or to the end. @returns false where it cannot. */
  readTo(field: Field): boolean {
    return this.has(field) || this.#isWhole || this.#read(field);
  }

  /**
   * Reads the rest; a key that comes twice counts by its last value, as in JSON.parse.
   * @returns false where it cannot.
   */
  readAll(): boolean {
    return this.#isWhole || this.#read(ALL);
  }

  /**
   * Passes over the rest of an event that nobody needs. Where it stands on lines of its own, indented as
   * programs do it, only the beginnings of lines are looked at. @returns false where it cannot.
   */
  skipRest(): boolean {
    if (this.#isWhole) return true;
    let end = endOfLines(this.bytes, this.#start, this.position, this.#limit);
    if (end < 0) end = endOfMembers(this.bytes, this.position, this.#limit, 1);
    return this.#close(end);
  }

  has(slot: Field | Arg): boolean {
    return (this.#starts[slot] as number) >= 0;
  }

  /** Of the value as it is written, quotes included. */
  start(slot: Field | Arg): number {
    return this.#starts[slot] as number;
  }

  end(slot: Field | Arg): number {
    return this.#ends[slot] as number;
  }

  isText(slot: Field | Arg): boolean {
    const start = this.#starts[slot] as number;
    return start >= 0 && this.bytes[start] === QUOTE;
  }

  #close(end: number): boolean {
    if (end < 0 || end > this.#limit) return false;
    this.position = end;
    this.#isWhole = true;
    return true;
  }

  /** From the quote of a key on, up to the next key behind the field `last`. */
  #read(last: number): boolean {
    const { bytes } = this;
    const limit = this.#limit;
    let i = this.position;
    while (i < limit) {
      if (bytes[i] !== QUOTE) return false;
      const keyEnd = endOfText(bytes, i, limit);
      if (keyEnd < 0) return false;
      const slot = slotOf(FIELDS, bytes, i + 1, keyEnd - 1);
      const value = valueOfKey(bytes, keyEnd, limit);
      if (value < 0) return false;
      i =
        slot === FIELD.args && bytes[value] === OPEN_OBJECT
          ? this.#readArgs(value, limit)
          : endOfValue(bytes, value, limit, 1);
      if (i < 0) return false;
      if (slot >= 0) {
        this.#starts[slot] = value;
        this.#ends[slot] = i;
      }
      if (bytes[i] !== COMMA) {
        i = behindSpace(bytes, i, limit);
        if (bytes[i] === CLOSE_OBJECT) return this.#close(i + 1);
        if (bytes[i] !== COMMA) return false;
      }
      i = behindSpace(bytes, i + 1, limit);
      if (slot === last) {
        this.position = i;
        return i < limit;
      }
    }
    return false;
  }

  /** Behind the arguments that begin at `start`, or -1. */
  #readArgs(start: number, limit: number): number {
    const { bytes } = this;
    let i = behindSpace(bytes, start + 1, limit);
    if (bytes[i] === CLOSE_OBJECT) return i < limit ? i + 1 : -1;
    while (i < limit) {
      if (bytes[i] !== QUOTE) return -1;
      const keyEnd = endOfText(bytes, i, limit);
      if (keyEnd < 0) return -1;
      const slot = slotOf(ARGS, bytes, i + 1, keyEnd - 1);
      const value = valueOfKey(bytes, keyEnd, limit);
      if (value < 0) return -1;
      i = endOfValue(bytes, value, limit, 2);
      if (i < 0) return -1;
      if (slot >= 0) {
        this.#starts[slot] = value;
        this.#ends[slot] = i;
      }
      if (bytes[i] !== COMMA) {
        i = behindSpace(bytes, i, limit);
        if (bytes[i] === CLOSE_OBJECT) return i < limit ? i + 1 : -1;
        if (bytes[i] !== COMMA) return -1;
      }
      i = behindSpace(bytes, i + 1, limit);
    }
    return -1;
  }
}

/** Of the key between the quotes; -1 where nobody needs it. */
function slotOf(
  keys: readonly (readonly Key[])[],
  bytes: Uint8Array,
  start: number,
  end: number,
): number {
  const candidates = keys[end - start];
  if (candidates === undefined) return -1;
  for (let k = 0; k < candidates.length; k += 1) {
    const key = candidates[k] as Key;
    const wanted = key.bytes;
    let i = 0;
    while (i < wanted.length && wanted[i] === bytes[start + i]) i += 1;
    if (i === wanted.length) return key.slot;
  }
  return -1;
}
