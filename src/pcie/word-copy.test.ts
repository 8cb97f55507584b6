import { describe, expect, it } from 'vitest';
import { reaches, readBigEndian, writeHeader } from './word-copy.ts';

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
