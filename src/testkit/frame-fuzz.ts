/**
 * Mutated frames against the decoder and against live sessions. Any exception is a finding; so is a
 * result that depends on bytes outside the frame.
 */
import { Prng } from '#base/prng';
import { nanos } from '#base/units';
import { BoxLinks } from '#fabric/box-links';
import {
  decodeFrame,
  ENTRY_HEADER_BYTES,
  EntryKind,
  encodeEnd,
  EndCode,
  Frame,
  FrameDecode,
  FrameType,
  helloFrame,
  SESSION_HEADER_BYTES,
  writeEntryHeader,
  writeSessionHeader,
} from '#fabric/frame';
import { DEFAULT_LINK_OPTIONS } from '#fabric/link-options';
import { freshHello } from '#fabric/session';
import type { Transport, TransportUser } from '#fabric/transport';
import { FlowClass } from '#pcie/tlp';
import { encodedTlpBytes, encodeTlp } from '#pcie/tlp-codec';
import { serialTlp } from './link-tlps.ts';
import { BOX, HOST, RecordingUser } from './link-world.ts';

export interface FrameFuzzResult {
  readonly frames: number;
  readonly accepted: number;
  readonly rejected: number;
  /** Sessions that the mutated frames brought down. */
  readonly sessionsEnded: number;
  /** TLPs that went through all checks. */
  readonly delivered: number;
}

/** Throws an error that names the seed and the frame when something is found. */
export function fuzzFrames(seed: number, count: number): FrameFuzzResult {
  const prng = new Prng(seed);
  const target = new SessionTarget();
  const into = new Frame();
  let accepted = 0;
  for (let index = 0; index < count; index++) {
    const frame = mutate(prng, validFrame(prng, target.nextSequence));
    try {
      if (decodeTwice(prng, frame, into) === FrameDecode.OK) accepted++;
      target.give(frame);
    } catch (error) {
      const hex = Buffer.from(frame).toString('hex');
      throw new Error(`seed ${seed}, frame ${index}: ${hex}`, { cause: error });
    }
  }
  return {
    frames: count,
    accepted,
    rejected: count - accepted,
    sessionsEnded: target.ended,
    delivered: target.delivered,
  };
}

/** Decodes the frame amid zeros and at the end of a buffer amid ones: the results must agree. */
function decodeTwice(prng: Prng, frame: Uint8Array, into: Frame): FrameDecode {
  const before = prng.below(9);
  const loose = new Uint8Array(before + frame.length + 64);
  loose.set(frame, before);
  const first = decodeFrame(new DataView(loose.buffer), loose, before, frame.length, into);
  const seen = JSON.stringify(into);
  // Nothing follows: a read beyond the end throws.
  const tight = new Uint8Array(before + frame.length).fill(0xff);
  tight.set(frame, before);
  const second = decodeFrame(new DataView(tight.buffer), tight, before, frame.length, into);
  if (first !== second || (first === FrameDecode.OK && seen !== JSON.stringify(into))) {
    throw new Error('the result depends on bytes outside the frame');
  }
  return first;
}

/** Sessions come and go by the thousand: little is allocated for each. */
const SMALL = {
  maxFrameBytes: 8192,
  replayBytes: 32_768,
  replayFrames: 16,
  queueTlps: 4,
  queueBytes: 8192,
};

/** A box end with a session, opened anew whenever a frame ended it. */
class SessionTarget {
  readonly #user = new RecordingUser();
  readonly #links: BoxLinks;
  #connection: TransportUser | undefined;
  #open = false;
  #nowNs = 0;
  #sessionId = 1;
  ended = 0;
  delivered = 0;
  nextSequence = 0;

  constructor() {
    this.#links = new BoxLinks({ local: BOX, user: this.#user, options: SMALL });
    this.#user.onDown = () => {
      this.ended++;
    };
  }

  give(frame: Uint8Array): void {
    const now = nanos((this.#nowNs += 1000));
    if (!this.#open) this.#connect();
    this.#connection?.frame(now, frame, 0, frame.length);
    if (this.#open) this.#connection?.turnEnd(now);
    this.#links.tick(now);
    this.delivered += this.#user.tlps.length;
    if (this.#user.tlps.length > 0) this.nextSequence = (this.nextSequence + 1) >>> 0;
    this.#user.tlps.length = 0;
    this.#user.states.length = 0;
  }

  #connect(): void {
    const now = nanos(this.#nowNs);
    const transport: Transport = {
      peer: HOST,
      send: () => true,
      close: () => {
        this.#open = false;
      },
    };
    this.#open = true;
    this.#connection = this.#links.accept(now, transport);
    const hello = freshHello(HOST, this.#sessionId++, DEFAULT_LINK_OPTIONS);
    const frame = helloFrame(FrameType.HELLO, hello);
    this.#connection.frame(now, frame, 0, frame.length);
    this.nextSequence = DEFAULT_LINK_OPTIONS.initialSequence;
  }
}

function validFrame(prng: Prng, sequence: number): Uint8Array {
  const kind = prng.below(10);
  if (kind === 0) {
    const hello = freshHello(HOST, prng.between(1, 2 ** 40), DEFAULT_LINK_OPTIONS);
    return helloFrame(prng.pick([FrameType.HELLO, FrameType.HELLO_ACK]), hello);
  }
  if (kind === 1) {
    return encodeEnd(prng.pick([FrameType.REFUSE, FrameType.BYE]), EndCode.BUSY, 'some reason');
  }
  const limits = new Uint32Array(6).fill(1000);
  if (kind < 4) {
    const type = prng.pick([FrameType.CONTROL, FrameType.PING, FrameType.PONG]);
    const bytes = new Uint8Array(SESSION_HEADER_BYTES + (type === FrameType.CONTROL ? 0 : 4));
    const view = new DataView(bytes.buffer);
    writeSessionHeader(view, 0, type, 0, bytes.length, sequence, 0, limits);
    return bytes;
  }
  const bytes = new Uint8Array(1024);
  const view = new DataView(bytes.buffer);
  let at = SESSION_HEADER_BYTES;
  const entries = prng.between(1, 6);
  for (let index = 0; index < entries; index++) {
    if (prng.chance(0.2)) {
      writeEntryHeader(view, at, EntryKind.SLOT_STATE, 0, prng.below(8), 0, 5, 4);
      view.setUint32(at + ENTRY_HEADER_BYTES, prng.between(1, 2));
      at += ENTRY_HEADER_BYTES + 4;
      continue;
    }
    const flow = prng.pick([FlowClass.POSTED, FlowClass.NON_POSTED, FlowClass.COMPLETION]);
    const tlp = serialTlp(flow, index, flow === FlowClass.NON_POSTED ? 0 : 64, 0, 1);
    const length = encodedTlpBytes(tlp);
    writeEntryHeader(view, at, EntryKind.TLP, flow, prng.below(8), 0, 5, length);
    encodeTlp(tlp, bytes, at + ENTRY_HEADER_BYTES);
    at += ENTRY_HEADER_BYTES + length;
  }
  writeSessionHeader(view, 0, FrameType.DATA, entries, at, sequence, 0, limits);
  return bytes.slice(0, at);
}

const EDGES = [
  0, 1, 2, 3, 4, 0x7f, 0x80, 0xff, 0x7fff, 0x8000, 0xffff, 0x7fffffff, 0x80000000, 0xffffffff,
];

function mutate(prng: Prng, frame: Uint8Array): Uint8Array {
  let bytes = frame;
  for (let times = prng.below(4); times > 0; times--) {
    const choice = prng.below(6);
    if (bytes.length < 4) return bytes;
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
    const word = 4 * prng.below(Math.min(bytes.length >> 2, prng.pick([10, 16, 1000])));
    if (choice === 0) {
      const at = prng.below(bytes.length);
      bytes[at] = (bytes[at] as number) ^ (1 << prng.below(8));
    } else if (choice === 1) {
      view.setUint32(word, prng.pick(EDGES));
    } else if (choice === 2) {
      view.setUint32(word, view.getUint32(word) + prng.between(-4, 4));
    } else if (choice === 3) {
      bytes = bytes.slice(0, prng.below(bytes.length));
    } else if (choice === 4) {
      const longer = new Uint8Array(bytes.length + 4 * prng.below(5));
      longer.set(bytes);
      bytes = longer;
    } else {
      // A wrong body under a right length.
      if (bytes.length >= 8) view.setUint32(4, bytes.length);
    }
  }
  return bytes;
}
