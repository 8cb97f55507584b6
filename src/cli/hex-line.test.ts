import { describe, expect, it } from 'vitest';
import { bytesOfHexLine, listingTool } from './hex-line.ts';

const hexOf = (line: string): string | undefined => {
  const bytes = bytesOfHexLine(line);
  return bytes === undefined ? undefined : Buffer.from(bytes).toString('hex');
};

describe('a line of hexadecimal', () => {
  it.each([
    ['05000001', '05000001'],
    ['0x05000001 0xCA9A5C0F', '05000001ca9a5c0f'],
    ['0x05, 0x00, 0x00, 0x01', '05000001'],
    ['05:00:00:01', '05000001'],
    ['  05 0000\t01  # a comment with zz', '05000001'],
    ['', ''],
    ['# nothing', ''],
  ])('%j is read (regression: 0x before each byte, commas)', (line, hex) => {
    expect(hexOf(line)).toBe(hex);
  });

  it.each(['zz', '0', '050', '05 0 1', '0x', '0x 05', '050x05', '05-00', '05µ00', 'ß'])(
    '%j is not',
    (line) => {
      expect(hexOf(line)).toBeUndefined();
    },
  );

  it('is told from listings', () => {
    expect(listingTool('00000000: 0500 0001 ca9a 5c0f f748 07a4            ........H..')).toBe(
      'xxd',
    );
    expect(listingTool('00000000  05 00 00 01 ca 9a 5c 0f  f7 48 07 a4    |......\\..H..|')).toBe(
      'hexdump',
    );
    expect(listingTool('00000000 0000000f e0001000')).toBeUndefined();
  });
});
