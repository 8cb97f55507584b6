import { expect, it } from 'vitest';
import { newBoxBook } from './wanted-orders.ts';

const row = (generation: number) => ({ host: 'h1', generation, path: 'lan' });

it('orders the whole first, and then what differs', () => {
  const book = newBoxBook();
  book.want(3, { slot: 3, row: row(1) });
  expect(book.take(false)).toEqual({ revision: 1, whole: true, slots: [{ slot: 3, row: row(1) }] });
  expect(book.take(false)).toBeUndefined();
  book.want(4, { slot: 4, row: row(2) });
  book.want(3, undefined);
  expect(book.take(false)).toEqual({
    revision: 2,
    whole: false,
    slots: [
      { slot: 4, row: row(2) },
      { slot: 3, row: undefined },
    ],
  });
});

it('orders nothing for a wish that was taken back within the turn', () => {
  const book = newBoxBook();
  book.take(false);
  book.want(3, { slot: 3, row: row(1) });
  book.want(3, undefined);
  expect(book.take(false)).toBeUndefined();
});

it('confirms a slot by the order that was about it, or a later one', () => {
  const book = newBoxBook();
  expect(book.isConfirmed(3)).toBe(false);
  book.take(false);
  expect(book.isConfirmed(3)).toBe(false);
  expect(book.confirm(1)).toBeUndefined();
  expect(book.isConfirmed(3)).toBe(true);
  book.want(3, { slot: 3, row: row(1) });
  expect(book.isConfirmed(3)).toBe(false);
  expect(book.isConfirmed(4)).toBe(true);
  book.take(false);
  book.want(4, { slot: 4, row: row(2) });
  book.take(false);
  expect(book.confirm(2)).toEqual([3]);
  expect([book.isConfirmed(3), book.isConfirmed(4)]).toEqual([true, false]);
  expect(book.confirm(3)).toEqual([4]);
  expect(book.isConfirmed(4)).toBe(true);
});

it('suspects the oldest order that is not in force, where nothing newer is about the slot', () => {
  const book = newBoxBook();
  book.take(false);
  book.confirm(1);
  book.want(3, { slot: 3, row: row(1) });
  book.want(4, { slot: 4, row: row(2) });
  book.take(false);
  expect(book.suspects()).toEqual([3, 4]);
  book.want(4, undefined);
  book.take(false);
  expect(book.suspects()).toEqual([3]);
  book.confirm(3);
  expect(book.suspects()).toEqual([]);
});
