/*
 * Multiplies matrices on the reference accelerator, and compares each result bit for bit with a plain loop in
 * fp32. Built with -ffp-contract=off: the accelerator rounds each product, then each sum.
 *
 *   sgemm [-n RUNS] [-s SIZE] [-d BDF]
 *
 * Prints one line of JSON. Ends with status 0 if every run was equal and came with its interrupt.
 */
#include "accel.h"
#include "vfio-function.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define IOVA 0x40000000ull
#define RING_BYTES 4096u
#define RING_COUNT (RING_BYTES / 64u)
#define WITHIN_MS 20000

struct job {
  struct vfio_function function;
  unsigned size;
  size_t matrix_bytes;
  struct accel_command *ring;
  volatile uint64_t *fence;
  float *a, *b, *c;
  uint64_t ring_at, fence_at, a_at, b_at, c_at;
  unsigned tail;
  uint64_t interrupts;
};

static uint32_t reg(struct job *job, unsigned offset) { return job->function.bar0[offset / 4]; }

static void set_reg(struct job *job, unsigned offset, uint32_t value) {
  job->function.bar0[offset / 4] = value;
}

/* xorshift32: the same operands each time. Values in [-1, 1) with 24 bits. */
static void fill(float *to, size_t count, uint32_t state) {
  for (size_t at = 0; at < count; at++) {
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    to[at] = (float)(int32_t)(state >> 8) / 8388608.0f - 1.0f;
  }
}

static void plain_sgemm(unsigned size, const float *a, const float *b, float *c) {
  for (unsigned i = 0; i < size; i++) {
    float *row = c + (size_t)i * size;
    for (unsigned j = 0; j < size; j++) row[j] = 0;
    /* Of each element, k ascends. */
    for (unsigned k = 0; k < size; k++)
      for (unsigned j = 0; j < size; j++) row[j] += a[i * (size_t)size + k] * b[k * (size_t)size + j];
  }
}

static void start(struct job *job) {
  if (reg(job, REG_ID) != ACCEL_ID) fail("%s: ID reads %08x", job->function.bdf, reg(job, REG_ID));
  set_reg(job, REG_RESET, RESET_KEY);
  set_reg(job, RING_BASE_LO, (uint32_t)job->ring_at);
  set_reg(job, RING_BASE_HI, (uint32_t)(job->ring_at >> 32));
  set_reg(job, RING_ENTRIES, RING_COUNT);
  set_reg(job, CHANNEL_CONTROL, CONTROL_ENABLE | CONTROL_INTERRUPT_ON_HALT);
  if (reg(job, CHANNEL_STATUS) != STATUS_ENABLED)
    fail("the channel does not start: status %08x", reg(job, CHANNEL_STATUS));
}

static struct accel_command *next(struct job *job, uint8_t opcode) {
  struct accel_command *command = &job->ring[job->tail];
  job->tail = (job->tail + 1) % RING_COUNT;
  memset(command, 0, sizeof *command);
  command->opcode = opcode;
  return command;
}

static void copy(struct job *job, uint8_t opcode, uint64_t from, uint64_t to) {
  struct accel_command *command = next(job, opcode);
  command->operand[0] = from;
  command->operand[1] = to;
  command->operand[2] = job->matrix_bytes;
}

static void wait_for(struct job *job, uint64_t value) {
  while (*job->fence != value) {
    struct pollfd wait = {.fd = job->function.interrupt, .events = POLLIN};
    uint64_t count;
    if (poll(&wait, 1, WITHIN_MS) <= 0)
      fail("no interrupt within %d s: status %08x, fence %llu", WITHIN_MS / 1000,
           reg(job, CHANNEL_STATUS), (unsigned long long)*job->fence);
    if (read(job->function.interrupt, &count, sizeof count) != sizeof count)
      fail("the interrupt cannot be read: %s", strerror(errno));
    job->interrupts += count;
    set_reg(job, REG_INTERRUPT_STATUS, ~0u);
    uint32_t status = reg(job, CHANNEL_STATUS);
    if (status & STATUS_HALTED)
      fail("the channel has halted: status %08x, error %u at command %u", status,
           reg(job, ERROR_CODE), reg(job, ERROR_INDEX));
  }
}

static void run(struct job *job, uint64_t value) {
  const uint64_t a = 0, b = job->matrix_bytes, c = 2 * job->matrix_bytes;
  copy(job, OPCODE_COPY_HTOD, job->a_at, a);
  copy(job, OPCODE_COPY_HTOD, job->b_at, b);
  struct accel_command *command = next(job, OPCODE_SGEMM);
  command->operand[0] = a;
  command->operand[1] = b;
  command->operand[2] = c;
  command->m = command->n = command->k = job->size;
  copy(job, OPCODE_COPY_DTOH, c, job->c_at);
  command = &job->ring[(job->tail + RING_COUNT - 1) % RING_COUNT];
  command->flags = FLAG_FENCE | FLAG_INTERRUPT;
  command->fence_address = job->fence_at;
  command->fence_value = value;
  __sync_synchronize();
  set_reg(job, DOORBELL_BASE, job->tail);
  wait_for(job, value);
}

static void lay_out(struct job *job) {
  const size_t bytes = 2 * RING_BYTES + 3 * job->matrix_bytes;
  char *memory = map_dma(&job->function, IOVA, bytes);
  job->ring = (void *)memory;
  job->fence = (void *)(memory + RING_BYTES);
  job->a = (void *)(memory + 2 * RING_BYTES);
  job->b = (void *)((char *)job->a + job->matrix_bytes);
  job->c = (void *)((char *)job->b + job->matrix_bytes);
  job->ring_at = IOVA;
  job->fence_at = IOVA + RING_BYTES;
  job->a_at = IOVA + 2 * RING_BYTES;
  job->b_at = job->a_at + job->matrix_bytes;
  job->c_at = job->b_at + job->matrix_bytes;
}

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

int main(int argc, char **argv) {
  static struct job job = {.size = 256};
  unsigned long runs = 1;
  char bdf[16] = "";
  for (int option; (option = getopt(argc, argv, "n:s:d:")) != -1;) {
    if (option == 'n') runs = strtoul(optarg, NULL, 10);
    else if (option == 's') job.size = (unsigned)strtoul(optarg, NULL, 10);
    else if (option == 'd') snprintf(bdf, sizeof bdf, "%.15s", optarg);
    else return 2;
  }
  if (job.size < 1 || job.size > 640 || runs < 1) fail("usage: sgemm [-n RUNS] [-s 1..640] [-d BDF]");
  if (bdf[0] == 0 && !find_function(ACCEL_VENDOR, ACCEL_DEVICE, bdf))
    fail("there is no accelerator (%04x:%04x)", ACCEL_VENDOR, ACCEL_DEVICE);
  job.matrix_bytes = (size_t)job.size * job.size * sizeof(float);
  open_function(&job.function, bdf);
  lay_out(&job);

  const size_t row = job.size * sizeof(float);
  float *first = malloc(job.matrix_bytes), *expected = malloc(job.matrix_bytes);
  if (first == NULL || expected == NULL) fail("no memory");
  fill(first, (size_t)job.size * job.size, 1);
  fill(job.b, (size_t)job.size * job.size, 2);
  plain_sgemm(job.size, first, job.b, expected);

  start(&job);
  unsigned long equal = 0;
  const double begin = seconds();
  for (unsigned long at = 0; at < runs; at++) {
    /* Rows of A move down by one a run, and with them those of the result. */
    const size_t moved = (at % job.size) * row, rest = job.matrix_bytes - moved;
    memcpy((char *)job.a + moved, first, rest);
    memcpy(job.a, (char *)first + rest, moved);
    memset(job.c, 0xff, job.matrix_bytes);
    run(&job, at + 1);
    equal += memcmp((char *)job.c + moved, expected, rest) == 0 &&
             memcmp(job.c, (char *)expected + rest, moved) == 0;
  }
  const double took = seconds() - begin;
  set_reg(&job, CHANNEL_CONTROL, 0);
  printf("{\"bdf\":\"%s\",\"size\":%u,\"runs\":%lu,\"equal\":%lu,\"interrupts\":%llu,\"seconds\":%.3f}\n", bdf,
         job.size, runs, equal, (unsigned long long)job.interrupts, took);
  return equal == runs && job.interrupts == runs ? 0 : 1;
}
