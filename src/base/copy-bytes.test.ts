import { expect, it } from 'vitest';
import { fc } from '#testkit/properties';
import { copyBytes } from './copy-bytes.ts';

it('copies exactly the range, at any alignment and length, among many arrays', () => {
  // More arrays than are kept, some of them windows into one buffer, so that kept views are replaced.
  const SIZE = 1500;
  const shared = new ArrayBuffer(3000);
  const arrays = Array.from({ length: 12 }, (_, i) =>
    i % 3 === 0 ? new Uint8Array(shared, i * 64 + (i % 4), SIZE) : new Uint8Array(SIZE + i),
  );
  const pick = fc.nat({ max: arrays.length - 1 });
  const place = fc.oneof(fc.nat({ max: 90 }), fc.constantFrom(4, 8, 12, 16, 64, 68));
  // Around each length at which another way of copying begins.
  const bytes = fc.oneof(
    fc.nat({ max: 40 }),
    fc.constantFrom(31, 32, 33, 36, 64, 252, 256, 508, 512, 513, 516, 1020, 1024, 1028),
  );
  fc.assert(
    fc.property(pick, pick, place, place, bytes, (a, b, to, from, count) => {
      const target = arrays[a]!;
      const source = arrays[b]!;
      target.fill(0xaa);
      source.forEach((_, i) => (source[i] = i * 3 + b));
      const expected = target.slice();
      expected.set(source.slice(from, from + count), to);
      copyBytes(target, to, source, from, count);
      // Not `toEqual`, which takes a hundred times as long.
      expect(Buffer.compare(target, expected)).toBe(0);
    }),
    { numRuns: 3000 },
  );
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

it('reaches places beyond 2 GiB', () => {
  const place = 2 ** 31 + 64;
  const large = new Uint8Array(place + 64);
  const small = Uint8Array.from({ length: 64 }, (_, i) => i + 1);
  copyBytes(large, place, small, 0, 64);
  expect(large.subarray(place, place + 64)).toEqual(small);
  const back = new Uint8Array(64);
  copyBytes(back, 0, large, place, 64);
  expect(back).toEqual(small);
});
