#include "accel-channel.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define IOVA 0x40000000ull
#define PAGE_BYTES 4096u
#define WITHIN_MS 20000

_Static_assert(RING_COUNT * sizeof(struct accel_command) <= PAGE_BYTES, "the ring is in one page");

int first_argument(int argc, char **argv, char bdf[16]) {
  if (argc < 3 || strcmp(argv[1], "-d") != 0) return 1;
  snprintf(bdf, 16, "%.15s", argv[2]);
  return 3;
}

void open_channel(struct accel_channel *channel, char bdf[16], size_t bytes) {
  memset(channel, 0, sizeof *channel);
  if (bdf[0] == 0 && !find_function(ACCEL_VENDOR, ACCEL_DEVICE, bdf))
    fail("there is no accelerator (%04x:%04x)", ACCEL_VENDOR, ACCEL_DEVICE);
  open_function(&channel->function, bdf);
  char *memory = map_dma(&channel->function, IOVA, 2 * PAGE_BYTES + bytes);
  channel->ring = (void *)memory;
  channel->ring_at = IOVA;
  channel->fence = (void *)(memory + PAGE_BYTES);
  channel->fence_at = IOVA + PAGE_BYTES;
  channel->memory = memory + 2 * PAGE_BYTES;
  channel->memory_at = IOVA + 2 * PAGE_BYTES;
}

void start_channel(struct accel_channel *channel) {
  uint32_t id = read_register(channel, REG_ID);
  if (id != ACCEL_ID) fail("%s: ID reads %08x", channel->function.bdf, id);
  write_register(channel, REG_RESET, RESET_KEY);
  write_register(channel, RING_BASE_LO, (uint32_t)channel->ring_at);
  write_register(channel, RING_BASE_HI, (uint32_t)(channel->ring_at >> 32));
  write_register(channel, RING_ENTRIES, RING_COUNT);
  write_register(channel, CHANNEL_CONTROL, CONTROL_ENABLE | CONTROL_INTERRUPT_ON_HALT);
  uint32_t status = read_register(channel, CHANNEL_STATUS);
  if (status != STATUS_ENABLED) fail("the channel does not start: status %08x", status);
}

void stop_channel(struct accel_channel *channel) { write_register(channel, CHANNEL_CONTROL, 0); }

struct accel_command *next_command(struct accel_channel *channel, uint8_t opcode) {
  struct accel_command *command = &channel->ring[channel->tail];
  channel->tail = (channel->tail + 1) % RING_COUNT;
  memset(command, 0, sizeof *command);
  command->opcode = opcode;
  return command;
}

void copy_command(struct accel_channel *channel, uint8_t opcode, uint64_t from, uint64_t to,
                  uint64_t bytes) {
  struct accel_command *command = next_command(channel, opcode);
  command->operand[0] = from;
  command->operand[1] = to;
  command->operand[2] = bytes;
}

static void wait_for(struct accel_channel *channel, uint64_t value) {
  const int interrupt = channel->function.interrupt;
  while (*channel->fence != value) {
    struct pollfd wait = {.fd = interrupt, .events = POLLIN};
    uint64_t count;
    if (poll(&wait, 1, WITHIN_MS) <= 0)
      fail("no interrupt within %d s: status %08x, fence %llu", WITHIN_MS / 1000,
           read_register(channel, CHANNEL_STATUS), (unsigned long long)*channel->fence);
    if (read(interrupt, &count, sizeof count) != sizeof count)
      fail("the interrupt cannot be read: %s", strerror(errno));
    channel->interrupts += count;
    write_register(channel, REG_INTERRUPT_STATUS, ~0u);
    uint32_t status = read_register(channel, CHANNEL_STATUS);
    if (status & STATUS_HALTED)
      fail("the channel has halted: status %08x, error %u at command %u", status,
           read_register(channel, ERROR_CODE), read_register(channel, ERROR_INDEX));
  }
}

void run_commands(struct accel_channel *channel, uint64_t value) {
  struct accel_command *last = &channel->ring[(channel->tail + RING_COUNT - 1) % RING_COUNT];
  last->flags = FLAG_FENCE | FLAG_INTERRUPT;
  last->fence_address = channel->fence_at;
  last->fence_value = value;
  __sync_synchronize();
  write_register(channel, DOORBELL_BASE, channel->tail);
  wait_for(channel, value);
}
