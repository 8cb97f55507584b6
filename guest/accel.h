/* Registers and commands of the reference accelerator, as docs/accelerator-datasheet.md names them. */
#ifndef ACCEL_H
#define ACCEL_H

#include <stdint.h>

#define ACCEL_VENDOR 0xddb0
#define ACCEL_DEVICE 0x0001
#define ACCEL_ID 0x43415844u

#define REG_ID 0x0000
#define REG_RESET 0x0018
#define REG_INTERRUPT_STATUS 0x0020
#define RESET_KEY 0x52455345u

#define CHANNEL_BASE 0x1000
#define CHANNEL_CONTROL (CHANNEL_BASE + 0x00)
#define CHANNEL_STATUS (CHANNEL_BASE + 0x04)
#define RING_BASE_LO (CHANNEL_BASE + 0x08)
#define RING_BASE_HI (CHANNEL_BASE + 0x0c)
#define RING_ENTRIES (CHANNEL_BASE + 0x10)
#define ERROR_CODE (CHANNEL_BASE + 0x20)
#define ERROR_INDEX (CHANNEL_BASE + 0x24)
#define ERROR_ADDRESS_LO (CHANNEL_BASE + 0x28)
#define ERROR_ADDRESS_HI (CHANNEL_BASE + 0x2c)
#define DOORBELL_BASE 0x2000

#define STATUS_ENABLED 1u
#define STATUS_BUSY 2u
#define STATUS_HALTED 4u
#define CONTROL_ENABLE 1u
#define CONTROL_INTERRUPT_ON_HALT 2u

#define OPCODE_COPY_HTOD 0x10
#define OPCODE_COPY_DTOH 0x11
#define OPCODE_FILL 0x20
#define OPCODE_SGEMM 0x22
#define FLAG_FENCE 1
#define FLAG_INTERRUPT 2

struct accel_command {
  uint8_t opcode, flags;
  uint16_t reserved;
  uint32_t duration_ns;
  uint64_t fence_address, fence_value;
  uint64_t operand[3];
  uint32_t m, n, k, scalar;
};

_Static_assert(sizeof(struct accel_command) == 64, "a command has 64 bytes");

#endif
