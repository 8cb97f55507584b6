/** What a display shows, and the pixel formats it is made from. */

export interface Screenshot {
  /** In pixels. */
  readonly width: number;
  readonly height: number;
  /** Four bytes a pixel: red, green, blue, and 255. Rows from the top, without gaps. */
  readonly rgba: Uint8Array;
}

/** More than any display has: pictures are made while everybody else waits. */
export const MAX_SHOWN_PIXELS = 2 ** 24;

/** Where the components of a four-byte pixel are: byte offsets from its first byte. */
export interface PixelLayout {
  readonly red: number;
  readonly green: number;
  readonly blue: number;
  /** `undefined` where that byte has no meaning. */
  readonly alpha?: number;
}

const OPAQUE = 0xff00_0000;

/**
 * Pixels of four bytes as opaque RGBA: `width` × `height` of them, the first at byte `offset`, rows
 * `strideBytes` apart. All of them must lie in `source`.
 */
export function opaqueRgba(
  source: Uint8Array,
  offset: number,
  strideBytes: number,
  width: number,
  height: number,
  layout: PixelLayout,
): Uint8Array {
  const rgba = new Uint8Array(4 * width * height);
  // Words, for a picture is large and who asks for one is waited for.
  const from = new DataView(source.buffer, source.byteOffset, source.byteLength);
  const to = new DataView(rgba.buffer);
  const red = 8 * layout.red;
  const green = 8 * layout.green;
  const blue = 8 * layout.blue;
  let at = 0;
  for (let row = 0; row < height; row++) {
    const start = offset + row * strideBytes;
    const end = start + 4 * width;
    for (let pixel = start; pixel < end; pixel += 4) {
      const word = from.getUint32(pixel, true);
      const colours =
        ((word >>> red) & 255) | (((word >>> green) & 255) << 8) | (((word >>> blue) & 255) << 16);
      to.setUint32(at, colours | OPAQUE, true);
      at += 4;
    }
  }
  return rgba;
}

/** Little-endian pixels of 5 bits red, 6 green, 5 blue, red topmost; otherwise as `opaqueRgba`. */
export function opaqueRgbaOf565(
  source: Uint8Array,
  offset: number,
  strideBytes: number,
  width: number,
  height: number,
): Uint8Array {
  const rgba = new Uint8Array(4 * width * height);
  let to = 0;
  for (let row = 0; row < height; row++) {
    let from = offset + row * strideBytes;
    for (let column = 0; column < width; column++) {
      const pixel = (source[from] as number) | ((source[from + 1] as number) << 8);
      const red = pixel >> 11;
      const green = (pixel >> 5) & 63;
      const blue = pixel & 31;
      // The top bits again below, so that all ones are 255.
      rgba[to] = (red << 3) | (red >> 2);
      rgba[to + 1] = (green << 2) | (green >> 4);
      rgba[to + 2] = (blue << 3) | (blue >> 2);
      rgba[to + 3] = 255;
      from += 2;
      to += 4;
    }
  }
  return rgba;
}
