/**
 * DMA_MAP and DMA_UNMAP: which memory of the client the device may reach (specification,
 * "VFIO_USER_DMA_MAP", "VFIO_USER_DMA_UNMAP"). A region comes with a file descriptor if it can be
 * mapped; the descriptor is not looked at here.
 */
import {
  Command,
  HEADER_BYTES,
  type Message,
  newMessage,
  NOT_SAFE,
  readU64,
  refuseArgsz,
  refuseLength,
  TYPE_COMMAND,
  TYPE_REPLY,
  viewOf,
  writeU64,
} from './message.ts';
import { Errno, Refusal } from './refusal.ts';

const MAP_BYTES = 32;
const UNMAP_BYTES = 24;
const FLAG_READABLE = 1 << 0;
const FLAG_WRITABLE = 1 << 1;
// linux/vfio.h, struct vfio_iommu_type1_dma_unmap.
const UNMAP_GET_DIRTY_BITMAP = 1 << 0;
const UNMAP_ALL = 1 << 1;

export interface DmaMapRequest {
  readonly address: number;
  readonly sizeBytes: number;
  /** Where the region begins in its file; 0 without one. */
  readonly fileOffset: number;
  readonly readable: boolean;
  readonly writable: boolean;
}

export interface DmaUnmapRequest {
  /** Every region; `address` and `sizeBytes` are 0. */
  readonly all: boolean;
  /** What is beyond 2^53, where no region can be, is left out. */
  readonly address: number;
  readonly sizeBytes: number;
}

/** Refuses an empty region, one without any access and one that does not end at or below 2^53. */
export function decodeDmaMap(message: Message): DmaMapRequest | Refusal {
  const refused = refuseLength(message, MAP_BYTES) ?? refuseArgsz(message, MAP_BYTES);
  if (refused !== undefined) return refused;
  const { view } = message;
  const flags = view.getUint32(HEADER_BYTES + 4, true);
  const fileOffset = readU64(view, HEADER_BYTES + 8);
  const address = readU64(view, HEADER_BYTES + 16);
  const sizeBytes = readU64(view, HEADER_BYTES + 24);
  if ((flags & ~(FLAG_READABLE | FLAG_WRITABLE)) !== 0 || flags === 0) {
    return new Refusal(Errno.EINVAL, `DMA_MAP has flags 0x${flags.toString(16)}`);
  }
  if (sizeBytes === 0 || !isRange(address, sizeBytes) || !isRange(fileOffset, sizeBytes)) {
    return new Refusal(Errno.EINVAL, 'DMA_MAP of nothing, or beyond 2^53');
  }
  return {
    address,
    sizeBytes,
    fileOffset,
    readable: (flags & FLAG_READABLE) !== 0,
    writable: (flags & FLAG_WRITABLE) !== 0,
  };
}

export function encodeDmaMap(id: number, request: DmaMapRequest): Uint8Array {
  const message = newMessage(id, Command.DMA_MAP, TYPE_COMMAND, MAP_BYTES);
  const view = viewOf(message);
  view.setUint32(HEADER_BYTES, MAP_BYTES, true);
  const flags = (request.readable ? FLAG_READABLE : 0) | (request.writable ? FLAG_WRITABLE : 0);
  view.setUint32(HEADER_BYTES + 4, flags, true);
  writeU64(view, HEADER_BYTES + 8, request.fileOffset);
  writeU64(view, HEADER_BYTES + 16, request.address);
  writeU64(view, HEADER_BYTES + 24, request.sizeBytes);
  return message;
}

/** EOPNOTSUPP for the bitmap of dirty pages, which is of migration. */
export function decodeDmaUnmap(message: Message): DmaUnmapRequest | Refusal {
  const refused = refuseArgsz(message, UNMAP_BYTES);
  if (refused !== undefined) return refused;
  const { view } = message;
  const flags = view.getUint32(HEADER_BYTES + 4, true);
  const address = view.getBigUint64(HEADER_BYTES + 8, true);
  const sizeBytes = view.getBigUint64(HEADER_BYTES + 16, true);
  if ((flags & UNMAP_GET_DIRTY_BITMAP) !== 0) {
    return new Refusal(Errno.EOPNOTSUPP, 'dirty pages are not tracked');
  }
  if ((flags & ~UNMAP_ALL) !== 0) {
    return new Refusal(Errno.EINVAL, `DMA_UNMAP has flags 0x${flags.toString(16)}`);
  }
  const all = (flags & UNMAP_ALL) !== 0;
  const isEmpty = address === 0n && sizeBytes === 0n;
  if (all ? !isEmpty : sizeBytes === 0n || address + sizeBytes > 2n ** 64n) {
    return new Refusal(Errno.EINVAL, 'DMA_UNMAP of nothing, or beyond 2^64');
  }
  const trailing = refuseLength(message, UNMAP_BYTES);
  if (trailing !== undefined) return trailing;
  const from = below53(address);
  return { all, address: from, sizeBytes: below53(address + sizeBytes) - from };
}

export function encodeDmaUnmap(id: number, request: DmaUnmapRequest): Uint8Array {
  const message = newMessage(id, Command.DMA_UNMAP, TYPE_COMMAND, UNMAP_BYTES);
  const view = viewOf(message);
  view.setUint32(HEADER_BYTES, UNMAP_BYTES, true);
  view.setUint32(HEADER_BYTES + 4, request.all ? UNMAP_ALL : 0, true);
  writeU64(view, HEADER_BYTES + 8, request.address);
  writeU64(view, HEADER_BYTES + 16, request.sizeBytes);
  return message;
}

/** The reply repeats the request's payload. */
export function encodeDmaUnmapReply(request: Message): Uint8Array {
  const message = newMessage(request.id, Command.DMA_UNMAP, TYPE_REPLY, UNMAP_BYTES);
  message.set(request.bytes.subarray(HEADER_BYTES, HEADER_BYTES + UNMAP_BYTES), HEADER_BYTES);
  return message;
}

function below53(value: bigint): number {
  return Math.min(Number(value), Number.MAX_SAFE_INTEGER);
}

/** Whether [base, base + size) lies below 2^53. */
function isRange(base: number, size: number): boolean {
  return base !== NOT_SAFE && size !== NOT_SAFE && base + size <= Number.MAX_SAFE_INTEGER;
}
