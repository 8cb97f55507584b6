/**
 * Lines of CSV (RFC 4180). Characters that could act on a terminal are `�`; a text that a spreadsheet
 * would take for a formula has a `'` before it, a number never.
 */
import { plainText } from './text-width.ts';

/** Nothing is an empty cell. */
export type CsvCell = string | number | null | undefined;

/** One line, without its end. */
export function csvLine(cells: readonly CsvCell[]): string {
  return cells.map(quoted).join(',');
}

/** Some take the full-width signs too, and pass over spaces. */
const FORMULA = /^\s*[=+\-@\uff1d\uff0b\uff0d\uff20]/;

function quoted(cell: CsvCell): string {
  const plain = cell === null || cell === undefined ? '' : plainText(String(cell));
  const text = typeof cell === 'string' && FORMULA.test(plain) ? `'${plain}` : plain;
  return /[",\r\n]|^\s|\s$/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
