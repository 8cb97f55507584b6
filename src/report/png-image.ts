/** Pixels as PNG (W3C PNG, second edition): 8 bits a colour, RGBA, every row as it is. */
import { crc32, deflate } from 'node:zlib';
import { setImmediate } from 'node:timers/promises';
import { promisify } from 'node:util';

const SIGNATURE = Uint8Array.of(0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a);
const HEADER_BYTES = 13;
const BITS = 8;
const COLOUR_RGBA = 6;
/** Filter type of a row (9.2): none. */
const FILTER_NONE = 0;

/** Copied before others have their turn. */
const BYTES_AT_ONCE = 2 ** 20;

const compress = promisify(deflate);

/**
 * Four bytes a pixel (red, green, blue, alpha), rows from the top without gaps. At least one pixel.
 * The event loop is not held up by it.
 */
export async function encodePng(
  width: number,
  height: number,
  rgba: Uint8Array,
): Promise<Uint8Array> {
  if (width < 1 || height < 1 || rgba.length !== 4 * width * height) {
    throw new RangeError(`${rgba.length} bytes are no picture of ${width} x ${height}`);
  }
  const header = Buffer.alloc(HEADER_BYTES);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.set([BITS, COLOUR_RGBA], 8);
  const rowBytes = 4 * width;
  const rowsAtOnce = Math.ceil(BYTES_AT_ONCE / rowBytes);
  const rows = Buffer.alloc((rowBytes + 1) * height, FILTER_NONE);
  for (let row = 0; row < height; row++) {
    if (row > 0 && row % rowsAtOnce === 0) await setImmediate();
    rows.set(rgba.subarray(row * rowBytes, (row + 1) * rowBytes), row * (rowBytes + 1) + 1);
  }
  return Buffer.concat([
    SIGNATURE,
    ...chunk('IHDR', header),
    ...chunk('IDAT', await compress(rows)),
    ...chunk('IEND', Buffer.alloc(0)),
  ]);
}

/** Length, type, data, and the CRC of type and data (5.3). */
function chunk(type: string, data: Uint8Array): readonly Uint8Array[] {
  const length = Buffer.alloc(4);
  length.writeUInt32BE(data.length);
  const name = Buffer.from(type, 'latin1');
  const check = Buffer.alloc(4);
  check.writeUInt32BE(crc32(data, crc32(name)));
  return [length, name, data, check];
}
