import { expect, it } from 'vitest';
import { fc } from '#testkit/properties';
import { orderRows } from './row-order.ts';

const reader = (values: readonly number[]): { at(row: number): number } => ({
  at: (row) => values[row] ?? Number.NaN,
});
const row = fc.record({
  group: fc.nat(3),
  start: fc.nat(20),
  duration: fc.nat(3),
  isKept: fc.boolean(),
});

it('agrees with a stable sort by group, start and falling duration', () => {
  fc.assert(
    fc.property(fc.array(row, { maxLength: 200 }), fc.boolean(), (rows, hasDurations) => {
      const kept = rows.flatMap(({ isKept }, index) => (isKept ? [index] : []));
      const expected = kept.toSorted((a, b) => {
        const [left, right] = [rows[a]!, rows[b]!];
        const byTime = left.group - right.group || left.start - right.start;
        return byTime || (hasDurations ? right.duration - left.duration : 0);
      });
      const order = orderRows(
        Uint32Array.from(kept),
        4,
        reader(rows.map(({ group }) => group)),
        reader(rows.map(({ start }) => start)),
        hasDurations ? reader(rows.map(({ duration }) => duration)) : undefined,
      );
      expect([...order]).toEqual(expected);
    }),
  );
});

it('takes rows that fall all the way', () => {
  const starts = Array.from({ length: 1000 }, (_, index) => 1000 - index);
  const rows = Uint32Array.from(starts, (_, index) => index);
  const order = orderRows(rows, 1, reader(starts.map(() => 0)), reader(starts));
  expect([...order]).toEqual([...rows].toReversed());
});
