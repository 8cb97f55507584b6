/**
 * Sizing a function's BARs (PCIe 5.0 base, 7.5.1.2.1) and placing them in the windows of its port.
 * This host has no I/O space: I/O BARs are found and left alone.
 */
import { BAR_COUNT, BASE_ADDRESS_0 } from './function-registers.ts';
import { configRead, configWrite } from './host-operations.ts';
import type { EnumerationProblem, PciBar } from './pci-function.ts';
import { RangeAllocator } from './range-allocator.ts';
import type { SoftHost } from './root-complex.ts';
import type { Task } from './task.ts';
import type { VirtualPortOptions } from './virtual-port.ts';

const BAR_IO = 1;
const BAR_TYPE_64 = 2;
const BAR_PREFETCHABLE = 8;

/** A BAR as the device asks for it. */
export type BarRequest = Omit<PciBar, 'address'>;

type ConfigProblem = Extract<EnumerationProblem, { kind: 'config-error' }>;
type NoSpace = Extract<EnumerationProblem, { kind: 'no-space' }>;

function misbuilt(message: string): ConfigProblem {
  return { kind: 'config-error', message };
}

/**
 * Finds the memory BARs. Memory decode must be off; every register is left as it was found.
 * A BAR no software could place is a problem by name.
 */
export function* sizeBars(host: SoftHost, bdf: number): Task<BarRequest[] | ConfigProblem> {
  const requests: BarRequest[] = [];
  for (let index = 0; index < BAR_COUNT; index++) {
    const low = yield* sizingMask(host, bdf, index);
    if (low === 0 || (low & BAR_IO) !== 0) continue;
    const type = (low >>> 1) & 3;
    const prefetchable = (low & BAR_PREFETCHABLE) !== 0;
    if (type === 0) {
      const sizeBytes = (~(low & ~15) >>> 0) + 1;
      if (!isPowerOfTwo(sizeBytes)) return misbuilt(`BAR ${index} has no size (mask ${hex(low)})`);
      requests.push({ index, kind: 'mem32', prefetchable, sizeBytes });
      continue;
    }
    if (type !== BAR_TYPE_64 || index + 1 === BAR_COUNT) {
      return misbuilt(`BAR ${index} has a type that does not exist here (mask ${hex(low)})`);
    }
    const high = yield* sizingMask(host, bdf, index + 1);
    // Bits above 2^53 are lost in neither word: each is complemented on its own.
    const sizeBytes = (~high >>> 0) * 0x1_0000_0000 + (~(low & ~15) >>> 0) + 1;
    if (!isPowerOfTwo(sizeBytes)) {
      return misbuilt(`BAR ${index} has no size (masks ${hex(low)}, ${hex(high)})`);
    }
    requests.push({ index, kind: 'mem64', prefetchable, sizeBytes });
    index++;
  }
  return requests;
}

function* sizingMask(host: SoftHost, bdf: number, index: number): Task<number> {
  const register = BASE_ADDRESS_0 + 4 * index;
  const before = yield* configRead(host, bdf, register);
  yield* configWrite(host, bdf, register, 0xffff_ffff);
  const mask = yield* configRead(host, bdf, register);
  yield* configWrite(host, bdf, register, before);
  return mask;
}

/**
 * Places BARs in a port's windows, the largest first, each at a multiple of its size: prefetchable
 * 64-bit ones in the prefetchable window, all others in the non-prefetchable window. All or nothing, and
 * all wherever they fit at all: of sizes that are powers of two the largest first leaves no gap that a
 * later one could not use.
 */
export function placeBars(
  requests: readonly BarRequest[],
  windows: VirtualPortOptions,
  slotName: string,
): PciBar[] | NoSpace {
  const order = [...requests].sort((a, b) => b.sizeBytes - a.sizeBytes || a.index - b.index);
  const { prefetchableBase, prefetchableBytes, nonPrefetchableBase, nonPrefetchableBytes } =
    windows;
  const room = {
    prefetchable: new RangeAllocator(prefetchableBase, prefetchableBase + prefetchableBytes, 16),
    'non-prefetchable': new RangeAllocator(
      nonPrefetchableBase,
      nonPrefetchableBase + nonPrefetchableBytes,
      16,
    ),
  };
  const placed: PciBar[] = [];
  for (const request of order) {
    const window =
      request.kind === 'mem64' && request.prefetchable ? 'prefetchable' : 'non-prefetchable';
    const address = room[window].alloc(request.sizeBytes, request.sizeBytes);
    if (address < 0) {
      const windowBytes = window === 'prefetchable' ? prefetchableBytes : nonPrefetchableBytes;
      const left = room[window].freeBytes;
      return {
        kind: 'no-space',
        message:
          `no space: BAR ${request.index} needs ${formatBytes(request.sizeBytes)}, the ${window} ` +
          `window of ${slotName} has ${formatBytes(windowBytes)} with ${formatBytes(left)} left; ` +
          'reserve a larger window for this slot',
        barIndex: request.index,
        barBytes: request.sizeBytes,
        window,
        windowBytes,
      };
    }
    placed.push({ ...request, address });
  }
  return placed.sort((a, b) => a.index - b.index);
}

/** Writes the addresses. Memory decode must be off. Fails when one does not stick. */
export function* writeBars(
  host: SoftHost,
  bdf: number,
  bars: readonly PciBar[],
): Task<ConfigProblem | undefined> {
  for (const bar of bars) {
    const words = [bar.address % 0x1_0000_0000];
    if (bar.kind === 'mem64') words.push(Math.floor(bar.address / 0x1_0000_0000));
    for (const [half, word] of words.entries()) {
      const register = BASE_ADDRESS_0 + 4 * (bar.index + half);
      yield* configWrite(host, bdf, register, word);
      const back = yield* configRead(host, bdf, register);
      const address = half === 0 ? (back & ~15) >>> 0 : back;
      if (address !== word) {
        return misbuilt(
          `BAR ${bar.index + half} reads ${hex(back)} after ${hex(word)} was written`,
        );
      }
    }
  }
  return undefined;
}

/** `64 MiB`, `4 KiB`, `2 GiB`; exact, in the largest unit that divides it. */
export function formatBytes(bytes: number): string {
  const units = ['bytes', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
  let unit = 0;
  let value = bytes;
  while (value !== 0 && value % 1024 === 0 && unit < units.length - 1) {
    value /= 1024;
    unit++;
  }
  return `${value} ${units[unit]}`;
}

function isPowerOfTwo(value: number): boolean {
  return value >= 16 && Number.isInteger(Math.log2(value)) && 2 ** Math.log2(value) === value;
}

function hex(value: number): string {
  return `0x${value.toString(16).padStart(8, '0')}`;
}
