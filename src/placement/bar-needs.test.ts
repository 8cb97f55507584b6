import { expect, it } from 'vitest';
import { fitsByTrial } from '#testkit/placement-by-trial';
import { fc } from '#testkit/properties';
import { bar, MIB, windowOf } from '#testkit/small-pool';
import { barNeeds, fitsSlot } from './bar-needs.ts';
import type { BarFacts, HostSlotFacts, WindowFacts } from './facts.ts';

const LOW = 0xe000_0000;
const HIGH = 2 ** 38;

function fits(
  bars: readonly BarFacts[],
  nonPrefetchable: WindowFacts,
  prefetchable: WindowFacts,
): boolean {
  return fitsSlot(barNeeds(bars), { slot: 0, free: true, nonPrefetchable, prefetchable });
}

it('each BAR goes to the window a bridge allows it', () => {
  const none = { base: HIGH, limit: HIGH - 1 };
  const low = windowOf(LOW, 0, 1);
  const high = windowOf(HIGH, 0, 1);
  expect(fits([bar(1, 'high')], none, high)).toBe(true);
  expect(fits([bar(1, 'high')], low, none)).toBe(false);
  for (const kind of ['low', 'low64', 'low-prefetchable'] as const) {
    expect(fits([bar(1, kind)], low, none)).toBe(true);
    expect(fits([bar(1, kind)], none, high)).toBe(false);
  }
});

it('the window below 4 GiB ends there', () => {
  // 0xfff00000 is the last MiB below 2^32; what is reported beyond it is not to be had.
  const window = { base: 0xfff0_0000, limit: 0x1_001f_ffff };
  const none = { base: HIGH, limit: HIGH - 1 };
  expect(fits([bar(1, 'low')], window, none)).toBe(true);
  expect(fits([bar(1, 'low'), bar(1, 'low')], window, none)).toBe(false);
});

it('natural alignment: size alone is not enough', () => {
  const low = windowOf(LOW, 0, 0);
  // 8 MiB from 4 to 12: the only multiple of 8 inside is 8, and 8 + 8 > 12.
  expect(fits([bar(8, 'high')], low, windowOf(HIGH, 4, 12))).toBe(false);
  expect(fits([bar(8, 'high')], low, windowOf(HIGH, 4, 16))).toBe(true);
  // From 4 to 16: 8 MiB at 8, and 4 MiB before it at 4.
  expect(fits([bar(8, 'high'), bar(4, 'high')], low, windowOf(HIGH, 4, 16))).toBe(true);
  expect(fits([bar(8, 'high'), bar(4, 'high'), bar(1, 'high')], low, windowOf(HIGH, 4, 16))).toBe(
    false,
  );
});

it('exactly full, and one byte short', () => {
  const low = windowOf(LOW, 0, 0);
  const bars = [bar(4, 'high'), bar(2, 'high'), bar(2, 'high')];
  expect(fits(bars, low, windowOf(HIGH, 0, 8))).toBe(true);
  expect(fits(bars, low, { base: HIGH, limit: HIGH + 8 * MIB - 2 })).toBe(false);
});

it('an H100 with 128 GiB of prefetchable BARs', () => {
  const gib = 1024;
  const bars = [bar(gib * 128, 'high'), bar(32, 'high'), bar(16, 'low')];
  // 128 GiB and 32 MiB, at a multiple of 128 GiB.
  expect(fits(bars, windowOf(LOW, 0, 16), windowOf(HIGH, 0, gib * 128 + 32))).toBe(true);
  expect(fits(bars, windowOf(LOW, 0, 16), windowOf(HIGH, 0, gib * 128))).toBe(false);
});

it('no BARs need no windows; odd sizes count as the next power of two', () => {
  const none = { base: 1, limit: 0 };
  expect(fits([], none, none)).toBe(true);
  expect(barNeeds([{ sizeBytes: 5 * MIB, prefetchable: true, is64: true }]).prefetchable).toEqual([
    8 * MIB,
  ]);
});

it('agrees with trying every place', () => {
  const anyWindow = (from: number): fc.Arbitrary<WindowFacts> =>
    fc
      .tuple(fc.integer({ min: 0, max: 12 }), fc.integer({ min: 0, max: 20 }))
      .map(([start, mib]) => windowOf(from, start, start + mib));
  const anyBar = fc
    .tuple(
      fc.constantFrom(1, 2, 4, 8),
      fc.constantFrom('low' as const, 'low64' as const, 'high' as const, 'high' as const),
    )
    .map(([mib, kind]) => bar(mib, kind));
  fc.assert(
    fc.property(
      fc.array(anyBar, { maxLength: 5 }),
      anyWindow(LOW),
      anyWindow(HIGH),
      (bars, nonPrefetchable, prefetchable) => {
        const slot: HostSlotFacts = { slot: 0, free: true, nonPrefetchable, prefetchable };
        expect(fitsSlot(barNeeds(bars), slot)).toBe(fitsByTrial(bars, slot));
      },
    ),
    { numRuns: 2000 },
  );
});
