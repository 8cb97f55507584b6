/**
 * Captures of TLPs as pcapng files (draft-ietf-opsawg-pcapng), readable by any tool that knows the
 * container. Link type 147 (USER0): the type registered for PCI Express (125) is reserved for
 * private use and its format is not published. Each packet is a header of 4 bytes, then the TLP as
 * PCIe 5.0 base chapter 2.2 lays it out, ECRC included where TD says so:
 *
 *   byte 0     version, 1
 *   byte 1     direction: 0 down (towards the device), 1 up (from the device)
 *   bytes 2-3  slot, big-endian: the virtual slot on a host, the slot on a box
 *
 * The direction is in epb_flags too: outbound is down, inbound is up. Timestamps are nanoseconds
 * since 1970.
 */
import { DxpuError } from '#base/errors';
import { formatBdf } from '#base/units';

export const LINK_TYPE_USER0 = 147;
const PSEUDO_HEADER_BYTES = 4;
const PSEUDO_HEADER_VERSION = 1;

const BLOCK_SECTION = 0x0a0d0d0a;
const BLOCK_INTERFACE = 1;
const BLOCK_SIMPLE_PACKET = 3;
const BLOCK_ENHANCED_PACKET = 6;
const BYTE_ORDER_MAGIC = 0x1a2b3c4d;
const OPTION_END = 0;
const OPTION_COMMENT = 1;
const OPTION_IF_NAME = 2;
const OPTION_IF_TSRESOL = 9;
const OPTION_SHB_USERAPPL = 4;
const OPTION_EPB_FLAGS = 2;
/** A block larger than this is a damaged file, not a packet. */
const MAX_BLOCK_BYTES = 1 << 24;

export interface CapturedTlp {
  /** Nanoseconds since 1970. */
  readonly timeNs: bigint;
  readonly slot: number;
  readonly direction: 'down' | 'up';
  readonly tlp: Uint8Array;
}

const FUNCTION_COMMENT =
  /^config space of ([0-9a-f]{2}):([0-9a-f]{2})\.([0-7]): ((?:[0-9a-f]{2}){256})$/;

const pad4 = (bytes: number): number => (bytes + 3) & ~3;

function option(code: number, value: Uint8Array): Buffer {
  const out = Buffer.alloc(4 + pad4(value.length));
  out.writeUInt16LE(code, 0);
  out.writeUInt16LE(value.length, 2);
  out.set(value, 4);
  return out;
}

const END_OF_OPTIONS = option(OPTION_END, new Uint8Array(0));

function block(type: number, parts: readonly Uint8Array[]): Buffer {
  const bytes = 12 + parts.reduce((sum, part) => sum + part.length, 0);
  const frame = Buffer.alloc(8);
  frame.writeUInt32LE(type, 0);
  frame.writeUInt32LE(bytes, 4);
  const tail = Buffer.alloc(4);
  tail.writeUInt32LE(bytes, 0);
  return Buffer.concat([frame, ...parts, tail]);
}

/**
 * What a file begins with: the section, and one interface named after what was captured.
 * What is known of the captured function goes into a comment: a replay sets its device model to it.
 */
export function encodeHeader(
  interfaceName: string,
  application: string,
  captured?: CapturedFunction,
): Buffer {
  const section = Buffer.alloc(16);
  section.writeUInt32LE(BYTE_ORDER_MAGIC, 0);
  section.writeUInt16LE(1, 4);
  section.writeUInt16LE(0, 6);
  section.writeBigInt64LE(-1n, 8);
  const link = Buffer.alloc(8);
  link.writeUInt16LE(LINK_TYPE_USER0, 0);
  link.writeUInt32LE(0, 4);
  return Buffer.concat([
    block(BLOCK_SECTION, [
      section,
      option(OPTION_SHB_USERAPPL, Buffer.from(application)),
      END_OF_OPTIONS,
    ]),
    block(BLOCK_INTERFACE, [
      link,
      option(OPTION_IF_NAME, Buffer.from(interfaceName)),
      option(OPTION_IF_TSRESOL, Uint8Array.of(9)),
      ...(captured === undefined ? [] : [option(OPTION_COMMENT, functionComment(captured))]),
      END_OF_OPTIONS,
    ]),
  ]);
}

function functionComment({ bdf, configSpace }: CapturedFunction): Buffer {
  const hex = Buffer.from(configSpace).toString('hex');
  return Buffer.from(`config space of ${formatBdf(bdf)}: ${hex}`);
}

export function encodePacket(packet: CapturedTlp): Buffer {
  const bytes = PSEUDO_HEADER_BYTES + packet.tlp.length;
  const body = Buffer.alloc(20 + pad4(bytes));
  body.writeUInt32LE(0, 0);
  body.writeUInt32LE(Number(packet.timeNs >> 32n), 4);
  body.writeUInt32LE(Number(packet.timeNs & 0xffffffffn), 8);
  body.writeUInt32LE(bytes, 12);
  body.writeUInt32LE(bytes, 16);
  body.writeUInt8(PSEUDO_HEADER_VERSION, 20);
  body.writeUInt8(packet.direction === 'up' ? 1 : 0, 21);
  body.writeUInt16BE(packet.slot, 22);
  body.set(packet.tlp, 20 + PSEUDO_HEADER_BYTES);
  const flags = Buffer.alloc(4);
  flags.writeUInt32LE(packet.direction === 'up' ? 1 : 2, 0);
  return block(BLOCK_ENHANCED_PACKET, [body, option(OPTION_EPB_FLAGS, flags), END_OF_OPTIONS]);
}

/** Whether the bytes begin as a pcapng file does. */
export function isPcapng(bytes: Uint8Array): boolean {
  return bytes.length >= 12 && Buffer.from(bytes.subarray(0, 4)).readUInt32BE(0) === BLOCK_SECTION;
}

/** A packet of a file, or what is wrong with it. `number` counts from 1. */
export type ReadPacket =
  | { readonly number: number; readonly packet: CapturedTlp }
  | { readonly number: number; readonly error: string };

interface Interface {
  readonly linkType: number;
  /** Nanoseconds = ticks × numerator ÷ denominator. */
  readonly numerator: bigint;
  readonly denominator: bigint;
}

/** The function that was captured, as it was when the capture began. */
export interface CapturedFunction {
  readonly bdf: number;
  /** The first 256 bytes of its config space. */
  readonly configSpace: Uint8Array;
}

/**
 * Reads a capture as it comes in, piece by piece. A packet of another link type or with a bad header
 * is given as an error and reading goes on; damage ends it with a `DxpuError` naming the byte.
 */
export class PcapngReader {
  #rest: Buffer = Buffer.alloc(0);
  /** Bytes read before those of `#rest`. */
  #position = 0;
  #little = true;
  #interfaces: Interface[] = [];
  #packets = 0;
  #function: CapturedFunction | undefined;

  /** What the file says of the captured function; before its first packet, if at all. */
  get capturedFunction(): CapturedFunction | undefined {
    return this.#function;
  }

  /** The packets that are complete with these bytes. */
  *push(chunk: Uint8Array): Generator<ReadPacket> {
    const bytes = Buffer.concat([this.#rest, chunk]);
    let at = 0;
    while (bytes.length - at >= 12) {
      if (bytes.readUInt32BE(at) === BLOCK_SECTION) this.#beginSection(bytes, at);
      const length = this.#u32(bytes, at + 4);
      if (length < 12 || length % 4 !== 0 || length > MAX_BLOCK_BYTES) {
        throw this.#damaged(at, `a block claims a length of ${length} bytes`);
      }
      if (at + length > bytes.length) break;
      const end = at + length - 4;
      if (this.#u32(bytes, end) !== length) {
        throw this.#damaged(at, 'the two lengths of a block differ');
      }
      const packet = this.#block(bytes, at, end);
      at += length;
      if (packet !== undefined) yield packet;
    }
    this.#rest = bytes.subarray(at);
    this.#position += at;
  }

  /** There is no more. Fails when the last block is incomplete. */
  end(): void {
    if (this.#rest.length > 0) throw this.#damaged(0, 'it ends within a block');
  }

  #beginSection(bytes: Buffer, at: number): void {
    const magic = bytes.readUInt32LE(at + 8);
    if (magic !== BYTE_ORDER_MAGIC && bytes.readUInt32BE(at + 8) !== BYTE_ORDER_MAGIC) {
      throw this.#damaged(at, 'a section has no byte order mark');
    }
    this.#little = magic === BYTE_ORDER_MAGIC;
    this.#interfaces = [];
  }

  #block(bytes: Buffer, at: number, end: number): ReadPacket | undefined {
    const length = end + 4 - at;
    switch (this.#u32(bytes, at)) {
      case BLOCK_INTERFACE:
        if (length < 20) throw this.#damaged(at, 'an interface block is too short');
        this.#interface(bytes, at, end);
        return undefined;
      case BLOCK_ENHANCED_PACKET: {
        this.#packets++;
        if (length < 32) throw this.#damaged(at, 'a packet block is too short');
        const ticks =
          (BigInt(this.#u32(bytes, at + 12)) << 32n) | BigInt(this.#u32(bytes, at + 16));
        const from = this.#interfaces[this.#u32(bytes, at + 8)];
        const captured = this.#u32(bytes, at + 20);
        return packetOf(this.#packets, bytes, at + 28, captured, end, from, ticks);
      }
      case BLOCK_SIMPLE_PACKET: {
        this.#packets++;
        if (length < 16) throw this.#damaged(at, 'a packet block is too short');
        const size = this.#u32(bytes, at + 8);
        return packetOf(this.#packets, bytes, at + 12, size, end, this.#interfaces[0], 0n);
      }
      default: // Statistics, names, secrets: nothing of ours.
        return undefined;
    }
  }

  #interface(bytes: Buffer, at: number, end: number): void {
    let numerator = 1000n; // Microseconds, where it does not say.
    let denominator = 1n;
    for (let option = at + 16; option + 4 <= end; ) {
      const code = this.#u16(bytes, option);
      const length = this.#u16(bytes, option + 2);
      if (code === OPTION_END || option + 4 + length > end) break;
      if (code === OPTION_IF_TSRESOL && length === 1) {
        const value = bytes[option + 4] ?? 6;
        numerator = 1_000_000_000n;
        denominator = (value & 0x80) === 0 ? 10n ** BigInt(value) : 1n << BigInt(value & 0x7f);
      }
      if (code === OPTION_COMMENT) {
        const text = bytes.toString('latin1', option + 4, option + 4 + length);
        const match = FUNCTION_COMMENT.exec(text);
        if (match !== null) {
          const [, bus = '', device = '', fn = '', hex = ''] = match;
          const bdf = (parseInt(bus, 16) << 8) | ((parseInt(device, 16) & 31) << 3) | Number(fn);
          this.#function = { bdf, configSpace: Buffer.from(hex, 'hex') };
        }
      }
      option += 4 + pad4(length);
    }
    this.#interfaces.push({ linkType: this.#u16(bytes, at + 8), numerator, denominator });
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
      timeNs: (ticks * from.numerator) / from.denominator,
      direction: direction === 1 ? 'up' : 'down',
      slot: bytes.readUInt16BE(at + 2),
      tlp: bytes.subarray(at + PSEUDO_HEADER_BYTES, at + length),
    },
  };
}
