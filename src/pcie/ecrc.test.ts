import { crc32 } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { fc } from '#testkit/properties';
import { computeEcrc } from './ecrc.ts';

/**
 * 2.7.1 step by step, one bit at a time: a shift register of 32 bits holding all ones; bits go in from
 * bit 0 to bit 7 of each byte, with Type bit 0 (byte 0 bit 0) and EP (byte 2 bit 6) as 1; the register's
 * complement is the result, and its bits go into the digest as table 2-38 says: bit 0 to 7, 1 to 6, …
 * 7 to 0, 8 to 15, … 31 to 24.
 */
function ecrcByTheBook(tlp: Uint8Array): number {
  let register = Array.from({ length: 32 }, () => 1); // [i] is the coefficient of x^i
  const polynomial = [26, 23, 22, 16, 12, 11, 10, 8, 7, 5, 4, 2, 1, 0]; // 04C1_1DB7h
  const value = polynomial.reduce((sum, power) => sum + 2 ** power, 0);
  expect(value).toBe(0x04c11db7);
  tlp.forEach((byte, index) => {
    for (let bit = 0; bit < 8; bit++) {
      const isVariant = (index === 0 && bit === 0) || (index === 2 && bit === 6);
      const input = isVariant ? 1 : (byte >> bit) & 1;
      const feedback = input ^ (register[31] as number);
      register = [0, ...register.slice(0, 31)];
      if (feedback === 1) for (const power of polynomial) (register[power] as number) ^= 1;
    }
  });
  let digest = 0;
  for (let bit = 0; bit < 32; bit++) {
    const digestBit = (bit & ~7) | (7 - (bit & 7));
    if (register[bit] === 0) digest += 2 ** digestBit; // complemented
  }
  return digest;
}

describe('ECRC', () => {
  it('agrees with the bitwise definition', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 3, max: 40 }),
        fc.infiniteStream(fc.nat({ max: 255 })),
        (dws, stream) => {
          const bytes = Uint8Array.from({ length: dws * 4 }, () => stream.next().value as number);
          expect(computeEcrc(bytes, 0, bytes.length)).toBe(ecrcByTheBook(bytes));
        },
      ),
      { numRuns: 300 },
    );
  });

  it('is the CRC-32 of Ethernet over the packet with its variant bits set, low byte first', () => {
    for (const length of [12, 16, 20, 24, 76, 144, 4112]) {
      const bytes = Uint8Array.from({ length }, (_, i) => (i * 151 + 11) & 255);
      const changed = bytes.slice();
      (changed[0] as number) |= 1;
      (changed[2] as number) |= 0x40;
      const expected = Buffer.alloc(4);
      expected.writeUInt32LE(crc32(changed));
      expect(computeEcrc(bytes, 0, length)).toBe(expected.readUInt32BE());
    }
  });

  it('reads its range alone, at any place', () => {
    const packet = Uint8Array.from({ length: 28 }, (_, i) => i * 9);
    const expected = computeEcrc(packet, 0, 28);
    for (let offset = 1; offset < 6; offset++) {
      const bytes = new Uint8Array(64).fill(offset);
      bytes.set(packet, offset);
      expect(computeEcrc(bytes, offset, 28)).toBe(expected);
    }
  });

  it('leaves out bit 0 of Type and EP, and nothing else', () => {
    const packet = Uint8Array.from({ length: 20 }, (_, i) => i * 31);
    const expected = computeEcrc(packet, 0, 20);
    const ignored: number[] = [];
    for (let bit = 0; bit < 160; bit++) {
      const changed = packet.slice();
      changed[bit >> 3] = (changed[bit >> 3] as number) ^ (1 << (bit & 7));
      if (computeEcrc(changed, 0, 20) === expected) ignored.push(bit);
    }
    expect(ignored).toEqual([0, 16 + 6]);
  });
});
