/**
 * What the CLI prints, and how it ends. Results go to stdout, everything else to stderr. Exit status:
 * 0 done, 1 an operator's error, 2 wrong usage.
 */
import type { Writable } from 'node:stream';
import { DxpuError } from '#base/errors';
import { plainText } from '#report/text-width';

export const OUTPUT_FORMATS = ['table', 'json', 'yaml'] as const;
export type OutputFormat = (typeof OUTPUT_FORMATS)[number];
/** What machines read. */
export type DataFormat = Exclude<OutputFormat, 'table'>;

/** `undefined` for none of them; `text` is another word for `table`. */
export function parseOutputFormat(word: string | undefined): OutputFormat | undefined {
  return word === 'text' ? 'table' : OUTPUT_FORMATS.find((known) => known === word);
}

/** Wrong usage: what commander would say, from our own checks of arguments. */
export class UsageError extends Error {
  override name = 'UsageError';
}

export function printLine(line: string): void {
  process.stdout.write(`${line}\n`);
}

/** A result as one line of JSON or as a YAML document. */
export async function printData(value: unknown, format: DataFormat): Promise<void> {
  if (format === 'json') printLine(jsonText(value));
  else process.stdout.write(await yamlOf(value));
}

/** What JSON and YAML let stand in a text and yet could act on a terminal. */
const UNSAFE = /[\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/;
const ALL_UNSAFE = new RegExp(UNSAFE, 'g');

function escaped(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
}

/**
 * YAML in block style, with nothing in it that could act on a terminal. What JSON leaves out
 * (`undefined`) is left out here too.
 */
export async function yamlOf(value: unknown): Promise<string> {
  // Slow to load, and rarely asked for.
  const { Document, visit } = await import('yaml');
  const document = new Document(JSON.parse(JSON.stringify(value)));
  visit(document, {
    Scalar: (_, scalar) => {
      // Only there are escapes.
      const isUnsafe = typeof scalar.value === 'string' && UNSAFE.test(scalar.value);
      if (isUnsafe) scalar.type = 'QUOTE_DOUBLE';
    },
  });
  return document.toString({ lineWidth: 0 }).replaceAll(ALL_UNSAFE, escaped);
}

/** One line of JSON with nothing in it that could act on a terminal: such characters are escaped. */
export function jsonText(value: unknown): string {
  return JSON.stringify(value).replaceAll(ALL_UNSAFE, escaped);
}

/** Lines for people; what is named in them may hold anything, so that it is made harmless. */
export function printNote(text: string): void {
  for (const line of text.split('\n')) process.stderr.write(`${plainText(line)}\n`);
}

const FULL_CHARS = 1 << 16;

/** Lines by the thousand, for a reader that may be slow: `flush` waits until it has taken them. */
export class LineWriter {
  readonly #stream: Writable;
  #text = '';

  constructor(stream: Writable) {
    this.#stream = stream;
  }

  line(text: string): void {
    this.#text += `${text}\n`;
  }

  /** Time to `flush`. */
  get isFull(): boolean {
    return this.#text.length >= FULL_CHARS;
  }

  flush(): Promise<void> {
    if (this.#text === '') return Promise.resolve();
    const text = this.#text;
    this.#text = '';
    return new Promise((resolve, reject) => {
      this.#stream.write(text, (error) => {
        if (error === null || error === undefined) resolve();
        else reject(error);
      });
    });
  }
}

/** Columns padded to the widest cell; numbers to the right. Plain text, so that it greps well. */
export function formatTable(header: readonly string[], rows: readonly (readonly Cell[])[]): string {
  const table = new GrowingTable(header);
  return table.lines(rows).join('\n');
}

export type Cell = string | number;

/** A table whose rows come in portions: a column is as wide as all it has held so far. */
export class GrowingTable {
  readonly #header: readonly string[];
  readonly #widths: number[];
  #isBegun = false;

  /** `least` are widths to begin with, where what comes later is known to be wider. */
  constructor(header: readonly string[], least: readonly number[] = []) {
    this.#header = header;
    this.#widths = header.map((title, column) => Math.max(title.length, least[column] ?? 0));
  }

  /** The next lines; the first portion has the header, be it empty or not. */
  lines(rows: readonly (readonly Cell[])[]): string[] {
    for (const [column, width] of this.#widths.entries()) {
      let widest = width;
      for (const row of rows) widest = Math.max(widest, String(row[column] ?? '').length);
      this.#widths[column] = widest;
    }
    const header = this.#isBegun ? [] : [this.#line(this.#header)];
    this.#isBegun = true;
    return [...header, ...rows.map((row) => this.#line(row))];
  }

  #line(cells: readonly Cell[]): string {
    return cells
      .map((cell, column) => {
        const width = this.#widths[column] ?? 0;
        const text = String(cell);
        return typeof cell === 'number' ? text.padStart(width) : text.padEnd(width);
      })
      .join('  ')
      .trimEnd();
  }
}

/** The object an error becomes with `--output json` or `yaml`, and on the control socket. */
export interface ErrorObject {
  readonly code: string;
  readonly message: string;
  readonly details: Readonly<Record<string, unknown>>;
}

export function errorObject(thrown: unknown): ErrorObject {
  if (thrown instanceof UsageError) {
    return { code: 'invalid_argument', message: thrown.message, details: { usage: true } };
  }
  const error = DxpuError.from(thrown);
  return { code: error.code, message: error.message, details: error.details };
}

/**
 * Reports an error on stderr, one message, no stack unless asked for. For machines it is one line of
 * JSON, which is YAML too.
 */
export function reportError(thrown: unknown, format: OutputFormat, debug: boolean): void {
  if (format !== 'table') process.stderr.write(`${jsonText({ error: errorObject(thrown) })}\n`);
  else printNote(`dxpu: ${errorObject(thrown).message}`);
  if (debug) {
    for (let cause: unknown = thrown; cause instanceof Error; cause = cause.cause) {
      process.stderr.write(`${cause.stack ?? cause.message}\n`);
    }
  }
}
