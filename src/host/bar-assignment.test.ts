import { expect, it } from 'vitest';
import { type BarRequest, placeBars } from './bar-assignment.ts';

const MIB = 2 ** 20;

const bar = (index: number, mib: number): BarRequest => ({
  index,
  kind: 'mem32',
  prefetchable: false,
  sizeBytes: mib * MIB,
});

const window = (baseMib: number, mib: number) => ({
  secondaryBus: 1,
  nonPrefetchableBase: baseMib * MIB,
  nonPrefetchableBytes: mib * MIB,
  prefetchableBase: 0,
  prefetchableBytes: 0,
});

// Regression: what lay before the first aligned address of the largest BAR was given away.
it('places 8 and 4 MiB in a window from 4 to 16 MiB: at 8 and at 4', () => {
  const placed = placeBars([bar(0, 8), bar(1, 4)], window(4, 12), 'slot 0');
  expect(placed).toMatchObject([
    { index: 0, address: 8 * MIB },
    { index: 1, address: 4 * MIB },
  ]);
});

it('says what is left when one does not fit', () => {
  expect(placeBars([bar(0, 8), bar(1, 8)], window(4, 12), 'slot 0')).toMatchObject({
    kind: 'no-space',
    barIndex: 1,
    message: expect.stringContaining('has 12 MiB with 4 MiB left'),
  });
});
