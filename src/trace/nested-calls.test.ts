import { expect, it } from 'vitest';
import { keepOutermost } from './nested-calls.ts';

/** Calls as [thread, start, duration], given in the order (thread, start, longest first). */
function outermost(calls: readonly (readonly [number, number, number])[]): {
  order: number[];
  outermost: number[];
  overlaps: number;
} {
  const column = (field: 0 | 1 | 2) => ({ at: (row: number) => calls[row]![field] });
  const rows = Uint32Array.from(calls.keys());
  const result = keepOutermost(rows, column(0), column(1), column(2));
  return {
    order: [...result.order],
    outermost: [...result.outermost],
    overlaps: result.overlaps,
  };
}

it('keeps calls one after another, also where one begins as the other ends', () => {
  expect(
    outermost([
      [0, 0, 10],
      [0, 10, 5],
      [0, 20, 5],
    ]),
  ).toEqual({ order: [0, 1, 2], outermost: [0, 1, 2], overlaps: 0 });
});

it('merges a call, and calls inside that call, into the outermost', () => {
  expect(
    outermost([
      [0, 0, 10],
      [0, 1, 8],
      [0, 2, 1],
      [0, 9, 1],
      [0, 12, 1],
    ]),
  ).toEqual({ order: [0, 4], outermost: [0, 0, 0, 0, 1], overlaps: 0 });
});

it('merges the same call exported twice with the same times', () => {
  expect(
    outermost([
      [0, 5, 10],
      [0, 5, 10],
    ]),
  ).toEqual({ order: [0], outermost: [0, 0], overlaps: 0 });
});

it('does not merge across threads', () => {
  expect(
    outermost([
      [0, 0, 10],
      [1, 2, 3],
    ]),
  ).toEqual({ order: [0, 1], outermost: [0, 1], overlaps: 0 });
});

it('keeps and counts a call that ends after the one it begins in', () => {
  expect(
    outermost([
      [0, 0, 10],
      [0, 5, 10],
    ]),
  ).toEqual({ order: [0, 1], outermost: [0, 1], overlaps: 1 });
});

it('keeps calls of no length at one time apart', () => {
  expect(
    outermost([
      [0, 3, 0],
      [0, 3, 0],
    ]),
  ).toEqual({ order: [0, 1], outermost: [0, 1], overlaps: 0 });
});
