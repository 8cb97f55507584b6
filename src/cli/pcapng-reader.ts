/** Reads captures (pcapng.ts) as they come in. */
import { DxpuError } from '#base/errors';
import {
  BLOCK_ENHANCED_PACKET,
  BLOCK_INTERFACE,
  BLOCK_SECTION,
  BLOCK_SIMPLE_PACKET,
  BLOCK_STATISTICS,
  BYTE_ORDER_MAGIC,
  type CapturedFunction,
  type CapturedTlp,
  IN_USE_COMMENTS,
  LINK_TYPE_USER0,
  MAJOR_VERSION,
  OPTION_COMMENT,
  OPTION_END,
  OPTION_EPB_DROPCOUNT,
  OPTION_IF_TSOFFSET,
  OPTION_IF_TSRESOL,
  OPTION_ISB_IFDROP,
  pad4,
  PSEUDO_HEADER_BYTES,
  PSEUDO_HEADER_VERSION,
} from './pcapng.ts';

/** A block larger than this is a damaged file, not a packet. */
const MAX_BLOCK_BYTES = 1 << 24;

const FUNCTION_COMMENT =
  /^config space of ([0-9a-f]{2}):([0-9a-f]{2})\.([0-7]): ((?:[0-9a-f]{2}){256})$/;

/** Whether the bytes begin as a pcapng file does. */
export function isPcapng(bytes: Uint8Array): boolean {
  return bytes.length >= 4 && Buffer.from(bytes.subarray(0, 4)).readUInt32BE(0) === BLOCK_SECTION;
}

/**
 * A packet of a file, or what is wrong with it. `number` counts from 1; `lostBefore` is there where the
 * capturing side lost TLPs since the packet before.
 */
export type ReadPacket = { readonly number: number; readonly lostBefore?: number } & (
  | { readonly packet: CapturedTlp }
  | { readonly error: string }
);

interface Interface {
  readonly linkType: number;
  /** Nanoseconds = ticks × numerator ÷ denominator + offset. */
  readonly numerator: bigint;
  readonly denominator: bigint;
  readonly offsetNs: bigint;
}

/**
 * Reads a capture piece by piece. A packet of another link type or with a bad header is given as an
 * error and reading goes on; damage ends it with a `DxpuError` naming the byte.
 */
export class PcapngReader {
  /** What came in and does not complete a block yet, and how many bytes it is. */
  readonly #waiting: Uint8Array[] = [];
  #waitingBytes = 0;
  /** With fewer bytes than this there is nothing new to see. */
  #wantedBytes = 12;
  /** Bytes of the file before those waiting. */
  #position = 0;
  #little = true;
  #interfaces: Interface[] = [];
  #packets = 0;
  #function: CapturedFunction | undefined;
  #inUse: boolean | undefined;
  #lost = 0;
  #lostAtEnd = 0;

  /** What the file says of the captured function; before its first packet, if at all. */
  get capturedFunction(): CapturedFunction | undefined {
    return this.#function;
  }

  /** Whether the function was in use when the capture began; undefined where the file does not say. */
  get inUse(): boolean | undefined {
    return this.#inUse;
  }

  /** TLPs the capturing side says it lost, as far as has been read. */
  get lost(): number {
    return Math.max(this.#lost, this.#lostAtEnd);
  }

  /** The packets that are complete with these bytes. */
  *push(chunk: Uint8Array): Generator<ReadPacket> {
    this.#waiting.push(chunk);
    this.#waitingBytes += chunk.length;
    // Joined once a block, not once a chunk: a large one comes in hundreds of them.
    if (this.#waitingBytes < this.#wantedBytes) return;
    const bytes = Buffer.concat(this.#waiting);
    let at = 0;
    this.#wantedBytes = 12;
    while (bytes.length - at >= 12) {
      if (bytes.readUInt32BE(at) === BLOCK_SECTION) this.#beginSection(bytes, at);
      const length = this.#u32(bytes, at + 4);
      if (length < 12 || length % 4 !== 0 || length > MAX_BLOCK_BYTES) {
        throw this.#damaged(at, `a block claims a length of ${length} bytes`);
      }
      if (at + length > bytes.length) {
        this.#wantedBytes = length;
        break;
      }
      const end = at + length - 4;
      if (this.#u32(bytes, end) !== length) {
        throw this.#damaged(at, 'the two lengths of a block differ');
      }
      const packet = this.#block(bytes, at, end);
      at += length;
      if (packet !== undefined) yield packet;
    }
    this.#waiting.length = 0;
    if (at < bytes.length) this.#waiting.push(bytes.subarray(at));
    this.#waitingBytes = bytes.length - at;
    this.#position += at;
  }

  /** There is no more. Fails when the last block is incomplete. */
  end(): void {
    if (this.#waitingBytes > 0) throw this.#damaged(0, 'it ends within a block');
  }

  #beginSection(bytes: Buffer, at: number): void {
    const magic = bytes.readUInt32LE(at + 8);
    if (magic !== BYTE_ORDER_MAGIC && bytes.readUInt32BE(at + 8) !== BYTE_ORDER_MAGIC) {
      throw this.#damaged(at, 'a section has no byte order mark');
    }
    this.#little = magic === BYTE_ORDER_MAGIC;
    this.#interfaces = [];
  }

  #checkVersion(bytes: Buffer, at: number): void {
    const major = this.#u16(bytes, at + 12);
    if (major === MAJOR_VERSION) return;
    const version = `${major}.${this.#u16(bytes, at + 14)}`;
    throw new DxpuError(
      'unimplemented',
      `the capture is of pcapng version ${version}; known is ${MAJOR_VERSION}.x`,
      { details: { byte: this.#position + at, major } },
    );
  }

  #block(bytes: Buffer, at: number, end: number): ReadPacket | undefined {
    const length = end + 4 - at;
    const type = this.#u32(bytes, at);
    switch (type) {
      case BLOCK_SECTION:
        if (length < 28) throw this.#damaged(at, 'a section block is too short');
        this.#checkVersion(bytes, at);
        return undefined;
      case BLOCK_INTERFACE:
        if (length < 20) throw this.#damaged(at, 'an interface block is too short');
        this.#interface(bytes, at, end);
        return undefined;
      case BLOCK_STATISTICS:
        if (length < 24) throw this.#damaged(at, 'a statistics block is too short');
        this.#lostAtEnd = this.#count(bytes, at + 20, end, OPTION_ISB_IFDROP);
        return undefined;
      case BLOCK_ENHANCED_PACKET: {
        this.#packets++;
        if (length < 32) throw this.#damaged(at, 'a packet block is too short');
        const ticks =
          (BigInt(this.#u32(bytes, at + 12)) << 32n) | BigInt(this.#u32(bytes, at + 16));
        const from = this.#interfaces[this.#u32(bytes, at + 8)];
        const captured = this.#u32(bytes, at + 20);
        const packet = packetOf(this.#packets, bytes, at + 28, captured, end, from, ticks);
        if ('error' in packet) return packet;
        const lostBefore = this.#count(bytes, at + 28 + pad4(captured), end, OPTION_EPB_DROPCOUNT);
        if (lostBefore === 0) return packet;
        this.#lost += lostBefore;
        return { ...packet, lostBefore };
      }
      case BLOCK_SIMPLE_PACKET: {
        this.#packets++;
        if (length < 16) throw this.#damaged(at, 'a packet block is too short');
        const size = this.#u32(bytes, at + 8);
        return packetOf(this.#packets, bytes, at + 12, size, end, this.#interfaces[0], 0n);
      }
      default: // Names, secrets, of other tools: nothing of ours.
        return undefined;
    }
  }

  #interface(bytes: Buffer, at: number, end: number): void {
    let numerator = 1000n; // Microseconds, where it does not say.
    let denominator = 1n;
    let offsetNs = 0n;
    for (const { code, from, length } of this.#options(bytes, at + 16, end)) {
      if (code === OPTION_IF_TSRESOL && length === 1) {
        const value = bytes[from] ?? 6;
        numerator = 1_000_000_000n;
        denominator = (value & 0x80) === 0 ? 10n ** BigInt(value) : 1n << BigInt(value & 0x7f);
      }
      if (code === OPTION_IF_TSOFFSET && length === 8) {
        const seconds = this.#little ? bytes.readBigInt64LE(from) : bytes.readBigInt64BE(from);
        offsetNs = seconds * 1_000_000_000n;
      }
      if (code === OPTION_COMMENT) this.#comment(bytes.toString('latin1', from, from + length));
    }
    const linkType = this.#u16(bytes, at + 8);
    this.#interfaces.push({ linkType, numerator, denominator, offsetNs });
  }

  #comment(text: string): void {
    if (text === IN_USE_COMMENTS.true) this.#inUse = true;
    if (text === IN_USE_COMMENTS.false) this.#inUse = false;
    const match = FUNCTION_COMMENT.exec(text);
    if (match === null) return;
    const [, bus = '', device = '', fn = '', hex = ''] = match;
    const bdf = (parseInt(bus, 16) << 8) | ((parseInt(device, 16) & 31) << 3) | Number(fn);
    this.#function = { bdf, configSpace: Buffer.from(hex, 'hex') };
  }

  /** The value of a 64-bit option, 0 where it is not there. */
  #count(bytes: Buffer, at: number, end: number, wanted: number): number {
    for (const { code, from, length } of this.#options(bytes, at, end)) {
      if (code !== wanted || length !== 8) continue;
      return Number(this.#little ? bytes.readBigUInt64LE(from) : bytes.readBigUInt64BE(from));
    }
    return 0;
  }

  *#options(
    bytes: Buffer,
    at: number,
    end: number,
  ): Generator<{ code: number; from: number; length: number }> {
    while (at + 4 <= end) {
      const code = this.#u16(bytes, at);
      const length = this.#u16(bytes, at + 2);
      if (code === OPTION_END || at + 4 + length > end) return;
      yield { code, from: at + 4, length };
      at += 4 + pad4(length);
    }
  }

  #u32(bytes: Buffer, offset: number): number {
    return this.#little ? bytes.readUInt32LE(offset) : bytes.readUInt32BE(offset);
  }

  #u16(bytes: Buffer, offset: number): number {
    return this.#little ? bytes.readUInt16LE(offset) : bytes.readUInt16BE(offset);
  }

  #damaged(at: number, what: string): DxpuError {
    const byte = this.#position + at;
    return new DxpuError('data_loss', `the capture is damaged at byte ${byte}: ${what}`, {
      details: { byte },
    });
  }
}

function packetOf(
  number: number,
  bytes: Buffer,
  at: number,
  length: number,
  end: number,
  from: Interface | undefined,
  ticks: bigint,
): ReadPacket {
  if (from === undefined) return { number, error: 'is of an interface the file does not describe' };
  if (at + length > end)
    return { number, error: `claims ${length} bytes, more than its block has` };
  if (from.linkType !== LINK_TYPE_USER0) {
    return {
      number,
      error: `has link type ${from.linkType}, TLP captures have ${LINK_TYPE_USER0}`,
    };
  }
  const direction = bytes[at + 1];
  if (
    length < PSEUDO_HEADER_BYTES ||
    bytes[at] !== PSEUDO_HEADER_VERSION ||
    (direction !== 0 && direction !== 1)
  ) {
    return { number, error: 'has no header of a dxpu capture (version 1, direction, slot)' };
  }
  return {
    number,
    packet: {
      timeNs: (ticks * from.numerator) / from.denominator + from.offsetNs,
      direction: direction === 1 ? 'up' : 'down',
      slot: bytes.readUInt16BE(at + 2),
      tlp: bytes.subarray(at + PSEUDO_HEADER_BYTES, at + length),
    },
  };
}
