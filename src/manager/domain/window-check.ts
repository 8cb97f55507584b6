/** Whether the windows a host reports for its virtual ports can be those of one PCIe hierarchy. */
import { IntervalMap } from '#base/interval-map';
import type { HostSlotReport, WindowReport } from '#proto/agent-messages';

/** Bridge windows are cut in these (type 1 header, 7.5.1.3.8 and 7.5.1.3.9). */
const GRANULE = 0x10_0000;
const HIGHEST_32 = 0xffff_ffff;

/**
 * What is wrong, by slot. Of two slots that cannot both be right the lower one is believed. Empty
 * windows, and a bus number of 0, are those of a port that is not set up: nothing is wrong with them.
 */
export function windowFaults(slots: readonly HostSlotReport[]): ReadonlyMap<number, string> {
  const faults = new Map<number, string>();
  const taken = new IntervalMap(2 * slots.length);
  const buses = new Map<number, number>();
  for (const port of [...slots].sort((a, b) => a.slot - b.slot)) {
    const fault =
      shapeFault('non-prefetchable', port.nonPrefetchable, HIGHEST_32) ??
      shapeFault('prefetchable', port.prefetchable, Number.MAX_SAFE_INTEGER) ??
      overlapFault(port, taken) ??
      busFault(port, buses);
    if (fault !== undefined) {
      faults.set(port.slot, `slot ${port.slot}: ${fault}`);
      continue;
    }
    for (const window of [port.nonPrefetchable, port.prefetchable]) {
      if (!isEmpty(window)) taken.insert(window.base, window.limit, port.slot);
    }
    if (port.secondaryBus !== 0) buses.set(port.secondaryBus, port.slot);
  }
  return faults;
}

function shapeFault(name: string, window: WindowReport, highest: number): string | undefined {
  if (isEmpty(window)) return undefined;
  const { base, limit } = window;
  if (base % GRANULE !== 0 || (limit + 1) % GRANULE !== 0) {
    return `its ${name} window ${text(window)} is not made of whole MiB`;
  }
  if (base < 0 || limit > highest) return `its ${name} window ${text(window)} lies out of reach`;
  return undefined;
}

function overlapFault(port: HostSlotReport, taken: IntervalMap): string | undefined {
  const { nonPrefetchable, prefetchable } = port;
  for (const window of [nonPrefetchable, prefetchable]) {
    if (isEmpty(window) || !taken.overlaps(window.base, window.limit)) continue;
    const at = Math.max(taken.find(window.limit), taken.find(window.base));
    const whose = at < 0 ? 'that of another slot' : `that of slot ${at}`;
    return `its window ${text(window)} overlaps ${whose}`;
  }
  if (isEmpty(nonPrefetchable) || isEmpty(prefetchable)) return undefined;
  return overlap(nonPrefetchable, prefetchable) ? 'its two windows overlap' : undefined;
}

function busFault(port: HostSlotReport, buses: ReadonlyMap<number, number>): string | undefined {
  const { secondaryBus } = port;
  if (!Number.isInteger(secondaryBus) || secondaryBus < 0 || secondaryBus > 255) {
    return `there is no bus ${secondaryBus}`;
  }
  const other = buses.get(secondaryBus);
  return other === undefined ? undefined : `its bus ${secondaryBus} is that of slot ${other}`;
}

function text({ base, limit }: WindowReport): string {
  return `0x${base.toString(16)} to 0x${limit.toString(16)}`;
}

function isEmpty(window: WindowReport): boolean {
  return window.base > window.limit;
}

function overlap(a: WindowReport, b: WindowReport): boolean {
  return a.base <= b.limit && b.base <= a.limit;
}
