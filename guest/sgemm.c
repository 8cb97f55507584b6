/*
 * Multiplies matrices on the reference accelerator, and compares each result bit for bit with a plain loop in
 * fp32. Built with -ffp-contract=off: the accelerator rounds each product, then each sum.
 *
 *   sgemm [-n RUNS] [-s SIZE] [-d BDF]
 *
 * Prints one line of JSON. Ends with status 0 if every run was equal and came with its interrupt.
 */
#include "accel-channel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct job {
  struct accel_channel channel;
  unsigned size;
  size_t matrix_bytes;
  float *a, *b, *c;
  uint64_t a_at, b_at, c_at;
};

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

static void run(struct job *job, uint64_t value) {
  struct accel_channel *channel = &job->channel;
  const uint64_t bytes = job->matrix_bytes, a = 0, b = bytes, c = 2 * bytes;
  copy_command(channel, OPCODE_COPY_HTOD, job->a_at, a, bytes);
  copy_command(channel, OPCODE_COPY_HTOD, job->b_at, b, bytes);
  struct accel_command *command = next_command(channel, OPCODE_SGEMM);
  command->operand[0] = a;
  command->operand[1] = b;
  command->operand[2] = c;
  command->m = command->n = command->k = job->size;
  copy_command(channel, OPCODE_COPY_DTOH, c, job->c_at, bytes);
  run_commands(channel, value);
}

static void lay_out(struct job *job) {
  const struct accel_channel *channel = &job->channel;
  job->a = (void *)channel->memory;
  job->b = (void *)(channel->memory + job->matrix_bytes);
  job->c = (void *)(channel->memory + 2 * job->matrix_bytes);
  job->a_at = channel->memory_at;
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
  job.matrix_bytes = (size_t)job.size * job.size * sizeof(float);
  open_channel(&job.channel, bdf, 3 * job.matrix_bytes);
  lay_out(&job);

  const size_t row = job.size * sizeof(float);
  float *first = malloc(job.matrix_bytes), *expected = malloc(job.matrix_bytes);
  if (first == NULL || expected == NULL) fail("no memory");
  fill(first, (size_t)job.size * job.size, 1);
  fill(job.b, (size_t)job.size * job.size, 2);
  plain_sgemm(job.size, first, job.b, expected);

  start_channel(&job.channel);
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
  stop_channel(&job.channel);
  printf("{\"bdf\":\"%s\",\"size\":%u,\"runs\":%lu,\"equal\":%lu,\"interrupts\":%llu,\"seconds\":%.3f}\n", bdf,
         job.size, runs, equal, (unsigned long long)job.channel.interrupts, took);
  return equal == runs && job.channel.interrupts == runs ? 0 : 1;
}
