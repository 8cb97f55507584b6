#include "vfio-function.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <linux/pci_regs.h>
#include <linux/vfio.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#define DEVICES "/sys/bus/pci/devices"
#define HUGE_BYTES (2u << 20)

_Noreturn void fail(const char *format, ...) {
  va_list rest;
  va_start(rest, format);
  vfprintf(stderr, format, rest);
  va_end(rest);
  fputc('\n', stderr);
  exit(1);
}

static void write_text(const char *path, const char *text) {
  int file = open(path, O_WRONLY);
  if (file < 0) fail("cannot open %s: %s", path, strerror(errno));
  if (write(file, text, strlen(text)) < 0) fail("cannot write %s: %s", path, strerror(errno));
  close(file);
}

static unsigned read_number(const char *bdf, const char *name) {
  char path[128], text[32] = "";
  snprintf(path, sizeof path, DEVICES "/%s/%s", bdf, name);
  int file = open(path, O_RDONLY);
  if (file < 0) return ~0u;
  ssize_t length = read(file, text, sizeof text - 1);
  close(file);
  return length > 0 ? (unsigned)strtoul(text, NULL, 16) : ~0u;
}

int find_function(unsigned vendor, unsigned device, char bdf[16]) {
  struct dirent **entries;
  int count = scandir(DEVICES, &entries, NULL, alphasort);
  int found = 0;
  for (int at = 0; at < count; at++) {
    const char *name = entries[at]->d_name;
    if (!found && name[0] != '.' && read_number(name, "vendor") == vendor &&
        read_number(name, "device") == device) {
      snprintf(bdf, 16, "%.15s", name);
      found = 1;
    }
    free(entries[at]);
  }
  if (count >= 0) free(entries);
  return found;
}

static void bind_to_vfio(const char *bdf) {
  char path[128], link[256];
  snprintf(path, sizeof path, DEVICES "/%s/driver", bdf);
  ssize_t length = readlink(path, link, sizeof link - 1);
  if (length > 0) {
    link[length] = 0;
    if (strcmp(basename(link), "vfio-pci") == 0) return;
    snprintf(path, sizeof path, DEVICES "/%s/driver/unbind", bdf);
    write_text(path, bdf);
  }
  snprintf(path, sizeof path, DEVICES "/%s/driver_override", bdf);
  write_text(path, "vfio-pci");
  write_text("/sys/bus/pci/drivers_probe", bdf);
}

static void open_group(struct vfio_function *function) {
  char path[128], link[256];
  snprintf(path, sizeof path, DEVICES "/%s/iommu_group", function->bdf);
  ssize_t length = readlink(path, link, sizeof link - 1);
  if (length < 0) fail("%s is behind no IOMMU: start the VM with one", function->bdf);
  link[length] = 0;
  snprintf(path, sizeof path, "/dev/vfio/%s", basename(link));
  function->container = open("/dev/vfio/vfio", O_RDWR);
  function->group = open(path, O_RDWR);
  if (function->container < 0 || function->group < 0)
    fail("cannot open %s: %s", path, strerror(errno));
  struct vfio_group_status status = {.argsz = sizeof status};
  ioctl(function->group, VFIO_GROUP_GET_STATUS, &status);
  if (!(status.flags & VFIO_GROUP_FLAGS_VIABLE))
    fail("another driver has a function of the IOMMU group of %s", function->bdf);
  if (ioctl(function->group, VFIO_GROUP_SET_CONTAINER, &function->container) < 0 ||
      ioctl(function->container, VFIO_SET_IOMMU, VFIO_TYPE1v2_IOMMU) < 0)
    fail("vfio gives %s no DMA: %s", function->bdf, strerror(errno));
  function->device = ioctl(function->group, VFIO_GROUP_GET_DEVICE_FD, function->bdf);
  if (function->device < 0) fail("vfio does not open %s: %s", function->bdf, strerror(errno));
}

static struct vfio_region_info region(const struct vfio_function *function, unsigned index) {
  struct vfio_region_info info = {.argsz = sizeof info, .index = index};
  if (ioctl(function->device, VFIO_DEVICE_GET_REGION_INFO, &info) < 0)
    fail("%s has no region %u: %s", function->bdf, index, strerror(errno));
  return info;
}

static void open_interrupt(struct vfio_function *function) {
  function->interrupt = eventfd(0, EFD_CLOEXEC);
  struct {
    struct vfio_irq_set set;
    int32_t fd;
  } request = {
      .set = {.argsz = sizeof request,
              .flags = VFIO_IRQ_SET_DATA_EVENTFD | VFIO_IRQ_SET_ACTION_TRIGGER,
              .index = VFIO_PCI_MSI_IRQ_INDEX,
              .count = 1},
      .fd = function->interrupt,
  };
  if (ioctl(function->device, VFIO_DEVICE_SET_IRQS, &request) < 0)
    fail("%s has no MSI: %s", function->bdf, strerror(errno));
}

void open_function(struct vfio_function *function, const char *bdf) {
  memset(function, 0, sizeof *function);
  snprintf(function->bdf, sizeof function->bdf, "%s", bdf);
  bind_to_vfio(bdf);
  open_group(function);
  struct vfio_region_info bar = region(function, VFIO_PCI_BAR0_REGION_INDEX);
  function->bar0 = mmap(NULL, bar.size, PROT_READ | PROT_WRITE, MAP_SHARED, function->device,
                        (off_t)bar.offset);
  if (function->bar0 == MAP_FAILED) fail("cannot map BAR0 of %s: %s", bdf, strerror(errno));
  const off_t at = (off_t)region(function, VFIO_PCI_CONFIG_REGION_INDEX).offset + PCI_COMMAND;
  uint16_t command;
  if (pread(function->device, &command, 2, at) != 2) fail("cannot read the config of %s", bdf);
  command |= PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER;
  if (pwrite(function->device, &command, 2, at) != 2) fail("cannot write the config of %s", bdf);
  open_interrupt(function);
}

void *map_dma(struct vfio_function *function, uint64_t iova, size_t bytes) {
  /* On huge pages of its own where the kernel has some: few maps for all of it. */
  bytes = (bytes + HUGE_BYTES - 1) & ~(size_t)(HUGE_BYTES - 1);
  char *memory = mmap(NULL, bytes + HUGE_BYTES, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) fail("no memory for DMA: %s", strerror(errno));
  memory += -(uintptr_t)memory & (HUGE_BYTES - 1);
  madvise(memory, bytes, MADV_HUGEPAGE);
  memset(memory, 0, bytes);
  struct vfio_iommu_type1_dma_map map = {
      .argsz = sizeof map,
      .flags = VFIO_DMA_MAP_FLAG_READ | VFIO_DMA_MAP_FLAG_WRITE,
      .vaddr = (uintptr_t)memory,
      .iova = iova,
      .size = bytes,
  };
  if (ioctl(function->container, VFIO_IOMMU_MAP_DMA, &map) < 0)
    fail("cannot map memory for %s: %s", function->bdf, strerror(errno));
  return memory;
}
