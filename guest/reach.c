/*
 * What the reference accelerator reaches of this machine's memory, and what it does not.
 *
 *   reach [-d BDF] ADDRESS...        has it read and write 4 KiB at each bus address. Besides numbers:
 *                                      inside    a page that is lent to it
 *                                      behind    the first byte behind what is lent to it
 *                                      physical  where a page of this program is, which is not lent to it
 *   reach [-d BDF] masterless        takes bus mastering from it while it copies, and before
 *   reach [-d BDF] hold ADDRESS      lends it a page at ADDRESS, until there is /run/let-go
 *   reach [-d BDF] memory            counts bytes of its memory that are not 0, in the first MiB
 *
 * Prints one line of JSON. Pages that must not change hold a pattern; `changed` counts its bytes that differ.
 */
#include "accel-channel.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/pci_regs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE_BYTES 4096u
#define HUGE_BYTES (2ull << 20)
#define COPY_BYTES (16u << 20)
#define PATTERN 0xc5
#define DEVICE_PATTERN 0x3a3a3a3au
/* An access behind a doorbell takes a round trip of the fabric: a fetch of a command would long have been made. */
#define LOOKS 500
#define TRIES 200

static struct accel_channel channel;
static uint64_t fence_value;

static size_t changed(const volatile char *page) {
  size_t count = 0;
  for (size_t at = 0; at < PAGE_BYTES; at++) count += (unsigned char)page[at] != PATTERN;
  return count;
}

static uint64_t physical_address(const void *page) {
  const int file = open("/proc/self/pagemap", O_RDONLY);
  uint64_t entry = 0;
  const off_t at = (off_t)((uintptr_t)page / PAGE_BYTES * sizeof entry);
  if (file < 0 || pread(file, &entry, sizeof entry, at) != sizeof entry)
    fail("no /proc/self/pagemap: %s", strerror(errno));
  close(file);
  const uint64_t frame = entry & ((1ull << 55) - 1);
  if (frame == 0) fail("the kernel hides where pages are: not root?");
  return frame * PAGE_BYTES;
}

/*
 * Not by vfio, which reads the register before it writes it: the answer would come behind all that is on its way.
 * The read behind it does.
 */
static void set_master(int on) {
  char path[64];
  snprintf(path, sizeof path, "/sys/bus/pci/devices/%s/config", channel.function.bdf);
  const int file = open(path, O_RDWR);
  const uint16_t command = PCI_COMMAND_MEMORY | (on ? PCI_COMMAND_MASTER : 0);
  uint16_t is;
  if (file < 0 || pwrite(file, &command, sizeof command, PCI_COMMAND) != sizeof command ||
      pread(file, &is, sizeof is, PCI_COMMAND) != sizeof is)
    fail("%s: %s", path, strerror(errno));
  const uint16_t both = PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER;
  if ((is & both) != command) fail("Command is %04x, not %04x", is, command);
  close(file);
}

static void begin(void) {
  stop_channel(&channel);
  channel.tail = 0;
  start_channel(&channel);
}

static void ring(void) {
  __sync_synchronize();
  write_register(&channel, DOORBELL_BASE, channel.tail);
}

/* 0, or why it has halted, after so many looks at most. */
static uint32_t error_within(unsigned looks) {
  for (unsigned look = 0; look < looks; look++) {
    const uint32_t status = read_register(&channel, CHANNEL_STATUS);
    if (status & STATUS_HALTED) return read_register(&channel, ERROR_CODE);
    if (!(status & STATUS_BUSY)) return 0;
  }
  return 0;
}

static uint64_t error_address(void) {
  return read_register(&channel, ERROR_ADDRESS_LO) | (uint64_t)read_register(&channel, ERROR_ADDRESS_HI) << 32;
}

/* A read of that address. Where it fails, `error_address` says at which. */
static uint32_t read_at(uint64_t address) {
  begin();
  copy_command(&channel, OPCODE_COPY_HTOD, address, 0, PAGE_BYTES);
  ring();
  return error_within(~0u);
}

/* The fence behind it is a write to memory that is lent: both have arrived when it has. */
static void write_at(uint64_t address) {
  begin();
  struct accel_command *command = next_command(&channel, OPCODE_FILL);
  command->operand[1] = 0;
  command->operand[2] = PAGE_BYTES / 4;
  command->scalar = DEVICE_PATTERN;
  copy_command(&channel, OPCODE_COPY_DTOH, 0, address, PAGE_BYTES);
  run_commands(&channel, ++fence_value);
}

static void reach(char bdf[16], int count, char **addresses) {
  open_channel(&channel, bdf, PAGE_BYTES);
  char *inside = channel.memory;
  char *outside = aligned_alloc(PAGE_BYTES, PAGE_BYTES);
  if (outside == NULL) fail("no memory");
  memset(outside, PATTERN, PAGE_BYTES);
  mlock(outside, PAGE_BYTES);
  const uint64_t behind = (channel.memory_at + PAGE_BYTES + HUGE_BYTES - 1) / HUGE_BYTES * HUGE_BYTES;
  printf("[");
  for (int at = 0; at < count; at++) {
    const char *name = addresses[at];
    const uint64_t address = strcmp(name, "inside") == 0     ? channel.memory_at
                             : strcmp(name, "behind") == 0   ? behind
                             : strcmp(name, "physical") == 0 ? physical_address(outside)
                                                             : strtoull(name, NULL, 0);
    memset(inside, PATTERN, PAGE_BYTES);
    const uint32_t error = read_at(address);
    const int is_named = error_address() == address;
    write_at(address);
    printf("%s{\"at\":\"%s\",\"readError\":%u,\"named\":%s,\"inside\":%zu,\"outside\":%zu}", at > 0 ? "," : "",
           name, error, is_named ? "true" : "false", changed(inside), changed(outside));
  }
  printf("]\n");
}

static void look_for_a_while(void) {
  for (unsigned look = 0; look < LOOKS; look++) read_register(&channel, REG_ID);
}

static void masterless(char bdf[16]) {
  open_channel(&channel, bdf, COPY_BYTES);
  char *last = channel.memory + COPY_BYTES - PAGE_BYTES;
  /* Of the reads of a copy some are on their way when it is taken, or none: then it goes on once it is given. */
  uint32_t error = 0;
  unsigned tries = 0;
  while (error == 0 && tries++ < TRIES) {
    begin();
    copy_command(&channel, OPCODE_COPY_HTOD, channel.memory_at, 0, COPY_BYTES);
    ring();
    set_master(0);
    error = error_within(20);
    set_master(1);
  }
  /* Writes are posted: those on their way are gone, and the rest waits. */
  size_t then = PAGE_BYTES, later = PAGE_BYTES;
  for (unsigned at = 0; then != 0 && at < TRIES; at++) {
    begin();
    memset(channel.memory, PATTERN, COPY_BYTES);
    copy_command(&channel, OPCODE_COPY_DTOH, 0, channel.memory_at, COPY_BYTES);
    ring();
    while (changed(channel.memory) < PAGE_BYTES) {}
    set_master(0);
    then = changed(last);
    look_for_a_while();
    later = changed(last);
    set_master(1);
  }
  /* One that is begun without it does nothing until it is given. */
  begin();
  memset(last, PATTERN, PAGE_BYTES);
  set_master(0);
  copy_command(&channel, OPCODE_COPY_DTOH, 0, channel.memory_at + COPY_BYTES - PAGE_BYTES, PAGE_BYTES);
  ring();
  look_for_a_while();
  const size_t without = changed(last);
  set_master(1);
  while (changed(last) < PAGE_BYTES) error_within(1);
  printf("{\"readError\":%u,\"tries\":%u,\"cutOff\":[%zu,%zu],\"without\":%zu,\"with\":%zu}\n", error, tries, then, later,
         without, changed(last));
}

static void hold(char bdf[16], uint64_t address) {
  open_channel(&channel, bdf, 0);
  char *page = map_dma(&channel.function, address, PAGE_BYTES);
  memset(page, PATTERN, PAGE_BYTES);
  const uint32_t error = read_at(address);
  write_at(address);
  const size_t own = changed(page);
  memset(page, PATTERN, PAGE_BYTES);
  printf("{\"readError\":%u,\"own\":%zu}\n", error, own);
  fflush(stdout);
  while (access("/run/let-go", F_OK) != 0) usleep(20000);
  printf("{\"changed\":%zu}\n", changed(page));
}

static void count_memory(char bdf[16]) {
  const size_t bytes = 1u << 20;
  open_channel(&channel, bdf, bytes);
  memset(channel.memory, 0xff, bytes);
  begin();
  copy_command(&channel, OPCODE_COPY_DTOH, 0, channel.memory_at, bytes);
  run_commands(&channel, ++fence_value);
  size_t count = 0;
  for (size_t at = 0; at < bytes; at++) count += channel.memory[at] != 0;
  printf("{\"nonzero\":%zu}\n", count);
}

int main(int argc, char **argv) {
  char bdf[16] = "";
  const int at = first_argument(argc, argv, bdf);
  const char *what = at < argc ? argv[at] : "";
  if (strcmp(what, "masterless") == 0) masterless(bdf);
  else if (strcmp(what, "memory") == 0) count_memory(bdf);
  else if (strcmp(what, "hold") == 0 && at + 1 < argc) hold(bdf, strtoull(argv[at + 1], NULL, 0));
  else if (what[0] != 0) reach(bdf, argc - at, argv + at);
  else fail("usage: reach [-d BDF] ADDRESS... | masterless | hold ADDRESS | memory");
  stop_channel(&channel);
  return 0;
}
