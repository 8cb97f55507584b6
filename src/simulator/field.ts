/** Fields of a CSV row as numbers and names, with messages that name place, column and way out. */
import { assertDefined } from '#base/assert';
import { csvError, type CsvField, type CsvRow } from './csv.ts';
import { WHOLE_GPU } from './demand.ts';

/** The field of a column that the header is known to have. */
export function requiredField(row: CsvRow, column: string): CsvField {
  return assertDefined(row.field(column), 'a column that is required');
}

/**
 * A whole number from 0 on. `unit` says what one is, for the message: `milli CPUs: 1500 is 1.5 CPUs`.
 * Throws `invalid_argument`.
 */
export function wholeNumber(file: string, column: string, field: CsvField, unit: string): number {
  const { text } = field;
  if (text === '') throw csvError(file, field, `${column} is empty; it is in ${unit}`);
  const value = Number(text);
  if (/^-\d/.test(text)) throw csvError(file, field, `${column} is negative: ${text}`);
  if (!/^\d+(\.0+)?$/.test(text) || !Number.isSafeInteger(value)) {
    const shown = JSON.stringify(text);
    throw csvError(file, field, `${column} ${shown} is no whole number; it is in ${unit}`);
  }
  return value;
}

/** A number of whole GPUs; one that counts thousandths is refused. Throws `invalid_argument`. */
export function wholeGpus(file: string, column: string, field: CsvField): number {
  const gpus = wholeNumber(file, column, field, 'whole GPUs');
  if (gpus < WHOLE_GPU) return gpus;
  throw csvError(file, field, `${column} ${gpus} is in whole GPUs, not in thousandths`);
}

/** Keeps names apart: throws `invalid_argument` at the second use of one, naming the first. */
export class UniqueNames {
  readonly #lines = new Map<string, number>();
  readonly #file: string;
  readonly #column: string;

  constructor(file: string, column: string) {
    this.#file = file;
    this.#column = column;
  }

  take(field: CsvField): string {
    const { text, line } = field;
    if (text === '') throw csvError(this.#file, field, `${this.#column} is empty`);
    const first = this.#lines.get(text);
    if (first !== undefined) {
      throw csvError(
        this.#file,
        field,
        `${this.#column} ${text} was used before, in line ${first}`,
      );
    }
    this.#lines.set(text, line);
    return text;
  }
}
