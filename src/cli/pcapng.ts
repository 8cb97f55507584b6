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
 * since 1970. What was lost before a packet is its epb_dropcount, what was lost at all the isb_ifdrop
 * of the statistics at the end. This file writes; pcapng-reader.ts reads.
 */
import { formatBdf } from '#base/units';

export const LINK_TYPE_USER0 = 147;
export const PSEUDO_HEADER_BYTES = 4;
export const PSEUDO_HEADER_VERSION = 1;

/** Reads the same in either byte order. */
export const BLOCK_SECTION = 0x0a0d0d0a;
export const BLOCK_INTERFACE = 1;
export const BLOCK_SIMPLE_PACKET = 3;
export const BLOCK_STATISTICS = 5;
export const BLOCK_ENHANCED_PACKET = 6;
export const BYTE_ORDER_MAGIC = 0x1a2b3c4d;
export const MAJOR_VERSION = 1;
export const OPTION_END = 0;
export const OPTION_COMMENT = 1;
export const OPTION_IF_TSRESOL = 9;
export const OPTION_IF_TSOFFSET = 14;
export const OPTION_EPB_DROPCOUNT = 4;
export const OPTION_ISB_IFDROP = 5;
const OPTION_IF_NAME = 2;
const OPTION_SHB_USERAPPL = 4;
const OPTION_EPB_FLAGS = 2;
const OPTION_ISB_IFRECV = 4;

const FLAGS_INBOUND = 1;
const FLAGS_OUTBOUND = 2;
const TWO_TO_32 = 0x1_0000_0000;

export interface CapturedTlp {
  /** Nanoseconds since 1970. */
  readonly timeNs: bigint;
  readonly slot: number;
  readonly direction: 'down' | 'up';
  readonly tlp: Uint8Array;
}

/** The function that was captured, as it was when the capture began. */
export interface CapturedFunction {
  readonly bdf: number;
  /** The first 256 bytes of its config space. */
  readonly configSpace: Uint8Array;
}

/** What is known of the captured function when a capture begins; each becomes a comment. */
export interface CaptureStart {
  readonly function?: CapturedFunction | undefined;
  /** Whether the host had written to its memory before, so that it need not be as after a reset. */
  readonly inUse?: boolean | undefined;
}

export const IN_USE_COMMENTS = {
  true: 'the function was in use when the capture began',
  false: 'the function was not in use when the capture began',
} as const;

export const pad4 = (bytes: number): number => (bytes + 3) & ~3;

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
 * What is known of the captured function goes into comments: a replay sets its device model to it.
 */
export function encodeHeader(
  interfaceName: string,
  application: string,
  start: CaptureStart = {},
): Buffer {
  const section = Buffer.alloc(16);
  section.writeUInt32LE(BYTE_ORDER_MAGIC, 0);
  section.writeUInt16LE(MAJOR_VERSION, 4);
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
      ...commentsOf(start).map((text) => option(OPTION_COMMENT, Buffer.from(text))),
      END_OF_OPTIONS,
    ]),
  ]);
}

function commentsOf({ function: captured, inUse }: CaptureStart): string[] {
  const comments: string[] = [];
  if (captured !== undefined) {
    const hex = Buffer.from(captured.configSpace).toString('hex');
    comments.push(`config space of ${formatBdf(captured.bdf)}: ${hex}`);
  }
  if (inUse !== undefined) comments.push(IN_USE_COMMENTS[`${inUse}`]);
  return comments;
}

/** Room for a packet with a TLP of `tlpBytes`, whatever its options. */
export function packetRoom(tlpBytes: number): number {
  return 64 + pad4(PSEUDO_HEADER_BYTES + tlpBytes);
}

/**
 * Writes a packet at `at` of `into`, which must have `packetRoom`, and returns where it ends. Time in
 * two words, for numbers do not hold it; `lostBefore` TLPs were lost since the packet before it.
 */
export function writePacket(
  into: Buffer,
  at: number,
  timeHi: number,
  timeLo: number,
  up: boolean,
  slot: number,
  lostBefore: number,
  bytes: Uint8Array,
  offset: number,
  length: number,
): number {
  const captured = PSEUDO_HEADER_BYTES + length;
  const data = at + 28;
  let end = data + pad4(captured);
  into.writeUInt32LE(BLOCK_ENHANCED_PACKET, at);
  into.writeUInt32LE(0, at + 8);
  into.writeUInt32LE(timeHi, at + 12);
  into.writeUInt32LE(timeLo, at + 16);
  into.writeUInt32LE(captured, at + 20);
  into.writeUInt32LE(captured, at + 24);
  into[data] = PSEUDO_HEADER_VERSION;
  into[data + 1] = up ? 1 : 0;
  into.writeUInt16BE(slot, data + 2);
  into.set(bytes.subarray(offset, offset + length), data + PSEUDO_HEADER_BYTES);
  into.fill(0, data + captured, end);
  into.writeUInt16LE(OPTION_EPB_FLAGS, end);
  into.writeUInt16LE(4, end + 2);
  into.writeUInt32LE(up ? FLAGS_INBOUND : FLAGS_OUTBOUND, end + 4);
  end += 8;
  if (lostBefore > 0) {
    into.writeUInt16LE(OPTION_EPB_DROPCOUNT, end);
    into.writeUInt16LE(8, end + 2);
    into.writeUInt32LE(lostBefore % TWO_TO_32, end + 4);
    into.writeUInt32LE(Math.floor(lostBefore / TWO_TO_32), end + 8);
    end += 12;
  }
  into.writeUInt32LE(OPTION_END, end);
  const size = end + 8 - at;
  into.writeUInt32LE(size, at + 4);
  into.writeUInt32LE(size, end + 4);
  return at + size;
}

export function encodePacket(packet: CapturedTlp, lostBefore = 0): Buffer {
  const { timeNs, direction, slot, tlp } = packet;
  const into = Buffer.alloc(packetRoom(tlp.length));
  const [hi, lo] = [Number(timeNs >> 32n), Number(timeNs & 0xffff_ffffn)];
  const end = writePacket(
    into,
    0,
    hi,
    lo,
    direction === 'up',
    slot,
    lostBefore,
    tlp,
    0,
    tlp.length,
  );
  return into.subarray(0, end);
}

/** What a file ends with: how many TLPs there were for it, and how many of them it lacks. */
export function encodeStatistics(timeNs: bigint, captured: number, dropped: number): Buffer {
  const body = Buffer.alloc(12);
  body.writeUInt32LE(Number(timeNs >> 32n), 4);
  body.writeUInt32LE(Number(timeNs & 0xffff_ffffn), 8);
  const count = (value: number): Buffer => {
    const bytes = Buffer.alloc(8);
    bytes.writeBigUInt64LE(BigInt(value));
    return bytes;
  };
  return block(BLOCK_STATISTICS, [
    body,
    option(OPTION_ISB_IFRECV, count(captured + dropped)),
    option(OPTION_ISB_IFDROP, count(dropped)),
    END_OF_OPTIONS,
  ]);
}

/** How many of the blocks at the beginning of `blocks` are whole in its first `bytes`, and their end. */
export function wholeBlocks(blocks: Buffer, bytes: number): { count: number; end: number } {
  let count = 0;
  let end = 0;
  while (end + 12 <= bytes) {
    const next = end + blocks.readUInt32LE(end + 4);
    if (next > bytes) break;
    end = next;
    count++;
  }
  return { count, end };
}
