/**
 * The commands of one stream's work, made row by row. What a row takes natively on the emulated device
 * (a round trip of a copy) is part of what was recorded and is taken out of the durations given here.
 */
import { FLAG_FENCE, Opcode } from '#host/accel-layout';
import type { RingCommand } from '#host/accel-channel-ring';
import type { HostMemory } from '#host/host-memory';
import type { LinkProfile } from '#pcie/link-profile';
import { nativeReadNs } from './device-link.ts';
import type { Mark } from './trace-marks.ts';

/** Largest copy of one command, so that what a copy writes is apart from the one before it. */
const CHUNK_BYTES = 4 * 2 ** 20;
const PAGE_BYTES = 4096;
const MOST_DURATION_NS = 2 ** 32 - 1;

/** A command being made. */
interface Draft {
  readonly opcode: RingCommand['opcode'];
  flags?: number;
  durationNs?: number;
  operand0?: number;
  operand1?: number;
  operand2?: number;
}

/** Where copies read and write: all streams of one emulation share it and go round in it. */
export class CopySpace {
  readonly #hostBase: number;
  readonly #bytes: number;
  #next = 0;

  /** Takes `bytes` of host memory; as much device memory, from 0 on, goes with it. */
  constructor(memory: HostMemory, bytes: number) {
    this.#hostBase = memory.alloc(bytes, PAGE_BYTES).address;
    this.#bytes = bytes;
  }

  /** A place of `bytes`, at most a chunk: host address, and the same in device memory. */
  take(bytes: number): { readonly host: number; readonly device: number } {
    if (this.#next + bytes > this.#bytes) this.#next = 0;
    const at = this.#next;
    this.#next += Math.ceil(bytes / PAGE_BYTES) * PAGE_BYTES;
    return { host: this.#hostBase + at, device: at };
  }
}

/**
 * How long copies advance in bulk: the bytes to keep and what is no whole window go TLP by TLP, the
 * rest is time alone. In the steady state every window of `windowBytes` takes as long as the one before.
 */
export interface Bulk {
  /** `tags` × MRRS. */
  readonly windowBytes: number;
  readonly keepBytes: number;
  /** The same of DtoH copies: writes go ahead of a slow network as far as buffers reach. */
  readonly keepDtohBytes: number;
  readonly htodNsPerByte: number;
  readonly dtohNsPerByte: number;
}

export class QueueBuilder {
  /** Commands made and not taken yet. */
  #drafts: Draft[] = [];
  #taken = 0;
  #lastOpcode: number = Opcode.NOP;
  /** What rounding durations to whole ns has left over. */
  #restNs = 0;
  readonly #event: number;
  readonly #profile: LinkProfile;
  readonly #space: CopySpace;
  readonly #bulk: Bulk | undefined;
  /** Bytes of copies that were not moved TLP by TLP. */
  skippedHtod = 0;
  skippedDtoh = 0;

  constructor(event: number, profile: LinkProfile, space: CopySpace, bulk?: Bulk) {
    this.#event = event;
    this.#profile = profile;
    this.#space = space;
    this.#bulk = bulk;
  }

  /** How many commands have been made so far; they are numbered from 1. */
  get made(): number {
    return this.#taken + this.#drafts.length;
  }

  /** The commands made since the last call. */
  take(): readonly RingCommand[] {
    const commands = this.#drafts;
    this.#taken += commands.length;
    this.#drafts = [];
    return commands;
  }

  waitFor(event: number, value: number): void {
    this.#push({ opcode: Opcode.EVENT_WAIT, operand0: event, operand1: value });
  }

  /** Work that moves nothing over the link: `lagNs` later it begins and lasts `lastsNs`. */
  busy(lagNs: number, lastsNs: number, marks: readonly Mark[]): void {
    let fromNs = 0;
    let pauseNs = lagNs;
    for (const mark of marks) {
      // Work that another overlaps has been cut, and may have marks behind the cut.
      const atNs = Math.max(fromNs, Math.min(mark.atNs, lastsNs));
      this.#nop(pauseNs + atNs - fromNs);
      this.#mark(mark);
      fromNs = atNs;
      pauseNs = 0;
    }
    if (lastsNs > fromNs || marks.length === 0) this.#nop(pauseNs + Math.max(0, lastsNs - fromNs));
  }

  /**
   * A copy: its first request by itself, then the rest, which is asked for at once and lasts at least
   * what was recorded beyond one native round trip. So it takes natively what was recorded (or what its
   * bytes take), and pooled one longer round trip and what the recorded pace or its bytes take.
   */
  htod(lagNs: number, lastsNs: number, bytes: number, marks: readonly Mark[]): void {
    const firstBytes = Math.min(bytes, this.#profile.mrrsBytes);
    const firstNs = nativeReadNs(this.#profile, firstBytes);
    const restNs = Math.max(0, lastsNs - firstNs);
    if (lagNs > 0 || this.#lastOpcode === Opcode.COPY_HTOD) this.#nop(lagNs);
    this.#copy(Opcode.COPY_HTOD, firstBytes, undefined);
    const later = marks.map((mark) => ({ mark, atNs: Math.max(0, mark.atNs - firstNs) }));
    if (bytes > firstBytes) {
      this.#paced(Opcode.COPY_HTOD, bytes - firstBytes, restNs, later);
      return;
    }
    let fromNs = 0;
    for (const { mark, atNs } of later) {
      if (atNs > fromNs) this.#nop(atNs - fromNs);
      this.#mark(mark);
      fromNs = Math.max(fromNs, atNs);
    }
    if (restNs > fromNs) this.#nop(restNs - fromNs);
  }

  /** Writes are posted: a copy to the host takes what was recorded, or what its bytes take. */
  dtoh(lagNs: number, lastsNs: number, bytes: number, marks: readonly Mark[]): void {
    if (lagNs > 0) this.#nop(lagNs);
    this.#paced(
      Opcode.COPY_DTOH,
      bytes,
      lastsNs,
      marks.map((mark) => ({ mark, atNs: mark.atNs })),
    );
  }

  /** Makes the last command one with a fence, and returns its number. */
  fenceLast(): number {
    const last = this.#drafts.at(-1);
    if (last !== undefined) last.flags = (last.flags ?? 0) | FLAG_FENCE;
    return this.made;
  }

  /** A copy that lasts at least `lastsNs`, in pieces that end at marks and chunks. */
  #paced(
    opcode: RingCommand['opcode'],
    bytes: number,
    lastsNs: number,
    marks: readonly { readonly mark: Mark; readonly atNs: number }[],
  ): void {
    let doneBytes = 0;
    for (const { mark, atNs } of marks) {
      const share = lastsNs > 0 ? Math.min(1, atNs / lastsNs) : 1;
      const upTo = share === 1 ? bytes : Math.floor((bytes * share) / PAGE_BYTES) * PAGE_BYTES;
      this.#chunks(opcode, Math.max(0, upTo - doneBytes), lastsNs / bytes);
      doneBytes = Math.max(doneBytes, upTo);
      this.#mark(mark);
    }
    this.#chunks(opcode, bytes - doneBytes, lastsNs / bytes);
  }

  #chunks(opcode: RingCommand['opcode'], bytes: number, nsPerByte: number): void {
    const skipped = this.#skippedOf(opcode, bytes);
    // Reads are all in when a copy ends; writes may still queue for the link, so they come last.
    if (opcode === Opcode.COPY_DTOH) this.#skip(opcode, skipped, nsPerByte);
    for (let left = bytes - skipped; left > 0; ) {
      const chunk = Math.min(left, CHUNK_BYTES);
      this.#copy(opcode, chunk, chunk * nsPerByte);
      left -= chunk;
    }
    if (opcode === Opcode.COPY_HTOD) this.#skip(opcode, skipped, nsPerByte);
  }

  #skip(opcode: RingCommand['opcode'], bytes: number, nsPerByte: number): void {
    if (bytes === 0 || this.#bulk === undefined) return;
    const isUp = opcode === Opcode.COPY_DTOH;
    const steadyNs = isUp ? this.#bulk.dtohNsPerByte : this.#bulk.htodNsPerByte;
    this.#nop(bytes * Math.max(nsPerByte, steadyNs));
    if (isUp) this.skippedDtoh += bytes;
    else this.skippedHtod += bytes;
  }

  #skippedOf(opcode: RingCommand['opcode'], bytes: number): number {
    if (this.#bulk === undefined) return 0;
    const { windowBytes, keepBytes, keepDtohBytes } = this.#bulk;
    const keptBytes = opcode === Opcode.COPY_DTOH ? keepDtohBytes : keepBytes;
    return Math.floor(Math.max(0, bytes - keptBytes) / windowBytes) * windowBytes;
  }

  #copy(opcode: RingCommand['opcode'], bytes: number, lastsNs: number | undefined): void {
    const { host, device } = this.#space.take(bytes);
    const isUp = opcode === Opcode.COPY_DTOH;
    this.#push({
      opcode,
      operand0: isUp ? device : host,
      operand1: isUp ? host : device,
      operand2: bytes,
      ...(lastsNs === undefined ? {} : { durationNs: this.#whole(lastsNs) }),
    });
  }

  #nop(lastsNs: number): void {
    let left = this.#whole(lastsNs);
    do {
      const durationNs = Math.min(left, MOST_DURATION_NS);
      this.#push({ opcode: Opcode.NOP, durationNs });
      left -= durationNs;
    } while (left > 0);
  }

  #mark(mark: Mark): void {
    if (mark.event > 0) {
      this.#push({ opcode: Opcode.EVENT_SIGNAL, operand0: this.#event, operand1: mark.event });
    }
    if (!mark.isFence) return;
    // A mark at the very beginning has no command to go with.
    if (this.#drafts.length === 0) this.#nop(0);
    mark.command = this.fenceLast();
  }

  #whole(ns: number): number {
    const exact = ns + this.#restNs;
    const whole = Math.max(0, Math.round(exact));
    this.#restNs = exact - whole;
    return whole;
  }

  #push(draft: Draft): void {
    this.#drafts.push(draft);
    this.#lastOpcode = draft.opcode;
  }
}
