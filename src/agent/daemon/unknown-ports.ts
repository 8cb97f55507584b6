/** Virtual ports of a VM whose guest has not set them up yet: no windows, and buses of their own till then. */
import type { VirtualPortOptions } from '#host/virtual-port';

const MIB = 2 ** 20;
/** Guests number buses from the first. */
const LAST_BUS = 255;

export function unknownPorts(count: number): VirtualPortOptions[] {
  return Array.from({ length: count }, (_, index) => ({
    secondaryBus: LAST_BUS - index,
    nonPrefetchableBase: MIB,
    nonPrefetchableBytes: 0,
    prefetchableBase: MIB,
    prefetchableBytes: 0,
  }));
}
