import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { copyWords, reaches, readBigEndian, writeHeader } from './word-copy.ts';

describe('copyWords', () => {
  it('copies exactly the range, at any alignment and length, among many buffers', () => {
    // More buffers than are kept, some of them windows into one, so that kept views are replaced.
    const shared = new ArrayBuffer(8192);
    const buffers = Array.from({ length: 12 }, (_, i) =>
      i % 3 === 0 ? new Uint8Array(shared, i * 64 + (i % 4), 700) : new Uint8Array(700 + i),
    );
    const pick = fc.nat({ max: buffers.length - 1 });
    const words = fc.oneof(fc.nat({ max: 8 }), fc.constantFrom(63, 64, 65, 100));
    fc.assert(
      fc.property(
        pick,
        pick,
        fc.nat({ max: 90 }),
        fc.nat({ max: 90 }),
        words,
        (a, b, to, from, n) => {
          if (a === b || (a % 3 === 0 && b % 3 === 0)) return; // ranges must not overlap
          const target = buffers[a] as Uint8Array;
          const source = buffers[b] as Uint8Array;
          target.fill(0xaa);
          source.forEach((_, i) => (source[i] = i * 3 + b));
          const expected = [...target];
          expected.splice(to, n * 4, ...source.subarray(from, from + n * 4));
          copyWords(target, to, source, from, n * 4);
          expect([...target]).toEqual(expected);
        },
      ),
      { numRuns: 2000 },
    );
  });
});

describe('headers', () => {
  it('big-endian at any place, three or four double words', () => {
    for (let offset = 0; offset < 6; offset++) {
      for (const headerBytes of [12, 16]) {
        const bytes = new Uint8Array(24);
        writeHeader(
          bytes,
          offset,
          headerBytes,
          0x00010203,
          0x84858687 | 0,
          0x08090a0b,
          0xfcfdfeff | 0,
        );
        const all = [0, 1, 2, 3, 0x84, 0x85, 0x86, 0x87, 8, 9, 10, 11, 0xfc, 0xfd, 0xfe, 0xff];
        expect([...bytes.subarray(offset, offset + headerBytes)]).toEqual(
          all.slice(0, headerBytes),
        );
        expect(bytes.subarray(offset + headerBytes).every((byte) => byte === 0)).toBe(true);
        expect(readBigEndian(bytes, offset + 4) >>> 0).toBe(0x84858687);
      }
    }
  });
});

it('reaches tells whether the last byte is there', () => {
  expect([3, 4, 5].map((end) => reaches(new Uint8Array(4), end))).toEqual([true, true, false]);
});
