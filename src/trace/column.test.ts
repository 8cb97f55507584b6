import { expect, it } from 'vitest';
import { float64Column, uint8Column } from './column.ts';

it('keeps values over many chunks and gives them in the order asked for', () => {
  const column = float64Column();
  // More than two chunks of 16,384 rows.
  const rows = 40_000;
  for (let row = 0; row < rows; row += 1) column.push(row * 0.5);
  expect(column.count).toBe(rows);
  expect([column.at(0), column.at(16_383), column.at(16_384), column.at(39_999)]).toEqual([
    0, 8191.5, 8192, 19_999.5,
  ]);
  expect([...column.take(Uint32Array.of(39_999, 0, 16_384))]).toEqual([19_999.5, 0, 8192]);
  expect(column.count).toBe(0);
});

it('is empty after it was taken, and takes again', () => {
  const column = uint8Column();
  column.push(7);
  column.take(Uint32Array.of(0));
  column.push(9);
  expect([column.count, column.at(0)]).toEqual([1, 9]);
});
