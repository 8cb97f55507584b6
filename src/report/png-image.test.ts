import { crc32, inflateSync } from 'node:zlib';
import { expect, it } from 'vitest';
import { fc } from '#testkit/properties';
import { encodePng } from './png-image.ts';

interface Chunk {
  readonly type: string;
  readonly data: Buffer;
}

/** The chunks of a PNG, their lengths and CRCs checked. */
function chunksOf(png: Buffer): Chunk[] {
  expect(png.subarray(0, 8).toString('latin1')).toBe('\x89PNG\r\n\x1a\n');
  const chunks: Chunk[] = [];
  for (let at = 8; at < png.length; ) {
    const length = png.readUInt32BE(at);
    const body = png.subarray(at + 4, at + 8 + length);
    expect(png.readUInt32BE(at + 8 + length)).toBe(crc32(body));
    chunks.push({ type: body.toString('latin1', 0, 4), data: body.subarray(4) });
    at += 12 + length;
  }
  return chunks;
}

it('one pixel, all but the compressed bytes by hand', async () => {
  const png = Buffer.from(await encodePng(1, 1, Uint8Array.of(1, 2, 3, 4)));
  const [header, data, end] = chunksOf(png);
  // Width 1, height 1, 8 bits, RGBA, deflate, adaptive filters, not interlaced.
  expect([header?.type, header?.data.toString('hex')]).toEqual([
    'IHDR',
    '00000001000000010806000000',
  ]);
  expect(data?.type).toBe('IDAT');
  expect([...inflateSync(data!.data)]).toEqual([0, 1, 2, 3, 4]);
  expect([end?.type, end?.data.length]).toEqual(['IEND', 0]);
  // The CRC of "IEND" alone is known from every PNG file there is.
  expect(png.subarray(-12).toString('hex')).toBe('0000000049454e44ae426082');
});

it('any picture comes back, row by row', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 1, max: 40 }),
      fc.integer({ min: 1, max: 40 }),
      fc.integer({ min: 0, max: 255 }),
      async (width, height, seed) => {
        const rgba = Uint8Array.from({ length: 4 * width * height }, (_, i) => (i * seed) & 255);
        const chunks = chunksOf(Buffer.from(await encodePng(width, height, rgba)));
        const rows = inflateSync(chunks[1]!.data);
        expect(rows.length).toBe(height * (1 + 4 * width));
        for (let row = 0; row < height; row++) {
          const at = row * (1 + 4 * width);
          expect(rows[at]).toBe(0);
          const expected = rgba.subarray(4 * width * row, 4 * width * (row + 1));
          expect(Buffer.compare(rows.subarray(at + 1, at + 1 + 4 * width), expected)).toBe(0);
        }
      },
    ),
    { numRuns: 30 },
  );
});

it.each([
  [0, 1, 0],
  [1, 0, 0],
  [2, 2, 15],
])('%i x %i with %i bytes is no picture', async (width, height, bytes) => {
  await expect(encodePng(width, height, new Uint8Array(bytes))).rejects.toThrow(/no picture/);
});
