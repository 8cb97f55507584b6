/** The picture that `guest/fbdraw.c` draws, and pictures of PNG files to compare it with. */
import { inflateSync } from 'node:zlib';

export interface Picture {
  readonly width: number;
  readonly height: number;
  /** Three bytes a pixel: red, green, blue. */
  readonly rgb: Uint8Array;
}

/** As `fbdraw` says: red 3x + y + seed, green x + 5y, blue x xor y, modulo 256. */
export function drawnPicture(width: number, height: number, seed: number): Picture {
  const rgb = new Uint8Array(width * height * 3);
  let at = 0;
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      rgb[at++] = 3 * x + y + seed;
      rgb[at++] = x + 5 * y;
      rgb[at++] = x ^ y;
    }
  }
  return { width, height, rgb };
}

/** Where they differ first, in words; `undefined` where they are the same, pixel for pixel. */
export function difference(a: Picture, b: Picture): string | undefined {
  if (a.width !== b.width || a.height !== b.height) {
    return `${a.width} x ${a.height} is not ${b.width} x ${b.height}`;
  }
  const at = a.rgb.findIndex((value, index) => value !== b.rgb[index]);
  if (at < 0) return undefined;
  const pixel = Math.floor(at / 3);
  const colour = (one: Picture): string =>
    [...one.rgb.subarray(pixel * 3, pixel * 3 + 3)].join(' ');
  return `pixel ${pixel % a.width}, ${Math.floor(pixel / a.width)} is ${colour(a)}, not ${colour(b)}`;
}

const SIGNATURE_BYTES = 8;
const RGBA = 6;

/** Of a PNG with 8 bits a channel, RGBA, lines unfiltered (W3C PNG, 5 and 9), as boxes write them. */
export function pictureOfPng(png: Buffer): Picture {
  let width = 0;
  let height = 0;
  const data: Buffer[] = [];
  for (let at = SIGNATURE_BYTES; at < png.length; ) {
    const length = png.readUInt32BE(at);
    const kind = png.toString('latin1', at + 4, at + 8);
    const chunk = png.subarray(at + 8, at + 8 + length);
    if (kind === 'IHDR') {
      width = chunk.readUInt32BE(0);
      height = chunk.readUInt32BE(4);
      if (chunk[8] !== 8 || chunk[9] !== RGBA) throw new Error('not 8 bits RGBA');
    }
    if (kind === 'IDAT') data.push(chunk);
    at += length + 12;
  }
  const lines = inflateSync(Buffer.concat(data));
  const rgb = new Uint8Array(width * height * 3);
  let to = 0;
  for (let y = 0; y < height; y++) {
    const line = y * (1 + width * 4);
    if (lines[line] !== 0) throw new Error(`line ${y} is filtered`);
    for (let x = 0; x < width; x++) {
      for (let c = 0; c < 3; c++) rgb[to++] = lines[line + 1 + x * 4 + c] ?? 0;
    }
  }
  return { width, height, rgb };
}
