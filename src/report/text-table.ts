/**
 * Tables in text that fit a terminal: columns give way (their cells are wrapped, or lose their middle),
 * then those that may be missed are left out, before anything runs over the edge; where even that is
 * too wide, each row becomes a block of lines.
 */
import { displayWidth, padEnd, padStart, paragraph, withoutMiddle, wrap } from './text-width.ts';

export interface TextColumn {
  readonly title: string;
  /** Numbers stand to the right. */
  readonly align?: 'left' | 'right';
  /** What becomes of cells that are too long; without it the column keeps its width. */
  readonly squeeze?: 'wrap' | 'middle';
  /** Columns it keeps when squeezed; 12 if left out. */
  readonly least?: number;
  /** Left out where there is no room; the last one first. */
  readonly optional?: boolean;
}

/** Narrower terminals are written to as if they were this wide. */
export const LEAST_WIDTH = 40;
const GAP = '  ';
const USUAL_LEAST = 12;

/**
 * The lines of a table, none wider than `width` (or `LEAST_WIDTH`) and none ending in spaces; the first
 * is the header unless all titles are empty. Rows are as long as `columns`; cells are plain text.
 */
export function textTable(
  columns: readonly TextColumn[],
  rows: readonly (readonly string[])[],
  width: number,
): string[] {
  const room = Math.max(LEAST_WIDTH, width);
  const natural = columns.map(({ title }, index) =>
    Math.max(displayWidth(title), ...rows.map((row) => displayWidth(row[index] ?? ''))),
  );
  const widths = squeezed(columns, natural, room);
  if (widths === undefined) {
    const missed = columns.findLastIndex(({ optional }) => optional === true);
    if (missed < 0) return rows.flatMap((row) => block(columns, row, room));
    return textTable(
      columns.toSpliced(missed, 1),
      rows.map((row) => row.toSpliced(missed, 1)),
      room,
    );
  }
  const titles = columns.map(({ title }) => title);
  const header = titles.every((title) => title === '') ? [] : lineOf(columns, titles, widths);
  return [...header, ...rows.flatMap((row) => lineOf(columns, row, widths))];
}

/** Widths that fit, or nothing. The widest column that can gives way first, down to the next widest. */
function squeezed(
  columns: readonly TextColumn[],
  natural: readonly number[],
  room: number,
): number[] | undefined {
  const widths = [...natural];
  const gaps = GAP.length * Math.max(0, columns.length - 1);
  const least = columns.map(({ title, squeeze, least: own }, index) => {
    const all = natural[index] ?? 0;
    if (squeeze === undefined) return all;
    return Math.min(all, Math.max(own ?? USUAL_LEAST, displayWidth(title)));
  });
  let over = widths.reduce((sum, one) => sum + one, gaps) - room;
  while (over > 0) {
    let widest = -1;
    for (const [index, one] of widths.entries()) {
      if (one > (least[index] ?? 0) && one > (widths[widest] ?? 0)) widest = index;
    }
    if (widest < 0) return undefined;
    widths[widest] = (widths[widest] ?? 0) - 1;
    over -= 1;
  }
  return widths;
}

/** One row, as many lines as its tallest cell. */
function lineOf(
  columns: readonly TextColumn[],
  cells: readonly string[],
  widths: readonly number[],
): string[] {
  const wrapped = cells.map((cell, index) => {
    const width = widths[index] ?? 0;
    if (displayWidth(cell) <= width) return [cell];
    return columns[index]?.squeeze === 'middle' ? [withoutMiddle(cell, width)] : wrap(cell, width);
  });
  const height = Math.max(1, ...wrapped.map((lines) => lines.length));
  return Array.from({ length: height }, (_, at) =>
    columns
      .map(({ align }, index) => {
        const text = wrapped[index]?.[at] ?? '';
        const width = widths[index] ?? 0;
        return align === 'right' ? padStart(text, width) : padEnd(text, width);
      })
      .join(GAP)
      .trimEnd(),
  );
}

/** A row on lines of its own: the first cell, and below it each other behind its title. */
function block(columns: readonly TextColumn[], row: readonly string[], room: number): string[] {
  const [first = '', ...others] = row;
  const titles = columns.slice(1).map(({ title }) => title);
  const widest = Math.max(0, ...titles.map(displayWidth));
  const below = others.flatMap((cell, index) => {
    if (cell === '') return [];
    const title = titles[index] ?? '';
    if (widest > room / 2) return paragraph(`${title} ${cell}`.trim(), room, GAP, GAP + GAP);
    return paragraph(
      cell,
      room,
      `${GAP}${padEnd(title, widest)}${GAP}`,
      ' '.repeat(widest + 2 * GAP.length),
    );
  });
  const head = columns[0]?.squeeze === 'middle' ? [withoutMiddle(first, room)] : wrap(first, room);
  return [...head, ...below].map((line) => line.trimEnd());
}
