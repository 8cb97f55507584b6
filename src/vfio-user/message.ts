/**
 * The header that starts every message, and the message as the decoders get it. All fields are
 * little-endian (specification, "Header"; "endianness of the host system", and the hosts this runs on
 * are little-endian).
 */
import { assert } from '#base/assert';
import { Errno, Refusal } from './refusal.ts';

export const HEADER_BYTES = 16;

/** Specification, "Commands"; 14 and 16 to 18 are of migration, older and newer revisions. */
export const Command = {
  VERSION: 1,
  DMA_MAP: 2,
  DMA_UNMAP: 3,
  DEVICE_GET_INFO: 4,
  DEVICE_GET_REGION_INFO: 5,
  DEVICE_GET_REGION_IO_FDS: 6,
  DEVICE_GET_IRQ_INFO: 7,
  DEVICE_SET_IRQS: 8,
  REGION_READ: 9,
  REGION_WRITE: 10,
  DMA_READ: 11,
  DMA_WRITE: 12,
  DEVICE_RESET: 13,
  DIRTY_PAGES: 14,
  REGION_WRITE_MULTI: 15,
  DEVICE_FEATURE: 16,
  MIG_DATA_READ: 17,
  MIG_DATA_WRITE: 18,
} as const;

export type Command = (typeof Command)[keyof typeof Command];

const TYPE_MASK = 0xf;
export const TYPE_COMMAND = 0;
export const TYPE_REPLY = 1;
export const FLAG_NO_REPLY = 0x10;
export const FLAG_ERROR = 0x20;

/** One whole message. It lives as long as the call that hands it over. */
export interface Message {
  readonly id: number;
  /** Any 16-bit number: a peer may send commands that `Command` does not name. */
  readonly command: number;
  readonly flags: number;
  /** Meaningful in a reply with `FLAG_ERROR`; even then it may be 0. */
  readonly errno: number;
  /** Header and payload. */
  readonly bytes: Uint8Array;
  readonly view: DataView;
}

/** `REGION_READ`, or `command 99` for one without a name. */
export function commandName(command: number): string {
  const entry = Object.entries(Command).find(([, value]) => value === command);
  return entry === undefined ? `command ${command}` : entry[0];
}

export function payloadBytes(message: Message): number {
  return message.bytes.length - HEADER_BYTES;
}

export function isReply(message: Message): boolean {
  return (message.flags & TYPE_MASK) === TYPE_REPLY;
}

export function isCommand(message: Message): boolean {
  return (message.flags & TYPE_MASK) === TYPE_COMMAND;
}

/** Whether whoever sent this command waits for its reply. */
export function wantsReply(command: Message): boolean {
  return (command.flags & FLAG_NO_REPLY) === 0;
}

/** The size field of a header, which is the first the receiver needs. */
export function messageSize(view: DataView, offset: number): number {
  return view.getUint32(offset + 4, true);
}

/** The message in `bytes`, of at least 16 bytes. The size field is not looked at. */
export function parseMessage(bytes: Uint8Array): Message {
  assert(bytes.length >= HEADER_BYTES, 'a message has a header');
  const view = viewOf(bytes);
  return {
    id: view.getUint16(0, true),
    command: view.getUint16(2, true),
    flags: view.getUint32(8, true),
    errno: view.getUint32(12, true),
    bytes,
    view,
  };
}

/** A new message whose payload is zeros: write it at `HEADER_BYTES` and on. */
export function newMessage(
  id: number,
  command: number,
  flags: number,
  payload: number,
  errno = 0,
): Uint8Array {
  // Not on the heap of the engine, so that its address is good for a system call.
  const bytes = new Uint8Array(new ArrayBuffer(HEADER_BYTES + payload));
  const view = viewOf(bytes);
  view.setUint16(0, id, true);
  view.setUint16(2, command, true);
  view.setUint32(4, bytes.length, true);
  view.setUint32(8, flags, true);
  view.setUint32(12, errno, true);
  return bytes;
}

/** What of a request its reply repeats; it may outlive the message. */
export type RequestName = Pick<Message, 'id' | 'command'>;

export function requestName({ id, command }: Message): RequestName {
  return { id, command };
}

/** A reply without payload. */
export function emptyReply(request: RequestName): Uint8Array {
  return newMessage(request.id, request.command, TYPE_REPLY, 0);
}

/** The reply that refuses `request`; it has no payload (specification, "Header"). */
export function errorReply(request: RequestName, errno: number): Uint8Array {
  return newMessage(request.id, request.command, TYPE_REPLY | FLAG_ERROR, 0, errno);
}

export function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/** EINVAL when the payload is not exactly `wanted` bytes long. */
export function refuseLength(message: Message, wanted: number): Refusal | undefined {
  const got = payloadBytes(message);
  if (got === wanted) return undefined;
  return new Refusal(
    Errno.EINVAL,
    `${commandName(message.command)} has ${got} bytes of payload, not ${wanted}`,
  );
}

/** EINVAL when the payload is shorter than `least` bytes. */
export function refuseShort(message: Message, least: number): Refusal | undefined {
  const got = payloadBytes(message);
  if (got >= least) return undefined;
  return new Refusal(
    Errno.EINVAL,
    `${commandName(message.command)} has ${got} bytes of payload, at least ${least} are needed`,
  );
}

/** EINVAL when the payload, or the `argsz` that it begins with, is below `least` bytes. */
export function refuseArgsz(message: Message, least: number): Refusal | undefined {
  const short = refuseShort(message, least);
  if (short !== undefined) return short;
  const argsz = message.view.getUint32(HEADER_BYTES, true);
  if (argsz >= least) return undefined;
  return new Refusal(
    Errno.EINVAL,
    `${commandName(message.command)} has argsz ${argsz}, at least ${least} is needed`,
  );
}

/** Marks a 64-bit field that is no safe integer. */
export const NOT_SAFE = -1;

/** A 64-bit field as a number, or `NOT_SAFE` from 2^53 on. */
export function readU64(view: DataView, offset: number): number {
  const high = view.getUint32(offset + 4, true);
  if (high >= 0x20_0000) return NOT_SAFE;
  return high * 0x1_0000_0000 + view.getUint32(offset, true);
}

export function writeU64(view: DataView, offset: number, value: number): void {
  assert(Number.isSafeInteger(value) && value >= 0, `not an unsigned safe integer: ${value}`);
  view.setUint32(offset, value >>> 0, true);
  view.setUint32(offset + 4, Math.floor(value / 0x1_0000_0000), true);
}
