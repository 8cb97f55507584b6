/** A plot as PNG, on white, twice the size of its units. */
import { Resvg } from '@resvg/resvg-js';
import { FONT_FAMILY } from './palette.ts';

const SCALE = 2;

/**
 * PNG of an SVG picture. Text needs a font of the system (DejaVu Sans, Liberation Sans, Noto Sans or
 * Arial); without any the picture has none.
 */
export function pngOf(svg: string): Uint8Array {
  const resvg = new Resvg(svg, {
    fitTo: { mode: 'zoom', value: SCALE },
    font: {
      loadSystemFonts: true,
      defaultFontFamily: FONT_FAMILY.split(',')[0]?.replaceAll("'", '') ?? '',
    },
  });
  return resvg.render().asPng();
}
