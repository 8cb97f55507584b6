/**
 * What a function's BARs need of the two windows of a virtual port, and whether they fit.
 *
 * The rules are those of a PCI-to-PCI bridge: a 64-bit prefetchable BAR goes to the prefetchable
 * window; every other BAR, a 64-bit one that is not prefetchable included, goes to the other window,
 * which ends below 4 GiB. Each lies at a multiple of its size.
 */
import type { BarFacts, HostSlotFacts, WindowFacts } from './facts.ts';

const FOUR_GIB = 2 ** 32;

export interface BarNeeds {
  /** Equal for equal needs, and for them alone. */
  readonly key: string;
  /** Sizes, the largest first. */
  readonly nonPrefetchable: readonly number[];
  readonly prefetchable: readonly number[];
  readonly nonPrefetchableBytes: number;
  readonly prefetchableBytes: number;
}

/** A size that is no power of two counts as the next one: no BAR could be sized otherwise. */
export function barNeeds(bars: readonly BarFacts[]): BarNeeds {
  const nonPrefetchable: number[] = [];
  const prefetchable: number[] = [];
  for (const bar of bars) {
    if (!(bar.sizeBytes > 0)) continue;
    const window = bar.prefetchable && bar.is64 ? prefetchable : nonPrefetchable;
    window.push(powerOfTwoFrom(bar.sizeBytes));
  }
  nonPrefetchable.sort((a, b) => b - a);
  prefetchable.sort((a, b) => b - a);
  return {
    key: `${nonPrefetchable.join()}/${prefetchable.join()}`,
    nonPrefetchable,
    prefetchable,
    nonPrefetchableBytes: sum(nonPrefetchable),
    prefetchableBytes: sum(prefetchable),
  };
}

/** Whether all BARs find a place in the slot's windows at the same time. Exact. */
export function fitsSlot(needs: BarNeeds, slot: HostSlotFacts): boolean {
  return (
    fitsWindow(needs.nonPrefetchable, slot.nonPrefetchable.base, belowFourGib(slot)) &&
    fitsWindow(needs.prefetchable, slot.prefetchable.base, slot.prefetchable.limit)
  );
}

export function windowBytes(window: WindowFacts): number {
  return Math.max(0, window.limit - window.base + 1);
}

/** Negative when `a` is the smaller: first by the prefetchable window, then by the other, then by slot. */
export function compareSlots(a: HostSlotFacts, b: HostSlotFacts): number {
  return (
    windowBytes(a.prefetchable) - windowBytes(b.prefetchable) ||
    windowBytes(a.nonPrefetchable) - windowBytes(b.nonPrefetchable) ||
    a.slot - b.slot
  );
}

/** Negative when `a` is the larger. */
export function compareNeeds(a: BarNeeds, b: BarNeeds): number {
  return (
    b.prefetchableBytes - a.prefetchableBytes ||
    b.nonPrefetchableBytes - a.nonPrefetchableBytes ||
    (a.key < b.key ? -1 : a.key > b.key ? 1 : 0)
  );
}

function belowFourGib(slot: HostSlotFacts): number {
  return Math.min(slot.nonPrefetchable.limit, FOUR_GIB - 1);
}

/**
 * `sizes` are powers of two, the largest first. What lies at multiples of its size fills whole places
 * of every smaller size, so that counting places of each size is enough: those in the window must be
 * as many as this size and all larger ones take.
 */
function fitsWindow(sizes: readonly number[], base: number, limit: number): boolean {
  let needed = 0;
  for (const size of sizes) {
    needed += size;
    const places = Math.floor((limit + 1) / size) - Math.ceil(base / size);
    if (places * size < needed) return false;
  }
  return true;
}

function powerOfTwoFrom(bytes: number): number {
  let power = 1;
  while (power < bytes) power *= 2;
  return power;
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
