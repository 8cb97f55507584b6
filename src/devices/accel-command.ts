/**
 * Commands of the reference accelerator: 64 bytes each, little-endian, in a ring in host memory.
 * A driver writes them with `encodeCommand`; the device reads them with `decodeCommand`. The byte
 * layout is tabled in `docs/accelerator-datasheet.md`.
 */

export const COMMAND_BYTES = 64;

export const Opcode = {
  /** Does nothing: carries a fence or a duration. 0 is no opcode, so an empty entry is an error. */
  NOP: 0x01,
  /** Raises an event of the device to a value. */
  EVENT_SIGNAL: 0x02,
  /** Done once an event has reached a value. */
  EVENT_WAIT: 0x03,
  /** Host to device, by DMA reads. */
  COPY_HTOD: 0x10,
  /** Device to host, by DMA writes. */
  COPY_DTOH: 0x11,
  /** Inside device memory; overlapping ranges as `memmove` has them. */
  COPY_DTOD: 0x12,
  /** Stores a 32-bit pattern. */
  FILL: 0x20,
  /** y ← alpha × x + y, the product rounded to fp32 before the sum. */
  SAXPY: 0x21,
  /** C ← A × B, row-major fp32, k in ascending order, each product and each sum rounded to fp32. */
  SGEMM: 0x22,
} as const;
export type Opcode = (typeof Opcode)[keyof typeof Opcode];

/** When the command is done and its data has been sent, FENCE_VALUE is written to FENCE_ADDRESS. */
export const FLAG_FENCE = 1 << 0;
/** The interrupt is sent, behind the fence if there is one. */
export const FLAG_INTERRUPT = 1 << 1;
/** The command is not done before DURATION_NS have passed since it started. */
export const FLAG_DURATION = 1 << 2;
/** SGEMM starts its sums from C instead of zero. */
export const FLAG_ACCUMULATE = 1 << 3;
export const KNOWN_FLAGS = FLAG_FENCE | FLAG_INTERRUPT | FLAG_DURATION | FLAG_ACCUMULATE;

// Offsets in a command.
export const COMMAND_OPCODE = 0;
export const COMMAND_FLAGS = 1;
export const COMMAND_RESERVED = 2;
export const COMMAND_DURATION_NS = 4;
export const COMMAND_FENCE_ADDRESS = 8;
export const COMMAND_FENCE_VALUE = 16;
export const COMMAND_OPERAND_0 = 24;
export const COMMAND_OPERAND_1 = 32;
export const COMMAND_OPERAND_2 = 40;
export const COMMAND_M = 48;
export const COMMAND_N = 52;
export const COMMAND_K = 56;
export const COMMAND_SCALAR = 60;

/**
 * Largest work of one kernel command: 2 × M × N × K for SGEMM, 2 × count for SAXPY. The model
 * computes it in one go, about a second, in which it answers nothing; a driver tiles larger ones.
 */
export const MAX_KERNEL_FLOPS = 2 ** 30;

/**
 * A command as a mutable record; one is reused for many.
 *
 * | opcode      | operand0 | operand1    | operand2 | m, n, k | scalar  |
 * |-------------|----------|-------------|----------|---------|---------|
 * | EVENT_*     | event    | value       | 0        | 0       | 0       |
 * | COPY_*      | source   | destination | bytes    | 0       | 0       |
 * | FILL        | 0        | destination | words    | 0       | pattern |
 * | SAXPY       | x        | y           | count    | 0       | alpha (fp32 bits) |
 * | SGEMM       | A (m×k)  | B (k×n)     | C (m×n)  | sizes   | 0       |
 */
export class AccelCommand {
  opcode: number = Opcode.NOP;
  flags = 0;
  durationNs = 0;
  fenceAddress = 0;
  /** 64 bits on the wire; a safe integer here. */
  fenceValue = 0;
  operand0 = 0;
  operand1 = 0;
  operand2 = 0;
  m = 0;
  n = 0;
  k = 0;
  /** The raw 32 bits: a fill pattern, or `floatBits(alpha)`. */
  scalar = 0;
}

const floatView = new DataView(new ArrayBuffer(4));

/** The bits of `value` rounded to fp32. */
export function floatBits(value: number): number {
  floatView.setFloat32(0, value);
  return floatView.getUint32(0);
}

/** The fp32 that `bits` mean. */
export function bitsFloat(bits: number): number {
  floatView.setUint32(0, bits);
  return floatView.getFloat32(0);
}

/** Writes `command` to the 64 bytes at `offset` of `view`. Reserved bytes become zero. */
export function encodeCommand(
  command: Readonly<AccelCommand>,
  view: DataView,
  offset: number,
): void {
  view.setUint8(offset + COMMAND_OPCODE, command.opcode);
  view.setUint8(offset + COMMAND_FLAGS, command.flags);
  view.setUint16(offset + COMMAND_RESERVED, 0, true);
  view.setUint32(offset + COMMAND_DURATION_NS, command.durationNs, true);
  setUint53(view, offset + COMMAND_FENCE_ADDRESS, command.fenceAddress);
  setUint53(view, offset + COMMAND_FENCE_VALUE, command.fenceValue);
  setUint53(view, offset + COMMAND_OPERAND_0, command.operand0);
  setUint53(view, offset + COMMAND_OPERAND_1, command.operand1);
  setUint53(view, offset + COMMAND_OPERAND_2, command.operand2);
  view.setUint32(offset + COMMAND_M, command.m, true);
  view.setUint32(offset + COMMAND_N, command.n, true);
  view.setUint32(offset + COMMAND_K, command.k, true);
  view.setUint32(offset + COMMAND_SCALAR, command.scalar, true);
}

/**
 * Reads the 64 bytes at `offset` of `view`. Checks nothing: 64-bit fields of 2^53 and more come out
 * inexact but still that large, so that a range check refuses them.
 */
export function decodeCommand(view: DataView, offset: number, into: AccelCommand): void {
  into.opcode = view.getUint8(offset + COMMAND_OPCODE);
  // A reserved bit that is set must be seen: it joins the flags, where it is unknown.
  into.flags =
    view.getUint8(offset + COMMAND_FLAGS) | (view.getUint16(offset + COMMAND_RESERVED, true) << 8);
  into.durationNs = view.getUint32(offset + COMMAND_DURATION_NS, true);
  into.fenceAddress = getUint64(view, offset + COMMAND_FENCE_ADDRESS);
  into.fenceValue = getUint64(view, offset + COMMAND_FENCE_VALUE);
  into.operand0 = getUint64(view, offset + COMMAND_OPERAND_0);
  into.operand1 = getUint64(view, offset + COMMAND_OPERAND_1);
  into.operand2 = getUint64(view, offset + COMMAND_OPERAND_2);
  into.m = view.getUint32(offset + COMMAND_M, true);
  into.n = view.getUint32(offset + COMMAND_N, true);
  into.k = view.getUint32(offset + COMMAND_K, true);
  into.scalar = view.getUint32(offset + COMMAND_SCALAR, true);
}

function setUint53(view: DataView, offset: number, value: number): void {
  view.setUint32(offset, value % 0x1_0000_0000, true);
  view.setUint32(offset + 4, Math.floor(value / 0x1_0000_0000), true);
}

function getUint64(view: DataView, offset: number): number {
  return view.getUint32(offset + 4, true) * 0x1_0000_0000 + view.getUint32(offset, true);
}
