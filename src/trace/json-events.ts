/**
 * Takes a Chrome trace apart as its bytes come: an object with the array `traceEvents`, or the bare
 * array. Each event and each field beside the events goes to a sink as soon as its last byte is there.
 *
 * The sink takes an event that lies whole in one piece by itself. Where it does not, `JsonScanner` says
 * where the value ends and whether it is JSON, and only its bytes are copied, into `#carry`, so that memory
 * does not grow with the file. Where it is not JSON, `EventBoundary` finds the next event, beginning its
 * search just behind the start of the one that is damaged, as the damage may lie far before the byte where
 * it shows. Bytes looked at again are at most as many as those looked at once and 64 MiB.
 */
import { Carry } from './carry.ts';
import { EVENTS_KEY, EventBoundary } from './event-boundary.ts';
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
import { JsonScanner, SCAN } from './json-scanner.ts';
import { behindSeparators, SPARE_BYTES } from './json-skip.ts';

/** An event longer than this, if it does not lie in one piece, counts as damaged. */
const MAX_EVENT_BYTES = 1 << 25;
/** A field longer than this is passed over. */
const MAX_FIELD_BYTES = 1 << 22;
const FREE_RESCAN_BYTES = 1 << 26;

export interface EventsSink {
  /**
   * Takes the event whose opening brace is at `start`, if it is well-formed and ends before `limit` (see
   * `json-skip.ts`). @returns where it ends, or -1: not taken.
   */
  event(bytes: Uint8Array, start: number, limit: number): number;
  /** A field beside the events, well-formed. */
  field(key: string, bytes: Uint8Array): void;
  /** Something that is not JSON was passed over; `offset` is of the first byte that is wrong. */
  damage(offset: number): void;
}

export interface EventsEnd {
  /** Whether the events were found. */
  readonly hasEvents: boolean;
  /** Where the part begins that is cut off at the end: an event, or the end of the file. */
  readonly cutOffAt: number | undefined;
  readonly bytes: number;
}

const PHASE = {
  start: 0,
  key: 1,
  inKey: 2,
  colon: 3,
  field: 4,
  inField: 5,
  events: 6,
  inEvent: 7,
  lost: 8,
  after: 9,
} as const;
type Phase = (typeof PHASE)[keyof typeof PHASE];

export class JsonEvents {
  readonly #sink: EventsSink;
  readonly #maxEventBytes: number;
  readonly #scanner = new JsonScanner();
  readonly #boundary = new EventBoundary();
  readonly #carry = new Carry();
  #phase: Phase = PHASE.start;
  #isBare = false;
  #hasEvents = false;
  #key = '';
  /** Offset in the file of the value being scanned. */
  #valueAt = 0;
  /** Offset in the file of the piece being worked on. */
  #base = 0;
  #total = 0;
  #rescanned = 0;

  constructor(sink: EventsSink, maxEventBytes = MAX_EVENT_BYTES) {
    this.#sink = sink;
    this.#maxEventBytes = maxEventBytes;
  }

  get bytes(): number {
    return this.#total;
  }

  /** @returns whether the bytes so far can be such a trace: they begin with an object or array. */
  push(piece: Uint8Array): boolean {
    this.#total += piece.length;
    const base = this.#base;
    const isTrace = this.#run(piece);
    this.#base = base + piece.length;
    return isTrace;
  }

  /** No more will come. */
  end(): EventsEnd {
    // What is open may have swallowed whole events, if something in it is damaged.
    while (this.#phase === PHASE.inEvent && !this.#carry.isEmpty) {
      const from = this.#valueAt;
      const rest = this.#carry.take();
      if (!this.#mayRescan(rest.length)) break;
      this.#boundary.begin();
      if (this.#boundary.search(rest, 1, rest.length)?.kind !== 'event') break;
      this.#sink.damage(from);
      this.#seek();
      this.#base = from + 1;
      this.#run(rest.subarray(1));
    }
    return { hasEvents: this.#hasEvents, cutOffAt: this.#cutOffAt(), bytes: this.#total };
  }

  #cutOffAt(): number | undefined {
    const isWhole =
      this.#phase === PHASE.after ||
      (this.#phase === PHASE.events && this.#isBare) ||
      (this.#phase === PHASE.lost && this.#boundary.isClosed);
    if (isWhole) return undefined;
    return this.#phase === PHASE.inEvent ? this.#valueAt : this.#total;
  }

  #run(piece: Uint8Array): boolean {
    const limit = piece.length - SPARE_BYTES;
    let i = 0;
    while (i < piece.length) {
      const byte = piece[i] as number;
      switch (this.#phase) {
        case PHASE.events:
          if (isSpace(byte) || byte === COMMA) i = behindSeparators(piece, i + 1);
          else if (byte === CLOSE_ARRAY) {
            this.#phase = this.#isBare ? PHASE.after : PHASE.key;
            i += 1;
          } else {
            const end = byte === OPEN_OBJECT ? this.#sink.event(piece, i, limit) : -1;
            i = end < 0 ? this.#value(piece, i, PHASE.inEvent) : end;
          }
          break;
        case PHASE.inEvent:
        case PHASE.inField:
        case PHASE.inKey:
          i = this.#value(piece, i, this.#phase);
          break;
        case PHASE.start:
          if (byte === OPEN_OBJECT) this.#phase = PHASE.key;
          else if (byte === OPEN_ARRAY) {
            this.#phase = PHASE.events;
            this.#isBare = true;
            this.#hasEvents = true;
          } else if (!isSpace(byte) && !this.#isMark(byte, i)) return false;
          i += 1;
          break;
        case PHASE.key:
          if (byte === QUOTE) i = this.#value(piece, i, PHASE.inKey);
          else if (byte === CLOSE_OBJECT) {
            this.#phase = PHASE.after;
            i += 1;
          } else if (isSpace(byte) || byte === COMMA) i += 1;
          else i = this.#damaged(i, i);
          break;
        case PHASE.colon:
          if (byte === COLON) this.#phase = PHASE.field;
          else if (!isSpace(byte)) {
            i = this.#damaged(i, i);
            break;
          }
          i += 1;
          break;
        case PHASE.field:
          if (isSpace(byte)) i += 1;
          else if (byte === OPEN_ARRAY && this.#key === EVENTS_KEY) {
            this.#phase = PHASE.events;
            this.#hasEvents = true;
            i += 1;
          } else i = this.#value(piece, i, PHASE.inField);
          break;
        case PHASE.lost:
          i = this.#find(piece, i);
          break;
        default:
          // Behind the end: what follows is nobody's, unless the end was none.
          if (isSpace(byte) || byte === 0) i += 1;
          else i = this.#damaged(i, i);
      }
    }
    return true;
  }

  /** A byte order mark at the very beginning. */
  #isMark(byte: number, i: number): boolean {
    const offset = this.#base + i;
    return offset < 3 && byte === [0xef, 0xbb, 0xbf][offset];
  }

  /** Scans on in the value that begins or goes on at `i`; `phase` says what it is. */
  #value(piece: Uint8Array, i: number, phase: Phase): number {
    const scanner = this.#scanner;
    if (this.#phase !== phase) {
      this.#phase = phase;
      this.#valueAt = this.#base + i;
      this.#carry.clear();
      scanner.begin();
    }
    const status = scanner.scan(piece, i, piece.length);
    const stop = scanner.position;
    if (status === SCAN.bad) return this.#damagedValue(stop);
    const isEvent = phase === PHASE.inEvent;
    if (status === SCAN.more) {
      const room = isEvent ? this.#maxEventBytes : MAX_FIELD_BYTES;
      if (this.#base + stop - this.#valueAt > room) {
        if (isEvent) return this.#damagedValue(stop);
        this.#carry.giveUp();
      }
      this.#carry.append(piece, i, stop);
      return stop;
    }
    this.#carry.append(piece, i, stop);
    this.#done(phase, this.#carry.bytes, this.#carry.length);
    this.#carry.clear();
    return stop;
  }

  #done(phase: Phase, bytes: Uint8Array, end: number): void {
    if (phase === PHASE.inEvent) {
      this.#phase = PHASE.events;
      if (bytes[0] === OPEN_OBJECT && this.#sink.event(bytes, 0, end) < 0) {
        this.#sink.damage(this.#valueAt);
      }
    } else if (phase === PHASE.inKey) {
      this.#phase = PHASE.colon;
      this.#key = Buffer.from(bytes.subarray(1, end - 1)).toString('latin1');
    } else {
      this.#phase = PHASE.key;
      // Of a field that was too long nothing is left.
      if (!this.#carry.isGivenUp) this.#sink.field(this.#key, bytes.subarray(0, end));
    }
  }

  /** The value being scanned is wrong at `stop`; @returns where to go on in the piece. */
  #damagedValue(stop: number): number {
    const begin = this.#valueAt;
    const length = this.#base + stop - begin;
    if (!this.#mayRescan(length)) return this.#damaged(stop, stop);
    const inPiece = begin - this.#base;
    if (inPiece >= 0) return this.#damaged(stop, inPiece + 1);
    if (this.#carry.isGivenUp) return this.#damaged(stop, 0);
    const rest = this.#carry.take();
    const base = this.#base;
    this.#damaged(stop, 0);
    this.#base = begin + 1;
    this.#run(rest.subarray(1));
    this.#base = base;
    return 0;
  }

  #damaged(at: number, goOnAt: number): number {
    this.#sink.damage(this.#base + at);
    this.#seek();
    return goOnAt;
  }

  #seek(): void {
    this.#phase = PHASE.lost;
    this.#carry.clear();
    this.#boundary.begin();
  }

  #mayRescan(bytes: number): boolean {
    this.#rescanned += bytes;
    return this.#rescanned <= this.#total + FREE_RESCAN_BYTES;
  }

  #find(piece: Uint8Array, i: number): number {
    const found = this.#boundary.search(piece, i, piece.length);
    if (found === undefined) return piece.length;
    if (found.kind === 'events') {
      this.#phase = PHASE.events;
      this.#hasEvents = true;
    } else if (found.kind === 'field') {
      this.#phase = PHASE.field;
      this.#key = found.key;
    } else {
      this.#phase = PHASE.inEvent;
      this.#hasEvents = true;
      this.#valueAt = this.#base + found.position - found.prefix.length;
      this.#carry.clear();
      this.#carry.append(found.prefix, 0, found.prefix.length);
      this.#scanner.begin();
      this.#scanner.scan(found.prefix, 0, found.prefix.length);
    }
    return found.position;
  }
}
