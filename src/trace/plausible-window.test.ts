import { expect, it } from 'vitest';
import { plausibleWindow } from './plausible-window.ts';

const DAY_NS = 24 * 3600 * 1e9;
const starts = (...values: number[]) => ({
  count: values.length,
  at: (row: number) => values[row]!,
});

it('is a day around the median', () => {
  const { startNs, endNs } = plausibleWindow([starts(100, 300, 200), starts(1e18, 250)]);
  expect([startNs, endNs]).toEqual([250 - DAY_NS, 250 + DAY_NS]);
});

it('is empty for no events', () => {
  expect(plausibleWindow([starts()])).toEqual({ startNs: 0, endNs: 0 });
});

it('follows the many, not the few, in columns longer than its samples', () => {
  const rows = 300_000;
  const column = { count: rows, at: (row: number) => (row % 3 === 0 ? 1e18 : 5e9 + row) };
  const { startNs, endNs } = plausibleWindow([column]);
  expect(startNs).toBeLessThan(5e9);
  expect(endNs).toBeGreaterThan(5e9 + rows);
  expect(endNs).toBeLessThan(1e18);
});
