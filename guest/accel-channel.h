/* Channel 0 of the reference accelerator in the hands of a program: its ring, and memory it reaches by DMA. */
#ifndef ACCEL_CHANNEL_H
#define ACCEL_CHANNEL_H

#include "accel.h"
#include "vfio-function.h"

/* So many commands less one can wait. */
#define RING_COUNT 64u

struct accel_channel {
  struct vfio_function function;
  /* The program's share of the memory, and where the function reaches it. */
  char *memory;
  uint64_t memory_at;
  uint64_t interrupts; /* How many have come. */
  struct accel_command *ring;
  volatile uint64_t *fence;
  uint64_t ring_at, fence_at;
  unsigned tail;
};

/* Takes `-d BDF` from the words of a program, if that is what they begin with. Returns where the others begin. */
int first_argument(int argc, char **argv, char bdf[16]);

/* Of the function at `bdf`, or of the first accelerator where that is empty; then `bdf` names it. With `bytes` of memory. */
void open_channel(struct accel_channel *channel, char bdf[16], size_t bytes);

/* Resets the function, and starts the channel. Anything before may be written to the memory. */
void start_channel(struct accel_channel *channel);
void stop_channel(struct accel_channel *channel);

/* The next command of the ring, zeroed. */
struct accel_command *next_command(struct accel_channel *channel, uint8_t opcode);

/* A copy of `bytes` from `from` to `to`, one of them an address of memory, the other one of device memory. */
void copy_command(struct accel_channel *channel, uint8_t opcode, uint64_t from, uint64_t to,
                  uint64_t bytes);

/* Has the commands done that were written, and waits for the interrupt of the last. `value` is another each time. */
void run_commands(struct accel_channel *channel, uint64_t value);

static inline uint32_t read_register(const struct accel_channel *channel, unsigned offset) {
  return channel->function.bar0[offset / 4];
}

static inline void write_register(const struct accel_channel *channel, unsigned offset, uint32_t value) {
  channel->function.bar0[offset / 4] = value;
}

#endif
