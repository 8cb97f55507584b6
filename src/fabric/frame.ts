/**
 * The frames two proxies exchange, as bytes. All numbers are big endian, everything is aligned to
 * 4 bytes, and a frame states its own length, so that a stream can be cut into frames.
 *
 *     every frame     0 magic D7 · 1 type · 2 count or flags (16) · 4 length of the frame (32)
 *     of a session    8 sequence · 12 acknowledgement · 16 credit limits, 6 × 32 (see credits.ts)
 *                     DATA: 40 entries    PING, PONG: 40 id    CONTROL: nothing
 *     HELLO(-ACK)     see hello.ts
 *     REFUSE, BYE     8 code (32) · 12 bytes of text (32) · 16 text
 *     entry           0 kind · 1 flow class · 2 slot (16)
 *                     4 length ÷ 4 (11 bits), generation 52:32 (21 bits) · 8 generation 31:0
 *                     12 the TLP, or the slot state (32)
 *
 * The sequence of a DATA frame is its own; that of other session frames is the one the next new DATA
 * frame would have, which shows the receiver what it has missed.
 */
import { FlowClass } from '#pcie/tlp';
import { MAX_TLP_BYTES } from '#pcie/tlp-codec';
import { FRAME_HEADER_BYTES, MAX_FRAME_BYTES } from './frame-bounds.ts';
import { decodeHello, encodeHello, type Hello } from './hello.ts';
import { SlotState } from './link-user.ts';

export { FRAME_HEADER_BYTES, MAX_FRAME_BYTES } from './frame-bounds.ts';

export const SESSION_HEADER_BYTES = 40;
export const ENTRY_HEADER_BYTES = 12;
const MIN_TLP_BYTES = 12;
const STATE_BYTES = 4;
const MAX_TEXT_BYTES = 240;

export const FRAME_MAGIC = 0xd7;

export const FrameType = {
  HELLO: 1,
  HELLO_ACK: 2,
  REFUSE: 3,
  BYE: 4,
  DATA: 5,
  CONTROL: 6,
  PING: 7,
  PONG: 8,
} as const;
export type FrameType = (typeof FrameType)[keyof typeof FrameType];

/** Flag of CONTROL and PONG: frames from `ack` on are missing, send them again. */
export const FLAG_NAK = 1;

export const EntryKind = { TLP: 1, SLOT_STATE: 2 } as const;

/** Codes of REFUSE and BYE. */
export const EndCode = {
  VERSION: 1,
  IDENTITY: 2,
  UNKNOWN_SESSION: 3,
  BUSY: 4,
  PROTOCOL: 5,
  STOPPED: 6,
} as const;
export type EndCode = (typeof EndCode)[keyof typeof EndCode];

/** What `decodeFrame` returns: 0, or what is wrong. */
export const FrameDecode = {
  OK: 0,
  LENGTH: 1,
  MAGIC: 2,
  TYPE: 3,
  FIELD: 4,
  ENTRY: 5,
  TLP: 6,
} as const;
export type FrameDecode = (typeof FrameDecode)[keyof typeof FrameDecode];

export const FRAME_DECODE_TEXT: readonly string[] = [
  'ok',
  'a frame whose length is not what it says or may be',
  'a frame without the magic byte',
  'a frame of unknown type',
  'a frame with a field out of range',
  'a frame whose entries do not fill it',
  'an entry that contradicts its TLP',
];

/** A decoded frame, reused from frame to frame. Entries are read in place, by `entryKindAt` and others. */
export class Frame {
  type: FrameType = FrameType.CONTROL;
  flags = 0;
  length = 0;
  sequence = 0;
  ack = 0;
  /** TLPs and data units of posted, non-posted, completion. */
  readonly limits = new Uint32Array(6);
  entries = 0;
  pingId = 0;
  code = 0;
  text = '';
  hello: Hello | undefined;
}

/** One DataView per buffer: keeps the last one, as frames come from the same buffer many at a time. */
export class ViewCache {
  #bytes: Uint8Array | undefined;
  #view: DataView = new DataView(new ArrayBuffer(0));

  /** A view of the whole buffer under `bytes`: positions in it are `bytes.byteOffset + offset`. */
  of(bytes: Uint8Array): DataView {
    // Mostly the very array: to ask for its buffer is a call.
    if (bytes === this.#bytes) return this.#view;
    this.#bytes = bytes;
    if (this.#view.buffer !== bytes.buffer) this.#view = new DataView(bytes.buffer);
    return this.#view;
  }
}

/** The length the frame at `offset` states; `FRAME_HEADER_BYTES` must be there. May be nonsense. */
export function frameLengthAt(bytes: Uint8Array, offset: number): number {
  return (
    (((bytes[offset + 4] as number) << 24) |
      ((bytes[offset + 5] as number) << 16) |
      ((bytes[offset + 6] as number) << 8) |
      (bytes[offset + 7] as number)) >>>
    0
  );
}

/** Flow class of a TLP by its first byte, as 2.6.1 counts them; unknown kinds count as non-posted. */
const FLOW_OF_BYTE = new Uint8Array(256).fill(FlowClass.NON_POSTED);
for (const kind of [0x40, 0x60]) FLOW_OF_BYTE[kind] = FlowClass.POSTED;
for (let routing = 0; routing < 8; routing++) {
  FLOW_OF_BYTE[0x30 + routing] = FlowClass.POSTED;
  FLOW_OF_BYTE[0x70 + routing] = FlowClass.POSTED;
}
for (const kind of [0x0a, 0x0b, 0x4a, 0x4b]) FLOW_OF_BYTE[kind] = FlowClass.COMPLETION;

/** Payload credit units (of 16 bytes) that a TLP takes, by the first double word of its header. */
export function dataUnitsOf(tlpWord: number): number {
  // Fmt bit 1: with data; Fmt bit 2: a prefix, not a header.
  if ((tlpWord & 0xc0000000) !== 0x40000000) return 0;
  const lengthDw = tlpWord & 0x3ff;
  return lengthDw === 0 ? 256 : (lengthDw + 3) >> 2;
}

/**
 * Reads the `length` bytes at `offset` as exactly one frame. A DATA frame's entries are all checked,
 * so that they can be walked without further care, and each agrees in flow class with its TLP.
 * Never reads outside the range, never throws on any bytes.
 */
export function decodeFrame(
  view: DataView,
  bytes: Uint8Array,
  offset: number,
  length: number,
  into: Frame,
): FrameDecode {
  if (length < FRAME_HEADER_BYTES || length > MAX_FRAME_BYTES || (length & 3) !== 0) {
    return FrameDecode.LENGTH;
  }
  const at = bytes.byteOffset + offset;
  const word = view.getUint32(at);
  if (word >>> 24 !== FRAME_MAGIC) return FrameDecode.MAGIC;
  if (view.getUint32(at + 4) !== length) return FrameDecode.LENGTH;
  const type = (word >>> 16) & 0xff;
  const count = word & 0xffff;
  into.length = length;
  into.flags = count;
  switch (type) {
    case FrameType.DATA:
      if (length < SESSION_HEADER_BYTES) return FrameDecode.LENGTH;
      into.type = type;
      into.entries = count;
      readSessionHeader(view, at, into);
      return checkEntries(view, at + SESSION_HEADER_BYTES, at + length, count);
    case FrameType.CONTROL:
      if (length !== SESSION_HEADER_BYTES) return FrameDecode.LENGTH;
      if (count > FLAG_NAK) return FrameDecode.FIELD;
      into.type = type;
      readSessionHeader(view, at, into);
      return FrameDecode.OK;
    case FrameType.PING:
    case FrameType.PONG:
      if (length !== SESSION_HEADER_BYTES + 4) return FrameDecode.LENGTH;
      if (count > (type === FrameType.PONG ? FLAG_NAK : 0)) return FrameDecode.FIELD;
      into.type = type;
      readSessionHeader(view, at, into);
      into.pingId = view.getUint32(at + SESSION_HEADER_BYTES);
      return FrameDecode.OK;
    case FrameType.HELLO:
    case FrameType.HELLO_ACK: {
      into.type = type;
      into.hello = decodeHello(view, at, length);
      return into.hello === undefined ? FrameDecode.FIELD : FrameDecode.OK;
    }
    case FrameType.REFUSE:
    case FrameType.BYE: {
      if (length < 16) return FrameDecode.LENGTH;
      const textBytes = view.getUint32(at + 12);
      if (textBytes > MAX_TEXT_BYTES || 16 + ((textBytes + 3) & ~3) !== length) {
        return FrameDecode.LENGTH;
      }
      into.type = type;
      into.code = view.getUint32(at + 8);
      into.text = readText(view, at + 16, textBytes);
      return FrameDecode.OK;
    }
    default:
      return FrameDecode.TYPE;
  }
}

function readSessionHeader(view: DataView, at: number, into: Frame): void {
  into.sequence = view.getUint32(at + 8);
  into.ack = view.getUint32(at + 12);
  for (let index = 0; index < 6; index++) {
    into.limits[index] = view.getUint32(at + 16 + 4 * index);
  }
}

function checkEntries(view: DataView, from: number, end: number, count: number): FrameDecode {
  if (count === 0) return FrameDecode.ENTRY;
  let at = from;
  for (let index = 0; index < count; index++) {
    if (end - at < ENTRY_HEADER_BYTES) return FrameDecode.ENTRY;
    const kind = entryKindAt(view, at);
    const flow = entryFlowAt(view, at);
    const length = entryLengthAt(view, at);
    at += ENTRY_HEADER_BYTES;
    if (end - at < length) return FrameDecode.ENTRY;
    if (kind === EntryKind.TLP) {
      if (length < MIN_TLP_BYTES || length > MAX_TLP_BYTES) return FrameDecode.TLP;
      if (FLOW_OF_BYTE[view.getUint8(at)] !== flow) return FrameDecode.TLP;
    } else if (kind === EntryKind.SLOT_STATE) {
      if (length !== STATE_BYTES || flow !== 0) return FrameDecode.ENTRY;
      const state = view.getUint32(at);
      if (state !== SlotState.READY && state !== SlotState.GONE) return FrameDecode.FIELD;
    } else {
      return FrameDecode.ENTRY;
    }
    at += length;
  }
  return at === end ? FrameDecode.OK : FrameDecode.ENTRY;
}

/** Header of a session frame at `at`, but for what `refreshSessionHeader` writes when it goes. */
export function beginSessionHeader(
  view: DataView,
  at: number,
  type: FrameType,
  countOrFlags: number,
  length: number,
  sequence: number,
): void {
  view.setUint32(at, ((FRAME_MAGIC << 24) | (type << 16) | countOrFlags) >>> 0);
  view.setUint32(at + 4, length);
  view.setUint32(at + 8, sequence);
}

/** Header of a session frame at `at`. `limits` are what the receiver of this frame may send up to. */
export function writeSessionHeader(
  view: DataView,
  at: number,
  type: FrameType,
  countOrFlags: number,
  length: number,
  sequence: number,
  ack: number,
  limits: Uint32Array,
): void {
  beginSessionHeader(view, at, type, countOrFlags, length, sequence);
  refreshSessionHeader(view, at, ack, limits);
}

/** Brings the acknowledgement and the limits of a written session header up to date. */
export function refreshSessionHeader(
  view: DataView,
  at: number,
  ack: number,
  limits: Uint32Array,
): void {
  view.setUint32(at + 12, ack);
  for (let index = 0; index < 6; index++) {
    view.setUint32(at + 16 + 4 * index, limits[index] as number);
  }
}

/** Header of an entry; the `length` bytes (a multiple of 4) follow at `at + ENTRY_HEADER_BYTES`. */
export function writeEntryHeader(
  view: DataView,
  at: number,
  kind: number,
  flow: number,
  slot: number,
  generationHi: number,
  generationLo: number,
  length: number,
): void {
  view.setUint32(at, (kind << 24) | (flow << 16) | slot);
  view.setUint32(at + 4, (length << 19) | generationHi);
  view.setUint32(at + 8, generationLo);
}

/** `EntryKind` of the entry whose header is at `at`. */
export function entryKindAt(view: DataView, at: number): number {
  return view.getUint8(at);
}

export function entryFlowAt(view: DataView, at: number): number {
  return view.getUint8(at + 1);
}

export function entrySlotAt(view: DataView, at: number): number {
  return view.getUint16(at + 2);
}

/** Bytes of the TLP or slot state behind the header. */
export function entryLengthAt(view: DataView, at: number): number {
  return (view.getUint32(at + 4) >>> 21) * 4;
}

export function entryGenerationAt(view: DataView, at: number): number {
  return (view.getUint32(at + 4) & 0x1f_ffff) * 0x1_0000_0000 + view.getUint32(at + 8);
}

/** A whole HELLO or HELLO-ACK frame. */
export function helloFrame(
  type: typeof FrameType.HELLO | typeof FrameType.HELLO_ACK,
  hello: Hello,
): Uint8Array {
  return encodeHello(((FRAME_MAGIC << 24) | (type << 16)) >>> 0, hello);
}

/** A whole REFUSE or BYE frame. Text is cut to what fits and to printable ASCII. */
export function encodeEnd(type: FrameType, code: EndCode, text: string): Uint8Array {
  const printable = text.replace(/[^\x20-\x7e]/g, '?').slice(0, MAX_TEXT_BYTES);
  const bytes = new Uint8Array(16 + ((printable.length + 3) & ~3));
  const view = new DataView(bytes.buffer);
  view.setUint32(0, ((FRAME_MAGIC << 24) | (type << 16)) >>> 0);
  view.setUint32(4, bytes.length);
  view.setUint32(8, code);
  view.setUint32(12, printable.length);
  for (let index = 0; index < printable.length; index++) {
    bytes[16 + index] = printable.charCodeAt(index);
  }
  return bytes;
}

/** Text of a peer, for logs: anything but printable ASCII becomes a question mark. */
export function readText(view: DataView, at: number, count: number): string {
  let text = '';
  for (let index = 0; index < count; index++) {
    const code = view.getUint8(at + index);
    text += code >= 0x20 && code <= 0x7e ? String.fromCharCode(code) : '?';
  }
  return text;
}
