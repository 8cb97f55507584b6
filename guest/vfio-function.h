/* A PCI function in the hands of a program, by Linux's vfio: BAR0, DMA and one MSI vector. */
#ifndef VFIO_FUNCTION_H
#define VFIO_FUNCTION_H

#include <stddef.h>
#include <stdint.h>

struct vfio_function {
  char bdf[16];
  volatile uint32_t *bar0;
  int container, group, device;
  int interrupt; /* An eventfd; a read gives how many came. */
};

/* The first function of these IDs; 0 where there is none. */
int find_function(unsigned vendor, unsigned device, char bdf[16]);

/* Takes it from the driver that has it. Ends the program, saying why, where that cannot be. */
void open_function(struct vfio_function *function, const char *bdf);

/* Memory of ours that the function reaches at `iova`, a multiple of 2 MiB; zeroed. */
void *map_dma(struct vfio_function *function, uint64_t iova, size_t bytes);

/* Says why on stderr and ends the program with status 1. */
_Noreturn void fail(const char *format, ...);

#endif
