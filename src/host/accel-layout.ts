/**
 * Registers, commands and errors of the reference accelerator, as its driver knows them from
 * docs/accelerator-datasheet.md. Everything is 32 bits and little-endian unless it says otherwise.
 */
export const ACCEL_VENDOR_ID = 0xddb0;
export const ACCEL_DEVICE_ID = 0x0001;

/** BAR0: registers. BAR2: device memory. */
export const REGISTER_BAR = 0;
export const MEMORY_BAR = 2;

export const ID = 0x0000;
export const VERSION = 0x0004;
export const CHANNELS = 0x0008;
export const STATUS = 0x000c;
export const MEMORY_BYTES_LO = 0x0010;
export const MEMORY_BYTES_HI = 0x0014;
export const RESET = 0x0018;
export const INTERRUPT_STATUS = 0x0020;
export const EVENTS = 0x002c;
export const UUID_0 = 0x0030;

export const CHANNEL_BASE = 0x1000;
export const CHANNEL_STRIDE = 0x0100;
export const CHANNEL_CONTROL = 0x0000;
export const CHANNEL_STATUS = 0x0004;
export const RING_BASE_LO = 0x0008;
export const RING_BASE_HI = 0x000c;
export const RING_ENTRIES = 0x0010;
export const ERROR_CODE = 0x0020;
export const ERROR_INDEX = 0x0024;
export const ERROR_ADDRESS_LO = 0x0028;
export const ERROR_ADDRESS_HI = 0x002c;

export const DOORBELL_BASE = 0x2000;
export const DOORBELL_STRIDE = 0x0004;

export const ID_VALUE = 0x43415844;
export const VERSION_MAJOR = 1;
export const RESET_KEY = 0x52455345;
export const STATUS_READY = 1 << 0;
export const STATUS_ERROR = 1 << 2;
export const CONTROL_ENABLE = 1 << 0;
export const CONTROL_ERROR_INTERRUPT = 1 << 1;
export const CHANNEL_ENABLED = 1 << 0;
export const CHANNEL_HALTED = 1 << 2;

export const MIN_RING_ENTRIES = 2;
export const MAX_RING_ENTRIES = 65536;
/** Of a ring's base, and of each command. */
export const COMMAND_BYTES = 64;

export const Opcode = {
  NOP: 0x01,
  EVENT_SIGNAL: 0x02,
  EVENT_WAIT: 0x03,
  COPY_HTOD: 0x10,
  COPY_DTOH: 0x11,
  COPY_DTOD: 0x12,
  FILL: 0x20,
  SAXPY: 0x21,
  SGEMM: 0x22,
} as const;
export type Opcode = (typeof Opcode)[keyof typeof Opcode];

export const FLAG_FENCE = 1 << 0;
export const FLAG_INTERRUPT = 1 << 1;
export const FLAG_DURATION = 1 << 2;
export const FLAG_ACCUMULATE = 1 << 3;

// Offsets in a command.
export const COMMAND_OPCODE = 0;
export const COMMAND_FLAGS = 1;
export const COMMAND_DURATION_NS = 4;
/** 64 bits, as are the fence value and the operands. */
export const COMMAND_FENCE_ADDRESS = 8;
export const COMMAND_FENCE_VALUE = 16;
export const COMMAND_OPERAND_0 = 24;
export const COMMAND_OPERAND_1 = 32;
export const COMMAND_OPERAND_2 = 40;
export const COMMAND_M = 48;
export const COMMAND_N = 52;
export const COMMAND_K = 56;
export const COMMAND_SCALAR = 60;

/** 2·m·n·k of one SGEMM, 2·count of one SAXPY. */
export const MAX_KERNEL_FLOPS = 2 ** 30;

/** ERROR_CODE of a halted channel: its name and what it means. */
export const ERRORS: Readonly<Record<number, { readonly name: string; readonly text: string }>> = {
  1: { name: 'BAD_COMMAND', text: 'unknown opcode, or a reserved field or flag is not zero' },
  2: { name: 'MISALIGNED', text: 'an operand is not aligned as its command wants it' },
  3: { name: 'OUT_OF_RANGE', text: 'an operand lies outside device memory or host addresses' },
  4: { name: 'TOO_LARGE', text: 'the kernel is larger than one command may ask for' },
  5: { name: 'BAD_RING', text: 'base, size or tail of the ring is not allowed' },
  6: { name: 'DMA_UNSUPPORTED', text: 'a DMA read was refused: no such host memory' },
  7: { name: 'DMA_ABORTED', text: 'a DMA read was aborted by the host' },
  8: { name: 'DMA_TIMEOUT', text: 'a DMA read was not answered in time' },
  9: { name: 'DMA_POISONED', text: 'a DMA read brought poisoned data' },
  10: { name: 'OVERLAP', text: 'the result of a matrix product overlaps an input' },
};

const floatView = new DataView(new ArrayBuffer(4));

/** The bits of `value` rounded to single precision. */
export function floatBits(value: number): number {
  floatView.setFloat32(0, value);
  return floatView.getUint32(0);
}
