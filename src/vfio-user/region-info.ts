/**
 * DEVICE_GET_REGION_INFO: a region's size, access, and which parts of it the client may map
 * (specification, "VFIO_USER_DEVICE_GET_REGION_INFO"; numbers and capabilities from linux/vfio.h).
 */
import {
  Command,
  HEADER_BYTES,
  type Message,
  newMessage,
  NOT_SAFE,
  payloadBytes,
  readU64,
  refuseArgsz,
  refuseShort,
  TYPE_COMMAND,
  TYPE_REPLY,
  viewOf,
  writeU64,
} from './message.ts';
import { Errno, Refusal } from './refusal.ts';

/** BARs are regions 0 to 5. */
export const REGION_ROM = 6;
export const REGION_CONFIG = 7;
export const REGION_VGA = 8;
export const REGION_COUNT = 9;

const INFO_BYTES = 32;
const FLAG_READ = 1 << 0;
const FLAG_WRITE = 1 << 1;
const FLAG_MMAP = 1 << 2;
const FLAG_CAPS = 1 << 3;
const CAP_SPARSE_MMAP = 1;
const CAP_HEADER_BYTES = 8;
const SPARSE_FIXED_BYTES = 16;
const AREA_BYTES = 16;
/** More areas, or capabilities, than any device has. */
const MAX_AREAS = 256;
const MAX_CAPABILITIES = 16;

/** Room for a reply with as many areas as are taken. */
export const MAX_REGION_INFO_BYTES = INFO_BYTES + SPARSE_FIXED_BYTES + AREA_BYTES * MAX_AREAS;

export interface Area {
  readonly offset: number;
  readonly sizeBytes: number;
}

export interface RegionInfo {
  readonly sizeBytes: number;
  readonly read: boolean;
  readonly write: boolean;
  /** The reply carries a file descriptor to map. */
  readonly mmap: boolean;
  /** Where the region begins in that file. */
  readonly fileOffset: number;
  /** The parts that may be mapped; undefined means the whole region. */
  readonly areas: readonly Area[] | undefined;
}

export function encodeRegionInfoRequest(id: number, index: number, argsz: number): Uint8Array {
  const message = newMessage(id, Command.DEVICE_GET_REGION_INFO, TYPE_COMMAND, INFO_BYTES);
  const view = viewOf(message);
  view.setUint32(HEADER_BYTES, Math.max(argsz, INFO_BYTES), true);
  view.setUint32(HEADER_BYTES + 8, index, true);
  return message;
}

/** The index asked for. */
export function decodeRegionInfoRequest(message: Message): number | Refusal {
  const refused = refuseArgsz(message, INFO_BYTES);
  if (refused !== undefined) return refused;
  const index = message.view.getUint32(HEADER_BYTES + 8, true);
  if (index < REGION_COUNT) return index;
  return new Refusal(Errno.EINVAL, `there is no region ${index}`);
}

/** The whole of it if `argsz` of the request has room, otherwise without the areas. */
export function encodeRegionInfoReply(
  request: Message,
  index: number,
  info: RegionInfo,
): Uint8Array {
  const { areas } = info;
  const capBytes = areas === undefined ? 0 : SPARSE_FIXED_BYTES + AREA_BYTES * areas.length;
  const full = INFO_BYTES + capBytes;
  const hasRoom = request.view.getUint32(HEADER_BYTES, true) >= full;
  const message = newMessage(
    request.id,
    Command.DEVICE_GET_REGION_INFO,
    TYPE_REPLY,
    hasRoom ? full : INFO_BYTES,
  );
  const view = viewOf(message);
  view.setUint32(HEADER_BYTES, full, true);
  const flags =
    (info.read ? FLAG_READ : 0) |
    (info.write ? FLAG_WRITE : 0) |
    (info.mmap ? FLAG_MMAP : 0) |
    (areas === undefined ? 0 : FLAG_CAPS);
  view.setUint32(HEADER_BYTES + 4, flags, true);
  view.setUint32(HEADER_BYTES + 8, index, true);
  // Also where the areas did not fit: QEMU refuses the flag without an offset.
  view.setUint32(HEADER_BYTES + 12, areas === undefined ? 0 : INFO_BYTES, true);
  writeU64(view, HEADER_BYTES + 16, info.sizeBytes);
  writeU64(view, HEADER_BYTES + 24, info.fileOffset);
  if (areas === undefined || !hasRoom) return message;
  const at = HEADER_BYTES + INFO_BYTES;
  view.setUint16(at, CAP_SPARSE_MMAP, true);
  view.setUint16(at + 2, 1, true);
  view.setUint32(at + CAP_HEADER_BYTES, areas.length, true);
  areas.forEach((area, place) => {
    const entry = at + SPARSE_FIXED_BYTES + AREA_BYTES * place;
    writeU64(view, entry, area.offset);
    writeU64(view, entry + 8, area.sizeBytes);
  });
  return message;
}

/** How many bytes of payload the full reply has. */
export function regionInfoBytesNeeded(reply: Message): number {
  return payloadBytes(reply) < 4 ? 0 : reply.view.getUint32(HEADER_BYTES, true);
}

/** The info in a reply about region `index`; areas that are not inside the region are refused. */
export function decodeRegionInfoReply(reply: Message, index: number): RegionInfo | Refusal {
  const short = refuseShort(reply, INFO_BYTES);
  if (short !== undefined) return short;
  const { view } = reply;
  if (view.getUint32(HEADER_BYTES + 8, true) !== index) {
    return new Refusal(Errno.EINVAL, `the reply is not about region ${index}`);
  }
  const flags = view.getUint32(HEADER_BYTES + 4, true);
  const sizeBytes = readU64(view, HEADER_BYTES + 16);
  const fileOffset = readU64(view, HEADER_BYTES + 24);
  if (sizeBytes === NOT_SAFE || fileOffset === NOT_SAFE) {
    return new Refusal(Errno.EINVAL, `region ${index} goes beyond 2^53`);
  }
  const areas = (flags & FLAG_CAPS) === 0 ? undefined : decodeAreas(reply, sizeBytes);
  if (areas instanceof Refusal) return areas;
  return {
    sizeBytes,
    read: (flags & FLAG_READ) !== 0,
    write: (flags & FLAG_WRITE) !== 0,
    mmap: (flags & FLAG_MMAP) !== 0,
    fileOffset,
    areas,
  };
}

function decodeAreas(reply: Message, sizeBytes: number): Area[] | undefined | Refusal {
  const { view } = reply;
  const end = payloadBytes(reply);
  let at = view.getUint32(HEADER_BYTES + 12, true);
  // Offsets are from the start of the payload; the list is bounded, as it may go round in a circle.
  for (let seen = 0; at !== 0; seen++) {
    if (at < INFO_BYTES || at + CAP_HEADER_BYTES > end || seen === MAX_CAPABILITIES) {
      return new Refusal(Errno.EINVAL, `a capability of the region at offset ${at} cannot be`);
    }
    if (view.getUint16(HEADER_BYTES + at, true) === CAP_SPARSE_MMAP) {
      return decodeSparse(reply, at, sizeBytes);
    }
    at = view.getUint32(HEADER_BYTES + at + 4, true);
  }
  return undefined;
}

function decodeSparse(reply: Message, at: number, sizeBytes: number): Area[] | Refusal {
  const { view } = reply;
  const room = payloadBytes(reply) - at - SPARSE_FIXED_BYTES;
  const areas = room < 0 ? -1 : view.getUint32(HEADER_BYTES + at + CAP_HEADER_BYTES, true);
  if (areas < 0 || areas > MAX_AREAS || areas * AREA_BYTES > room) {
    return new Refusal(Errno.EINVAL, 'the areas of the region do not fit the reply');
  }
  const found: Area[] = [];
  for (let place = 0; place < areas; place++) {
    const entry = HEADER_BYTES + at + SPARSE_FIXED_BYTES + AREA_BYTES * place;
    const offset = readU64(view, entry);
    const size = readU64(view, entry + 8);
    if (offset === NOT_SAFE || size === NOT_SAFE || offset + size > sizeBytes) {
      return new Refusal(Errno.EINVAL, `area ${place} is outside its region`);
    }
    found.push({ offset, sizeBytes: size });
  }
  return found;
}
