/**
 * What the CLI prints, and how it ends. Results go to stdout, everything else to stderr. Exit status:
 * 0 done, 1 an operator's error, 2 wrong usage.
 */
import type { Writable } from 'node:stream';
import { DxpuError } from '#base/errors';

export const OUTPUT_FORMATS = ['text', 'json'] as const;
export type OutputFormat = (typeof OUTPUT_FORMATS)[number];

/** Wrong usage: what commander would say, from our own checks of arguments. */
export class UsageError extends Error {
  override name = 'UsageError';
}

export function printLine(line: string): void {
  process.stdout.write(`${line}\n`);
}

export function printJson(value: unknown): void {
  printLine(JSON.stringify(value));
}

export function printNote(line: string): void {
  process.stderr.write(`${line}\n`);
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
export function formatTable(
  header: readonly string[],
  rows: readonly (readonly (string | number)[])[],
): string {
  const widths = header.map((title, column) =>
    Math.max(title.length, ...rows.map((row) => String(row[column] ?? '').length)),
  );
  const line = (cells: readonly (string | number)[]): string =>
    cells
      .map((cell, column) => {
        const width = widths[column] ?? 0;
        const text = String(cell);
        return typeof cell === 'number' ? text.padStart(width) : text.padEnd(width);
      })
      .join('  ')
      .trimEnd();
  return [line(header), ...rows.map((row) => line(row))].join('\n');
}

/** The object an error becomes with `--output json`, and on the control socket. */
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

/** Reports an error on stderr, one message, no stack unless asked for. */
export function reportError(thrown: unknown, format: OutputFormat, debug: boolean): void {
  if (format === 'json')
    process.stderr.write(`${JSON.stringify({ error: errorObject(thrown) })}\n`);
  else process.stderr.write(`dxpu: ${errorObject(thrown).message}\n`);
  if (debug) {
    for (let cause: unknown = thrown; cause instanceof Error; cause = cause.cause) {
      process.stderr.write(`${cause.stack ?? cause.message}\n`);
    }
  }
}
