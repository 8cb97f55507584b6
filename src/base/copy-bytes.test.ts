import { expect, it } from 'vitest';
import { copyBytes } from './copy-bytes.ts';

it.each([0, 1, 31, 32, 33, 200])('copies %i bytes and nothing beside them', (bytes) => {
  const source = Uint8Array.from({ length: 256 }, (_, i) => i);
  const target = new Uint8Array(256).fill(0xee);
  copyBytes(target, 7, source, 11, bytes);
  const expected = new Uint8Array(256).fill(0xee);
  for (let i = 0; i < bytes; i++) expected[7 + i] = 11 + i;
  expect(target).toEqual(expected);
});

it.each([
  [4, 0, 8],
  [0, 4, 8],
  [20, 0, 100],
])('moves within one buffer as if through another: to %i from %i, %i bytes', (to, from, bytes) => {
  const array = Uint8Array.from({ length: 160 }, (_, i) => i);
  const expected = array.slice();
  for (let i = 0; i < bytes; i++) expected[to + i] = from + i;
  copyBytes(array, to, array.subarray(0), from, bytes);
  expect(array).toEqual(expected);
});
