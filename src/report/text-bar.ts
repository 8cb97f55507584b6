/** Bars of block characters, an eighth of a column fine. */

const EIGHTHS = ['', '▏', '▎', '▍', '▌', '▋', '▊', '▉'] as const;
const FULL = '█';

/**
 * `value` of `most` as a bar of at most `width` columns; anything above 0 shows, anything above `most`
 * is cut off with `›`. Empty for 0 and below, and where `most` is not above 0.
 */
export function bar(value: number, most: number, width: number): string {
  if (!(value > 0 && most > 0)) return '';
  if (value > most) return `${FULL.repeat(Math.max(0, width - 1))}›`;
  const eighths = Math.max(1, Math.round((value / most) * width * 8));
  return FULL.repeat(Math.floor(eighths / 8)) + (EIGHTHS[eighths % 8] ?? '');
}
