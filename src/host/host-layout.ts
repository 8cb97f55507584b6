/** Checks that the parts of a soft host's address map do not get in each other's way. */
import { DxpuError } from '#base/errors';
import type { HostMemoryRegion } from './host-memory.ts';
import { MSI_ADDRESS } from './msi-vectors.ts';
import type { VirtualPortOptions } from './virtual-port.ts';

interface Part {
  readonly name: string;
  readonly base: number;
  readonly bytes: number;
}

/** Fails with `invalid_argument` naming what overlaps, or a bus number given twice. */
export function checkLayout(
  ports: readonly VirtualPortOptions[],
  memory: readonly HostMemoryRegion[],
): void {
  if (ports.length < 1 || ports.length > 31) {
    throw new DxpuError(
      'invalid_argument',
      `a host has 1 to 31 virtual slots, not ${ports.length}`,
    );
  }
  const parts: Part[] = [{ name: 'the interrupt range', base: MSI_ADDRESS, bytes: 0x10_0000 }];
  for (const region of memory) {
    parts.push({ name: 'host memory', base: region.base, bytes: region.sizeBytes });
  }
  const buses = new Map<number, number>();
  for (const [slot, port] of ports.entries()) {
    const other = buses.get(port.secondaryBus);
    if (other !== undefined) {
      throw new DxpuError(
        'invalid_argument',
        `virtual slots ${other} and ${slot} both have secondary bus ${port.secondaryBus}`,
      );
    }
    buses.set(port.secondaryBus, slot);
    parts.push({
      name: `the non-prefetchable window of slot ${slot}`,
      base: port.nonPrefetchableBase,
      bytes: port.nonPrefetchableBytes,
    });
    parts.push({
      name: `the prefetchable window of slot ${slot}`,
      base: port.prefetchableBase,
      bytes: port.prefetchableBytes,
    });
  }
  const sorted = parts.filter((part) => part.bytes > 0).sort((a, b) => a.base - b.base);
  for (const [index, part] of sorted.entries()) {
    const next = sorted[index + 1];
    if (next !== undefined && part.base + part.bytes > next.base) {
      throw new DxpuError(
        'invalid_argument',
        `${part.name} (from 0x${part.base.toString(16)}) overlaps ${next.name} ` +
          `(from 0x${next.base.toString(16)})`,
      );
    }
  }
}

/** Returns `bytes`, which must be a legal MPS or MRRS. */
export function checkTlpSize(name: string, bytes: number): number {
  if (![128, 256, 512, 1024, 2048, 4096].includes(bytes)) {
    throw new DxpuError('invalid_argument', `${name} must be 128, 256 … 4096, not ${bytes}`);
  }
  return bytes;
}
