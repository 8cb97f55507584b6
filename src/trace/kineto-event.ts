/** The fields of a Kineto event that anybody needs, found in its bytes without parsing the rest. */

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const OPEN_ARRAY = 0x5b;
const CLOSE_ARRAY = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;

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

/** The value between the quotes, if it has any. */
export class KinetoEvent {
  /** Of the event last looked at; valid as long as they are. */
  bytes: Uint8Array = new Uint8Array(0);
  readonly #starts = new Int32Array(SLOTS);
  readonly #ends = new Int32Array(SLOTS);
  #next = 0;
  #end = 0;

  /** `bytes[start]` to `bytes[end - 1]` is a well-formed JSON object. */
  begin(bytes: Uint8Array, start: number, end: number): void {
    this.bytes = bytes;
    this.#starts.fill(-1);
    this.#next = start + 1;
    this.#end = end;
  }

  /** Reads on until `field` is known, or to the end; the last of equal keys counts from there on. */
  readTo(field: Field): void {
    this.#next = this.#read(this.#next, FIELDS, field);
  }

  /** Reads the rest; a key that comes twice counts by its last value, as in JSON.parse. */
  readAll(): void {
    this.#next = this.#read(this.#next, FIELDS, -1);
    const args = this.#starts[FIELD.args] as number;
    if (args >= 0 && this.bytes[args] === OPEN_OBJECT) this.#read(args + 1, ARGS, -1);
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

  #read(from: number, keys: readonly (readonly Key[])[], last: number): number {
    const { bytes } = this;
    const end = this.#end;
    let i = from;
    while (i < end) {
      const byte = bytes[i] as number;
      if (byte !== QUOTE) {
        i += 1;
        if (byte === CLOSE_OBJECT) return end;
        continue;
      }
      const keyStart = i + 1;
      const keyEnd = endOfText(bytes, i) - 1;
      // Behind the colon and the space around it.
      i = keyEnd + 1;
      while (bytes[i] !== 0x3a) i += 1;
      i += 1;
      while ((bytes[i] as number) <= 0x20) i += 1;
      const valueStart = i;
      i = endOfValue(bytes, i);
      const slot = slotOf(keys[keyEnd - keyStart], bytes, keyStart);
      if (slot < 0) continue;
      this.#starts[slot] = valueStart;
      this.#ends[slot] = i;
      if (slot === last) return i;
    }
    return i;
  }
}

function slotOf(keys: readonly Key[] | undefined, bytes: Uint8Array, start: number): number {
  if (keys === undefined) return -1;
  for (let k = 0; k < keys.length; k += 1) {
    const key = keys[k] as Key;
    const wanted = key.bytes;
    let i = 0;
    while (i < wanted.length && wanted[i] === bytes[start + i]) i += 1;
    if (i === wanted.length) return key.slot;
  }
  return -1;
}

/** Behind the closing quote of the text that begins at `start`. */
function endOfText(bytes: Uint8Array, start: number): number {
  let i = start + 1;
  for (;;) {
    const byte = bytes[i] as number;
    if (byte === QUOTE) return i + 1;
    i += byte === BACKSLASH ? 2 : 1;
  }
}

/** Behind the well-formed value that begins at `start`. */
function endOfValue(bytes: Uint8Array, start: number): number {
  let i = start;
  let byte = bytes[i] as number;
  if (byte === QUOTE) return endOfText(bytes, i);
  if (byte !== OPEN_OBJECT && byte !== OPEN_ARRAY) {
    while (byte !== COMMA && byte !== CLOSE_OBJECT && byte !== CLOSE_ARRAY && byte > 0x20) {
      i += 1;
      byte = bytes[i] as number;
    }
    return i;
  }
  let depth = 0;
  for (;;) {
    byte = bytes[i] as number;
    if (byte === QUOTE) {
      i = endOfText(bytes, i);
      continue;
    }
    i += 1;
    if (byte === OPEN_OBJECT || byte === OPEN_ARRAY) depth += 1;
    else if (byte === CLOSE_OBJECT || byte === CLOSE_ARRAY) {
      depth -= 1;
      if (depth === 0) return i;
    }
  }
}
