/**
 * Strict reading of CSV (RFC 4180: commas, quoted fields, doubled quotes), with the place of every
 * field, so that a message can name it. A byte order mark and CRLF are read; anything in doubt is
 * refused, never guessed.
 */
import { DxpuError } from '#base/errors';

/** A field and where it starts: line and column of the file, from 1, in characters. */
export interface CsvField {
  readonly text: string;
  readonly line: number;
  readonly column: number;
}

export interface CsvColumns {
  readonly required: readonly string[];
  readonly optional?: readonly string[];
}

/** One record under its header. `field` of an optional column that the file lacks is `undefined`. */
export interface CsvRow {
  field(column: string): CsvField | undefined;
}

/** What is wrong, with `FILE:LINE:COLUMN` in front. */
export function csvError(
  file: string,
  at: { readonly line: number; readonly column: number },
  what: string,
): DxpuError {
  const { line, column } = at;
  return new DxpuError('invalid_argument', `${file}:${line}:${column}: ${what}`, {
    details: { file, line, column },
  });
}

/**
 * The rows of `text`, whose header must name every required column and no column that is neither
 * required nor optional. Throws `invalid_argument` naming file, line and column.
 */
export function readCsv(file: string, text: string, columns: CsvColumns): CsvRow[] {
  return readRows(file, text, columns, (row) => row);
}

/** The same, each row made into what is kept of it before the next is read: for lists of a million rows. */
export function readRows<T>(
  file: string,
  text: string,
  columns: CsvColumns,
  read: (row: CsvRow) => T,
): T[] {
  const records = splitRecords(file, text);
  const first = records.next();
  if (first.done === true) {
    const names = columns.required.join(',');
    throw csvError(file, { line: 1, column: 1 }, `the file is empty: it needs a header, ${names}`);
  }
  const header = first.value;
  const index = readHeader(file, header, columns);
  const rows: T[] = [];
  for (const record of records) {
    checkWidth(file, header, record);
    rows.push(
      read({
        field: (column) => {
          const at = index.get(column);
          return at === undefined ? undefined : record[at];
        },
      }),
    );
  }
  if (rows.length === 0) {
    const at = { line: (header[0]?.line ?? 1) + 1, column: 1 };
    throw csvError(file, at, 'there is a header and nothing below it');
  }
  return rows;
}

function checkWidth(file: string, header: readonly CsvField[], record: readonly CsvField[]): void {
  const first = record[0];
  if (record.length === header.length || first === undefined) return;
  const extra = record[header.length];
  const what =
    extra === undefined
      ? `${record.length} of ${header.length} fields: ${header[record.length]?.text} is missing`
      : `${record.length} fields under a header of ${header.length}; quote a field that has commas`;
  throw csvError(file, extra ?? record.at(-1) ?? first, what);
}

function readHeader(
  file: string,
  header: readonly CsvField[],
  { required, optional = [] }: CsvColumns,
): Map<string, number> {
  const index = new Map<string, number>();
  for (const [at, field] of header.entries()) {
    if (index.has(field.text)) throw csvError(file, field, `column ${field.text} appears twice`);
    if (!required.includes(field.text) && !optional.includes(field.text)) {
      const known = [...required, ...optional].join(', ');
      throw csvError(file, field, `unknown column ${JSON.stringify(field.text)}; known: ${known}`);
    }
    index.set(field.text, at);
  }
  const missing = required.find((name) => !index.has(name));
  if (missing !== undefined) {
    const last = header.at(-1) ?? { line: 1, column: 1 };
    throw csvError(file, last, `column ${missing} is missing; needed: ${required.join(', ')}`);
  }
  return index;
}

function* splitRecords(file: string, text: string): Generator<CsvField[]> {
  /** Empty lines, which belong to no record if nothing but them follows. */
  let blank: CsvField[][] = [];
  let record: CsvField[] = [];
  let at = text.startsWith('\uFEFF') ? 1 : 0;
  let lineStart = at;
  let line = 1;
  while (at < text.length) {
    const start = { line, column: at - lineStart + 1 };
    let value: string;
    if (text[at] === '"') {
      const closed = quotedEnd(text, at);
      if (closed < 0) throw csvError(file, start, 'the quote that starts here is never closed');
      value = text.slice(at + 1, closed).replaceAll('""', '"');
      for (let k = at; k < closed; k++) {
        if (text[k] === '\n') {
          line += 1;
          lineStart = k + 1;
        }
      }
      at = closed + 1;
    } else {
      const end = fieldEnd(text, at);
      value = text.slice(at, end);
      const quote = value.indexOf('"');
      if (quote >= 0) {
        const place = { line, column: start.column + quote };
        throw csvError(
          file,
          place,
          'a quote inside a field: quote the whole field, double the quote',
        );
      }
      at = end;
    }
    record.push({ text: value, ...start });
    if (text[at] === ',') {
      at += 1;
      // A comma at the very end of the text still opens a field.
      if (at === text.length) record.push({ text: '', line, column: at - lineStart + 1 });
      continue;
    }
    if (text[at] === '\r' && text[at + 1] === '\n') at += 1;
    if (at < text.length && text[at] !== '\n') {
      const place = { line, column: at - lineStart + 1 };
      throw csvError(file, place, 'a comma or the end of the line was expected after the quote');
    }
    if (isBlank(record)) blank.push(record);
    else {
      yield* blank;
      yield record;
      blank = [];
    }
    record = [];
    at += 1;
    line += 1;
    lineStart = at;
  }
  if (record.length > 0 && !isBlank(record)) {
    yield* blank;
    yield record;
  }
}

const isBlank = (record: readonly CsvField[]): boolean =>
  record.length === 1 && record[0]?.text === '';

/** Where the quoted field that opens at `at` has its closing quote; -1 if nowhere. */
function quotedEnd(text: string, at: number): number {
  let end = text.indexOf('"', at + 1);
  while (end >= 0 && text[end + 1] === '"') end = text.indexOf('"', end + 2);
  return end;
}

function fieldEnd(text: string, from: number): number {
  let end = from;
  while (end < text.length) {
    const char = text[end];
    if (char === ',' || char === '\n') return end;
    if (char === '\r' && text[end + 1] === '\n') return end;
    end += 1;
  }
  return end;
}
