/**
 * Registers of the reference accelerator, as `docs/accelerator-datasheet.md` tables them (a test
 * compares the two). All are 32 bits, little-endian, at DWORD-aligned offsets of BAR0.
 */

/** Not assigned to anybody by PCI-SIG at the time of writing: for experiments only. */
export const ACCEL_VENDOR_ID = 0xddb0;
export const ACCEL_DEVICE_ID = 0x0001;
/** Processing accelerator, no programming interface. */
export const ACCEL_CLASS_CODE = 0x120000;

export const BAR0_BYTES = 0x4000;

// Global registers.
export const ID = 0x0000;
export const VERSION = 0x0004;
export const CHANNELS = 0x0008;
export const STATUS = 0x000c;
export const MEMORY_BYTES_LO = 0x0010;
export const MEMORY_BYTES_HI = 0x0014;
export const RESET = 0x0018;
export const SCRATCH = 0x001c;
export const INTERRUPT_STATUS = 0x0020;
export const UNKNOWN_COUNT = 0x0024;
export const UNKNOWN_OFFSET = 0x0028;
export const EVENTS = 0x002c;
export const UUID_0 = 0x0030;
export const UUID_1 = 0x0034;
export const UUID_2 = 0x0038;
export const UUID_3 = 0x003c;
export const TIME_NS_LO = 0x0040;
export const TIME_NS_HI = 0x0044;
export const DMA_READ_REQUESTS = 0x0050;
export const DMA_WRITE_REQUESTS = 0x0054;
export const DMA_FAILED_REQUESTS = 0x0058;
export const DMA_UNEXPECTED_COMPLETIONS = 0x005c;

/** Channel n's registers start at CHANNEL_BASE + n × CHANNEL_STRIDE; the offsets below add to that. */
export const CHANNEL_BASE = 0x1000;
export const CHANNEL_STRIDE = 0x0100;
export const CHANNEL_CONTROL = 0x0000;
export const CHANNEL_STATUS = 0x0004;
export const RING_BASE_LO = 0x0008;
export const RING_BASE_HI = 0x000c;
export const RING_ENTRIES = 0x0010;
export const RING_HEAD = 0x0014;
export const RING_TAIL = 0x0018;
export const COMMANDS_DONE = 0x001c;
export const ERROR_CODE = 0x0020;
export const ERROR_INDEX = 0x0024;
export const ERROR_ADDRESS_LO = 0x0028;
export const ERROR_ADDRESS_HI = 0x002c;
export const FENCE_VALUE_LO = 0x0030;
export const FENCE_VALUE_HI = 0x0034;

/** Channel n's doorbell, write-only: DOORBELL_BASE + n × DOORBELL_STRIDE takes the new tail. */
export const DOORBELL_BASE = 0x2000;
export const DOORBELL_STRIDE = 0x0004;

/** What ID reads: "DXAC" in memory order. */
export const ID_VALUE = 0x43415844;
export const VERSION_VALUE = 0x0001_0001;
/** What must be written to RESET to reset every channel. */
export const RESET_KEY = 0x52455345;
/** What an unknown or write-only register reads. */
export const UNKNOWN_VALUE = 0;

// STATUS
export const STATUS_READY = 1 << 0;
export const STATUS_BUSY = 1 << 1;
export const STATUS_ERROR = 1 << 2;

// CHANNEL_CONTROL
export const CONTROL_ENABLE = 1 << 0;
/** An error of this channel sends the interrupt. */
export const CONTROL_ERROR_INTERRUPT = 1 << 1;

// CHANNEL_STATUS
export const CHANNEL_ENABLED = 1 << 0;
export const CHANNEL_BUSY = 1 << 1;
export const CHANNEL_HALTED = 1 << 2;

/** INTERRUPT_STATUS: bit n, channel n signalled a fence; bit 16 + n, channel n halted. Write 1 clears. */
export const INTERRUPT_FENCE_SHIFT = 0;
export const INTERRUPT_ERROR_SHIFT = 16;

export const MIN_RING_ENTRIES = 2;
export const MAX_RING_ENTRIES = 65536;
export const MAX_CHANNELS = 16;
/** Events of the device, each a number that only grows. */
export const EVENT_COUNT = 64;

/** ERROR_CODE of a halted channel. */
export const AccelError = {
  NONE: 0,
  /** The opcode is not one of `Opcode`, or a reserved field or flag is not zero. */
  BAD_COMMAND: 1,
  /** An operand is not aligned as the command wants it. */
  MISALIGNED: 2,
  /** Device memory outside BAR2, or a host range that reaches 2^53. */
  OUT_OF_RANGE: 3,
  /** The kernel is larger than one command may ask for. */
  TOO_LARGE: 4,
  /** The ring's base, size or tail is not allowed. */
  BAD_RING: 5,
  /** A DMA read was answered Unsupported Request. */
  DMA_UNSUPPORTED: 6,
  /** A DMA read was answered Completer Abort. */
  DMA_ABORTED: 7,
  /** A DMA read was not answered in time. */
  DMA_TIMEOUT: 8,
  /** A DMA read brought poisoned data. */
  DMA_POISONED: 9,
  /** SGEMM's C overlaps A or B. */
  OVERLAP: 10,
} as const;
export type AccelError = (typeof AccelError)[keyof typeof AccelError];
