/*
 * Fills a framebuffer with a picture that tells every pixel from its neighbours:
 *
 *   red = 3 x + y + SEED,  green = x + 5 y,  blue = x xor y,  each modulo 256
 *
 *   fbdraw DEVICE [SEED]
 *
 * Prints its size as one line of JSON.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fb.h>
#include <linux/kd.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static int fail(const char *what) {
  fprintf(stderr, "%s: %s\n", what, strerror(errno));
  return 1;
}

int main(int argc, char **argv) {
  if (argc < 2) {
    fprintf(stderr, "usage: fbdraw DEVICE [SEED]\n");
    return 2;
  }
  const uint32_t seed = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 0;
  /* The kernel's text console lets go of the screen, with its cursor. */
  int console = open("/dev/tty0", O_RDWR);
  if (console >= 0) ioctl(console, KDSETMODE, KD_GRAPHICS);
  int screen = open(argv[1], O_RDWR);
  if (screen < 0) return fail(argv[1]);
  struct fb_var_screeninfo mode;
  struct fb_fix_screeninfo memory;
  if (ioctl(screen, FBIOGET_VSCREENINFO, &mode) < 0 || ioctl(screen, FBIOGET_FSCREENINFO, &memory) < 0)
    return fail("no mode");
  if (mode.bits_per_pixel != 32) {
    fprintf(stderr, "%s has %u bits a pixel, not 32\n", argv[1], mode.bits_per_pixel);
    return 1;
  }
  /* A display without a console has no mode until somebody sets one. */
  mode.activate = FB_ACTIVATE_NOW | FB_ACTIVATE_FORCE;
  if (ioctl(screen, FBIOPUT_VSCREENINFO, &mode) < 0) return fail("the mode cannot be set");
  const size_t bytes = (size_t)memory.line_length * mode.yres;
  uint8_t *picture = calloc(1, bytes);
  if (picture == NULL) return fail("no memory");
  for (uint32_t y = 0; y < mode.yres; y++) {
    uint32_t *line = (uint32_t *)(picture + (size_t)memory.line_length * y);
    for (uint32_t x = 0; x < mode.xres; x++)
      line[x] = ((3 * x + y + seed) & 255) << mode.red.offset |
                ((x + 5 * y) & 255) << mode.green.offset | ((x ^ y) & 255) << mode.blue.offset;
  }
  /* At once: Linux 6.12 does not show a write of exactly one line. */
  if (pwrite(screen, picture, bytes, 0) != (ssize_t)bytes) return fail("cannot draw");
  printf("{\"width\":%u,\"height\":%u}\n", mode.xres, mode.yres);
  return 0;
}
