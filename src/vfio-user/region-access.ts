/**
 * REGION_READ, REGION_WRITE and REGION_WRITE_MULTI (specification, "Read and Write Operations").
 */
import {
  Command,
  HEADER_BYTES,
  type Message,
  newMessage,
  NOT_SAFE,
  payloadBytes,
  readU64,
  refuseLength,
  refuseShort,
  TYPE_COMMAND,
  TYPE_REPLY,
  viewOf,
  writeU64,
} from './message.ts';
import { Errno, Refusal } from './refusal.ts';

const FIXED_BYTES = 16;
export const REGION_DATA = HEADER_BYTES + FIXED_BYTES;
const MULTI_FIXED_BYTES = 8;
const MULTI_ENTRY_BYTES = 24;
const MULTI_DATA_BYTES = 8;

export interface RegionRange {
  readonly region: number;
  readonly offset: number;
  readonly count: number;
}

export interface RegionWrite extends RegionRange {
  /** `count` bytes; of a decoded message they are a view of it. */
  readonly bytes: Uint8Array;
}

/** A read, or a write with its data at `REGION_DATA`, of 1 to `maxBytes` bytes. */
export function decodeRegionAccess(message: Message, maxBytes: number): RegionRange | Refusal {
  const short = refuseShort(message, FIXED_BYTES);
  if (short !== undefined) return short;
  const range = readRange(message.view, HEADER_BYTES);
  if (range.count === 0 || range.count > maxBytes) {
    return new Refusal(
      Errno.EINVAL,
      `access of ${range.count} bytes, 1 to ${maxBytes} are allowed`,
    );
  }
  const data = message.command === Command.REGION_WRITE ? range.count : 0;
  return refuseLength(message, FIXED_BYTES + data) ?? range;
}

/** The writes of a REGION_WRITE_MULTI, 1 to 8 bytes each. Wrong in one, it is wrong as a whole. */
export function decodeRegionWriteMulti(message: Message): RegionWrite[] | Refusal {
  const short = refuseShort(message, MULTI_FIXED_BYTES);
  if (short !== undefined) return short;
  const count = readU64(message.view, HEADER_BYTES);
  const room = payloadBytes(message) - MULTI_FIXED_BYTES;
  if (count === NOT_SAFE || count === 0 || count * MULTI_ENTRY_BYTES !== room) {
    return new Refusal(Errno.EINVAL, `${count} writes in ${room} bytes`);
  }
  const writes: RegionWrite[] = [];
  for (let place = 0; place < count; place++) {
    const at = HEADER_BYTES + MULTI_FIXED_BYTES + MULTI_ENTRY_BYTES * place;
    const range = readRange(message.view, at);
    if (range.count === 0 || range.count > MULTI_DATA_BYTES) {
      return new Refusal(Errno.EINVAL, `write ${place} of ${range.count} bytes`);
    }
    const data = at + FIXED_BYTES;
    writes.push({ ...range, bytes: message.bytes.subarray(data, data + range.count) });
  }
  return writes;
}

export function encodeRegionRead(id: number, range: RegionRange): Uint8Array {
  return regionMessage(id, Command.REGION_READ, TYPE_COMMAND, range, 0);
}

/** `flags`: 0, or `FLAG_NO_REPLY`. */
export function encodeRegionWrite(id: number, write: RegionWrite, flags = 0): Uint8Array {
  const type = TYPE_COMMAND | flags;
  const message = regionMessage(id, Command.REGION_WRITE, type, write, write.count);
  message.set(write.bytes.subarray(0, write.count), REGION_DATA);
  return message;
}

export function encodeRegionWriteMulti(
  id: number,
  writes: readonly RegionWrite[],
  flags = 0,
): Uint8Array {
  const length = MULTI_FIXED_BYTES + MULTI_ENTRY_BYTES * writes.length;
  const message = newMessage(id, Command.REGION_WRITE_MULTI, TYPE_COMMAND | flags, length);
  const view = viewOf(message);
  writeU64(view, HEADER_BYTES, writes.length);
  writes.forEach((write, place) => {
    const at = HEADER_BYTES + MULTI_FIXED_BYTES + MULTI_ENTRY_BYTES * place;
    writeRange(view, at, write);
    message.set(write.bytes.subarray(0, write.count), at + FIXED_BYTES);
  });
  return message;
}

/** The reply to a read, whose data the caller puts at `REGION_DATA`. */
export function encodeRegionReadReply(id: number, range: RegionRange): Uint8Array {
  return regionMessage(id, Command.REGION_READ, TYPE_REPLY, range, range.count);
}

export function encodeRegionWriteReply(id: number, range: RegionRange): Uint8Array {
  return regionMessage(id, Command.REGION_WRITE, TYPE_REPLY, range, 0);
}

export function encodeRegionWriteMultiReply(id: number, count: number): Uint8Array {
  const message = newMessage(id, Command.REGION_WRITE_MULTI, TYPE_REPLY, MULTI_FIXED_BYTES);
  writeU64(viewOf(message), HEADER_BYTES, count);
  return message;
}

/** Whether `reply` answers an access of `range` and has the data it should. */
export function isRegionReply(reply: Message, range: RegionRange): boolean {
  const data = reply.command === Command.REGION_READ ? range.count : 0;
  if (payloadBytes(reply) !== FIXED_BYTES + data) return false;
  const got = readRange(reply.view, HEADER_BYTES);
  return got.offset === range.offset && got.region === range.region && got.count === range.count;
}

function regionMessage(
  id: number,
  command: number,
  type: number,
  range: RegionRange,
  dataBytes: number,
): Uint8Array {
  const message = newMessage(id, command, type, FIXED_BYTES + dataBytes);
  writeRange(viewOf(message), HEADER_BYTES, range);
  return message;
}

function readRange(view: DataView, at: number): RegionRange {
  return {
    offset: readU64(view, at),
    region: view.getUint32(at + 8, true),
    count: view.getUint32(at + 12, true),
  };
}

function writeRange(view: DataView, at: number, range: RegionRange): void {
  writeU64(view, at, range.offset);
  view.setUint32(at + 8, range.region, true);
  view.setUint32(at + 12, range.count, true);
}
