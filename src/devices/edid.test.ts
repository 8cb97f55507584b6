import { describe, expect, it } from 'vitest';
import { cvtReducedTiming, makeEdid } from './edid.ts';

describe('CVT reduced blanking', () => {
  // As the VESA generator has them: 1024x768R 56.00 MHz 1024 1072 1104 1184, 768 771 775 790;
  // 1280x1024R 91.00 1280 1328 1360 1440, 1024 1027 1034 1054;
  // 1680x1050R 119.00 1680 1728 1760 1840, 1050 1053 1059 1080;
  // 1920x1080R 138.50 1920 1968 2000 2080, 1080 1083 1088 1111.
  it.each([
    [1024, 768, 5600, 1184, 790, 4],
    [1280, 1024, 9100, 1440, 1054, 7],
    [1680, 1050, 11_900, 1840, 1080, 6],
    [1920, 1080, 13_850, 2080, 1111, 5],
  ])('of %i x %i', (width, height, clock10kHz, horizontalTotal, verticalTotal, verticalSync) => {
    expect(cvtReducedTiming(width, height)).toEqual({
      clock10kHz,
      horizontalTotal,
      verticalTotal,
      verticalSync,
    });
  });
});

it('the block is as E-EDID 1.4 lays it out', () => {
  const edid = Buffer.from(makeEdid({ width: 1024, height: 768, name: 'virtio-gpu' }));
  const lines = edid.toString('hex').match(/.{32}/g);
  expect(lines).toEqual([
    // Header; D X P: 4 << 10 | 24 << 5 | 16 = 1310h; product 1; serial 0.
    '00ffffffffffff001310010000000000',
    // No week, model year 2026 − 1990 = 24h; 1.4; digital, 8 bits, DisplayPort; 27 cm (1024 × 25.4 ÷ 96
    // = 271 mm) by 20 cm (203 mm); gamma 2.2; sRGB, native mode first; sRGB primaries.
    'ff240104a51b147806ee91a3544c9926',
    // The rest of them; 640 × 480, 800 × 600, 1024 × 768 at 60 Hz; no standard timings.
    '0f505421080001010101010101010101',
    // 56.00 MHz = 5600 = 15e0h; 1024 = 400h with 160 = a0h blank, 768 = 300h with 22 = 16h blank; front
    // porch 48, sync 32; 3 and 4 lines; 271 mm = 10fh by 203 mm = cbh; digital, + and −.
    '010101010101e01500a0400016303020',
    '34000fcb1000001a000000fc00766972',
    // "virtio-gpu", a line feed, spaces; the third descriptor is unused.
    '74696f2d6770750a2020000000100000',
    // The fourth descriptor is at 6ch; its tag, three bytes on, ends this line.
    '00000000000000000000000000000010',
    `${'00'.repeat(15)}${checksum(edid)}`,
  ]);
});

/** What makes all 128 bytes add up to a multiple of 256. */
function checksum(edid: Buffer): string {
  let sum = 0;
  for (const byte of edid.subarray(0, 127)) sum += byte;
  return ((256 - (sum % 256)) % 256).toString(16).padStart(2, '0');
}
