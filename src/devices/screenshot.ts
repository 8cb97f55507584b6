/** What a display shows, and the pixel formats it is made from. */

export interface Screenshot {
  /** In pixels. */
  readonly width: number;
  readonly height: number;
  /** Four bytes a pixel: red, green, blue, and 255. Rows from the top, without gaps. */
  readonly rgba: Uint8Array;
}

/** Where the components of a four-byte pixel are: byte offsets from its first byte. */
export interface PixelLayout {
  readonly red: number;
  readonly green: number;
  readonly blue: number;
  /** `undefined` where that byte has no meaning. */
  readonly alpha?: number;
}

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
  const { red, green, blue } = layout;
  let to = 0;
  for (let row = 0; row < height; row++) {
    let from = offset + row * strideBytes;
    for (let column = 0; column < width; column++) {
      rgba[to] = source[from + red] as number;
      rgba[to + 1] = source[from + green] as number;
      rgba[to + 2] = source[from + blue] as number;
      rgba[to + 3] = 255;
      from += 4;
      to += 4;
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
