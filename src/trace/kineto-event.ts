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

/** All bytes of a short key in one number. */
const codeOf = (key: string): number =>
  Buffer.from(key).reduce((code, byte) => (code << 8) | byte, 0);
const PH = codeOf('ph');
const CAT = codeOf('cat');
const NAME = codeOf('name');
const PID = codeOf('pid');
const TID = codeOf('tid');
const TS = codeOf('ts');
const DUR = codeOf('dur');
const ARGUMENTS = codeOf('args');

interface Key {
  readonly bytes: Uint8Array;
  readonly slot: Arg;
}

const ARG_KEYS: Readonly<Record<string, Arg>> = {
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
};
const ARGS_BY_LENGTH: readonly (readonly Key[])[] = Array.from({ length: 40 }, (_, length) =>
  Object.entries(ARG_KEYS)
    .filter(([key]) => key.length === length)
    .map(([key, slot]) => ({ bytes: Buffer.from(key), slot })),
);

export class KinetoEvent {
  /** Of the event last looked at; valid as long as they are. */
  bytes: Uint8Array = new Uint8Array(0);
  /** Where reading goes on; behind the event once it is whole. */
  position = 0;
  #start = 0;
  #limit = 0;
  #isWhole = false;
  /** One bit a slot: whether it was found. */
  #found = 0;
  readonly #starts = new Int32Array(SLOTS);
  readonly #ends = new Int32Array(SLOTS);

  /** At the opening brace of an event; `limit` as in `json-skip.ts`. */
  begin(bytes: Uint8Array, start: number, limit: number): void {
    this.bytes = bytes;
    this.#start = start;
    this.#limit = limit;
    this.#isWhole = false;
    this.#found = 0;
    this.position = behindSpace(bytes, start + 1, limit);
    if (bytes[this.position] === CLOSE_OBJECT) this.#close(this.position + 1);
  }

  /** Reads on until `field` is known, or to the end. @returns false where it cannot. */
  readTo(field: Field): boolean {
    return this.has(field) || this.#isWhole || this.#read(field);
  }

  /**
   * Reads the rest. A key that comes twice counts by its last value, as in JSON.parse, unless reading
   * stopped at the first.
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
    return (this.#found & (1 << slot)) !== 0;
  }

  /** Of the value as it is written, quotes included; means nothing where there is none. */
  start(slot: Field | Arg): number {
    return this.#starts[slot] as number;
  }

  end(slot: Field | Arg): number {
    return this.#ends[slot] as number;
  }

  /** The value without its quotes; empty where there is none. */
  text(slot: Field | Arg): string {
    if (!this.has(slot)) return '';
    const inset = this.isText(slot) ? 1 : 0;
    const bytes = this.bytes.subarray(this.start(slot) + inset, this.end(slot) - inset);
    return Buffer.from(bytes).toString('utf8');
  }

  isText(slot: Field | Arg): boolean {
    return this.has(slot) && this.bytes[this.start(slot)] === QUOTE;
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
      const slot = fieldOf(bytes, i + 1, keyEnd - 1);
      const value = valueOfKey(bytes, keyEnd, limit);
      if (value < 0) return false;
      i =
        slot === FIELD.args && bytes[value] === OPEN_OBJECT
          ? this.#readArgs(value, limit)
          : endOfValue(bytes, value, limit, 1);
      if (i < 0) return false;
      if (slot >= 0) {
        this.#found |= 1 << slot;
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
      const slot = argOf(bytes, i + 1, keyEnd - 1);
      const value = valueOfKey(bytes, keyEnd, limit);
      if (value < 0) return -1;
      i = endOfValue(bytes, value, limit, 2);
      if (i < 0) return -1;
      if (slot >= 0) {
        this.#found |= 1 << slot;
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
function fieldOf(bytes: Uint8Array, start: number, end: number): Field | -1 {
  if (end - start > 4) return -1;
  let code = 0;
  for (let i = start; i < end; i += 1) code = (code << 8) | (bytes[i] as number);
  switch (code) {
    case PH:
      return FIELD.ph;
    case CAT:
      return FIELD.cat;
    case NAME:
      return FIELD.name;
    case PID:
      return FIELD.pid;
    case TID:
      return FIELD.tid;
    case TS:
      return FIELD.ts;
    case DUR:
      return FIELD.dur;
    case ARGUMENTS:
      return FIELD.args;
    default:
      return -1;
  }
}

function argOf(bytes: Uint8Array, start: number, end: number): Arg | -1 {
  const candidates = ARGS_BY_LENGTH[end - start];
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
