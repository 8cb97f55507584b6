/**
 * DMA_READ and DMA_WRITE: how the server reaches memory that came without a file descriptor
 * (specification, "VFIO_USER_DMA_READ", "VFIO_USER_DMA_WRITE"). Requests go from server to client.
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
/** The specification's table gives the count of a DMA_WRITE reply four bytes; QEMU sends eight. */
const SHORT_WRITE_REPLY_BYTES = 12;
export const DMA_DATA = HEADER_BYTES + FIXED_BYTES;

export interface DmaAccess {
  readonly address: number;
  readonly count: number;
}

/** A DMA_READ or, with its data at `DMA_DATA`, a DMA_WRITE, of 1 to `maxBytes` bytes below 2^53. */
export function decodeDmaAccess(message: Message, maxBytes: number): DmaAccess | Refusal {
  const short = refuseShort(message, FIXED_BYTES);
  if (short !== undefined) return short;
  const address = readU64(message.view, HEADER_BYTES);
  const count = readU64(message.view, HEADER_BYTES + 8);
  if (count === NOT_SAFE || count === 0 || count > maxBytes) {
    return new Refusal(Errno.EINVAL, `DMA of ${count} bytes, 1 to ${maxBytes} are allowed`);
  }
  if (address === NOT_SAFE || address + count > Number.MAX_SAFE_INTEGER) {
    return new Refusal(Errno.EINVAL, 'DMA beyond 2^53');
  }
  const data = message.command === Command.DMA_WRITE ? count : 0;
  return refuseLength(message, FIXED_BYTES + data) ?? { address, count };
}

export function encodeDmaRead(id: number, address: number, count: number): Uint8Array {
  return dmaMessage(id, Command.DMA_READ, TYPE_COMMAND, address, count, 0);
}

/** A DMA_WRITE of `count` bytes of `data` from `from` on. */
export function encodeDmaWrite(
  id: number,
  address: number,
  data: Uint8Array,
  from: number,
  count: number,
): Uint8Array {
  const message = dmaMessage(id, Command.DMA_WRITE, TYPE_COMMAND, address, count, count);
  message.set(data.subarray(from, from + count), DMA_DATA);
  return message;
}

/** The reply to a read, whose `count` bytes of data the caller puts at `DMA_DATA`. */
export function encodeDmaReadReply(id: number, access: DmaAccess): Uint8Array {
  const { address, count } = access;
  return dmaMessage(id, Command.DMA_READ, TYPE_REPLY, address, count, count);
}

export function encodeDmaWriteReply(id: number, access: DmaAccess): Uint8Array {
  return dmaMessage(id, Command.DMA_WRITE, TYPE_REPLY, access.address, access.count, 0);
}

/** Whether `reply` answers a DMA request of `count` bytes at `address` and has what it should. */
export function isDmaReply(reply: Message, address: number, count: number): boolean {
  const got = payloadBytes(reply);
  if (got < SHORT_WRITE_REPLY_BYTES || readU64(reply.view, HEADER_BYTES) !== address) return false;
  if (reply.view.getUint32(HEADER_BYTES + 8, true) !== count) return false;
  if (reply.command === Command.DMA_READ) return got === FIXED_BYTES + count;
  return got === SHORT_WRITE_REPLY_BYTES || got === FIXED_BYTES;
}

function dmaMessage(
  id: number,
  command: number,
  type: number,
  address: number,
  count: number,
  dataBytes: number,
): Uint8Array {
  const message = newMessage(id, command, type, FIXED_BYTES + dataBytes);
  const view = viewOf(message);
  writeU64(view, HEADER_BYTES, address);
  writeU64(view, HEADER_BYTES + 8, count);
  return message;
}
