/** Lines of CSV (RFC 4180). Characters that could act on a terminal are `�`. */
import { plainText } from './text-width.ts';

/** Nothing is an empty cell. */
export type CsvCell = string | number | null | undefined;

/** One line, without its end. */
export function csvLine(cells: readonly CsvCell[]): string {
  return cells.map(quoted).join(',');
}

function quoted(cell: CsvCell): string {
  const text = cell === null || cell === undefined ? '' : plainText(String(cell));
  return /[",\r\n]|^\s|\s$/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
