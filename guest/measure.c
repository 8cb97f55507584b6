/*
 * What a function behind a slot is like for a program of the guest: how long one access takes, and how fast the
 * reference accelerator copies.
 *
 *   measure [-d BDF] read|write COUNT     so many accesses of 4 bytes of BAR0, one after the other
 *   measure [-d BDF] dma MIB              that much each way by the accelerator's copies
 *   measure -d BDF there|gone             waits until the guest has the function with its BARs, or not any more
 *
 * Prints one line of JSON. Times are ns by the guest's clock.
 */
#include "accel-channel.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

#define REG_SCRATCH 0x001c
#define COPY_BYTES (4u << 20)
#define WITHIN_NS 60e9
#define LOOK_US 1000

static double now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static int ascending(const void *a, const void *b) {
  const uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
  return (left > right) - (left < right);
}

/* Each access is timed by the time stamp counter; what a tick of it is, the clock says over all of them. */
static void access_times(char bdf[16], int writes, unsigned long count) {
  static struct accel_channel channel;
  open_channel(&channel, bdf, 0);
  uint64_t *ticks = calloc(count, sizeof *ticks);
  if (ticks == NULL) fail("no memory");
  const double begin = now_ns();
  const uint64_t first = __rdtsc();
  for (unsigned long at = 0; at < count; at++) {
    const uint64_t before = __rdtsc();
    if (writes) write_register(&channel, REG_SCRATCH, (uint32_t)at + 1);
    else if (read_register(&channel, REG_ID) != ACCEL_ID) fail("read %lu is not of the ID", at);
    ticks[at] = __rdtsc() - before;
  }
  const double took = now_ns() - begin;
  const double tick = took / (double)(__rdtsc() - first);
  /* Writes are posted: a read behind them is answered once all are there. */
  if (writes && read_register(&channel, REG_SCRATCH) != (uint32_t)count) fail("a write is lost");
  const double landed = now_ns() - begin;
  qsort(ticks, count, sizeof *ticks, ascending);
  printf("{\"count\":%lu,\"mean\":%.0f,\"median\":%.0f,\"p99\":%.0f,\"landed\":%.0f}\n", count,
         took / (double)count, (double)ticks[count / 2] * tick,
         (double)ticks[count - 1 - count / 100] * tick, landed / (double)count);
}

/* Of the commands for `bytes`, no more at once than the ring takes. */
static double copy_all(struct accel_channel *channel, uint8_t opcode, uint64_t bytes, uint64_t *value) {
  const int up = opcode == OPCODE_COPY_HTOD;
  const double begin = now_ns();
  for (uint64_t done = 0; done < bytes;) {
    for (unsigned at = 0; at < RING_COUNT - 1 && done < bytes; at++, done += COPY_BYTES)
      copy_command(channel, opcode, up ? channel->memory_at : 0, up ? 0 : channel->memory_at, COPY_BYTES);
    run_commands(channel, ++*value);
  }
  return (double)bytes * 1e9 / (now_ns() - begin);
}

static void copy_rates(char bdf[16], unsigned long mib) {
  static struct accel_channel channel;
  open_channel(&channel, bdf, COPY_BYTES);
  uint32_t *words = (uint32_t *)channel.memory;
  for (size_t at = 0; at < COPY_BYTES / 4; at++) words[at] = (uint32_t)at * 2654435761u;
  start_channel(&channel);
  const uint64_t bytes = (uint64_t)mib << 20;
  uint64_t value = 0;
  const double up = copy_all(&channel, OPCODE_COPY_HTOD, bytes, &value);
  memset(channel.memory, 0, COPY_BYTES);
  const double down = copy_all(&channel, OPCODE_COPY_DTOH, bytes, &value);
  stop_channel(&channel);
  for (size_t at = 0; at < COPY_BYTES / 4; at++)
    if (words[at] != (uint32_t)at * 2654435761u) fail("what came back differs at byte %zu", at * 4);
  printf("{\"bytes\":%llu,\"htod\":%.0f,\"dtoh\":%.0f}\n", (unsigned long long)bytes, up, down);
}

/* Linux makes the files of BARs once they have addresses, and before it looks for a driver. */
static void wait_until(const char *bdf, int there) {
  char path[128];
  snprintf(path, sizeof path, "/sys/bus/pci/devices/%s/%s", bdf, there ? "resource0" : "vendor");
  const double begin = now_ns();
  while ((access(path, F_OK) == 0) != there) {
    if (now_ns() - begin > WITHIN_NS) fail("%s: not within %.0f s", path, WITHIN_NS / 1e9);
    usleep(LOOK_US);
  }
  printf("{\"waited\":%.0f}\n", now_ns() - begin);
}

int main(int argc, char **argv) {
  char bdf[16] = "";
  const int at = first_argument(argc, argv, bdf);
  const char *what = at < argc ? argv[at] : "";
  const unsigned long amount = at + 1 < argc ? strtoul(argv[at + 1], NULL, 10) : 0;
  const int is_read = strcmp(what, "read") == 0, is_write = strcmp(what, "write") == 0;
  const int is_there = strcmp(what, "there") == 0, is_gone = strcmp(what, "gone") == 0;
  if ((is_read || is_write) && amount > 0) access_times(bdf, is_write, amount);
  else if (strcmp(what, "dma") == 0 && amount >= COPY_BYTES >> 20) copy_rates(bdf, amount & ~3ul);
  else if ((is_there || is_gone) && bdf[0] != 0) wait_until(bdf, is_there);
  else fail("usage: measure [-d BDF] read|write COUNT | dma MIB | there | gone");
  return 0;
}
