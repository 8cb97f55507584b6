/**
 * An SQLite file from outside, opened to be read: which tables and columns it has, their rows one by
 * one, and SQLite's complaints as errors that name file, table and row.
 *
 * Nothing in the file is trusted: its schema cannot call functions, a table that yields more rows than
 * its bytes could hold is refused, and values may be of any type. Nothing is written beside it: see
 * `sqlite-copy.ts`.
 */
import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import Sqlite from 'better-sqlite3';
import { DxpuError } from '#base/errors';
import type { ReadOptions } from './read-options.ts';
import { breathe } from './read-options.ts';
import type { SqliteCopy } from './sqlite-copy.ts';
import { sqliteCopy } from './sqlite-copy.ts';
import { unreadable } from './unreadable.ts';

/** A value as SQLite stores it; integers beyond 2^53 are rounded. */
export type SqlValue = number | string | Uint8Array | null;

const ROWS_A_TURN = 20_000;
const HEADER_BYTES = 100;

export class NsysDatabase {
  readonly file: string;
  readonly #db: Sqlite.Database;
  readonly #options: ReadOptions;
  readonly #bytes: number;
  readonly #copy: SqliteCopy | undefined;
  readonly #columns = new Map<string, ReadonlySet<string>>();
  #rowsDone = 0;
  #rowsExpected = 1;

  /** Throws a `DxpuError` where the file is no SQLite database, or cut short. */
  constructor(file: string, options: ReadOptions = {}) {
    this.file = file;
    this.#options = options;
    const { size, header } = checkedHeader(file);
    this.#copy = sqliteCopy(file, header);
    this.#bytes = this.#copy?.bytes ?? size;
    try {
      // Changes that are not in the file yet are taken into the copy.
      const readonly = this.#copy === undefined;
      this.#db = new Sqlite(this.#copy?.file ?? file, { readonly, fileMustExist: true });
    } catch (error) {
      this.#copy?.remove();
      throw this.#refusal(error, 'opening it');
    }
    try {
      this.#db.pragma('trusted_schema = OFF');
      this.#db.pragma('cell_size_check = ON');
      for (const [name] of this.#all(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'",
      )) {
        if (typeof name !== 'string') continue;
        const columns = this.#all(`SELECT name FROM pragma_table_info(${literal(name)})`);
        this.#columns.set(name, new Set(columns.map(([column]) => String(column))));
      }
    } catch (error) {
      this.close();
      throw this.#refusal(error, 'reading its list of tables');
    }
    // SQLite has open what it needs: nothing is left even where this process is killed.
    if (process.platform !== 'win32') this.#copy?.remove();
  }

  close(): void {
    this.#db.close();
    this.#copy?.remove();
  }

  tables(): string[] {
    return [...this.#columns.keys()];
  }

  has(table: string): boolean {
    return this.#columns.has(table);
  }

  hasColumn(table: string, column: string): boolean {
    return this.#columns.get(table)?.has(column) === true;
  }

  /** The column as an SQL expression; NULL where there is none. */
  column(table: string, column: string): string {
    return this.hasColumn(table, column) ? `"${column}"` : 'NULL';
  }

  /** About how many rows a table has: read from its end, not counted. */
  expectedRows(table: string): number {
    if (!this.has(table)) return 0;
    try {
      const last = this.#all(`SELECT max(rowid) FROM "${table}"`)[0]?.[0];
      return typeof last === 'number' && last > 0 ? Math.min(last, this.#bytes) : 0;
    } catch {
      // Without row ids; or damaged, which is reported when its rows are read.
      return 0;
    }
  }

  /** Rows that `rows` will give in all, for the progress. */
  expect(rows: number): void {
    this.#rowsExpected = Math.max(1, rows);
  }

  /** All rows of a small table; none where it does not exist. `expressions` are SQL. */
  small(table: string, expressions: readonly string[]): SqlValue[][] {
    if (!this.has(table)) return [];
    try {
      return this.#all(`SELECT ${expressions.join(', ')} FROM "${table}" LIMIT 100000`);
    } catch (error) {
      throw this.#refusal(error, `reading the table ${table}`);
    }
  }

  /** The first value of the expression that is not NULL, in the order of the file. */
  first(table: string, expression: string): SqlValue | undefined {
    if (!this.has(table)) return undefined;
    try {
      const where = `${expression} IS NOT NULL`;
      return this.#all(`SELECT ${expression} FROM "${table}" WHERE ${where} LIMIT 1`)[0]?.[0];
    } catch (error) {
      throw this.#refusal(error, `reading the table ${table}`);
    }
  }

  /** A look-up of one value by one key; undefined where there is none. */
  lookup(sql: string): (key: number) => SqlValue | undefined {
    const statement = this.#db.prepare<[number], SqlValue[]>(sql).raw();
    return (key) => {
      try {
        return statement.get(key)?.[0];
      } catch (error) {
        throw this.#refusal(error, 'looking up a name');
      }
    };
  }

  /**
   * The rows of a table by batches, in the order of the file; none where it does not exist. `bound` are
   * the values of `?` in the expressions, in order.
   */
  async *rows(
    table: string,
    expressions: readonly string[],
    bound: readonly bigint[] = [],
  ): AsyncGenerator<readonly (readonly SqlValue[])[]> {
    if (!this.has(table)) return;
    let row = 0;
    let batch: SqlValue[][] = [];
    try {
      const sql = `SELECT ${expressions.join(', ')} FROM "${table}"`;
      const statement = this.#db.prepare<bigint[], SqlValue[]>(sql).raw();
      for (const values of statement.iterate(...bound)) {
        row += 1;
        if (row > this.#bytes) throw new Error('it has more rows than bytes');
        batch.push(values);
        if (batch.length < ROWS_A_TURN) continue;
        yield batch;
        batch = [];
        this.#rowsDone += ROWS_A_TURN;
        await breathe(this.file, this.#rowsDone / this.#rowsExpected, this.#options);
      }
    } catch (error) {
      throw this.#refusal(error, `reading row ${row + 1} of the table ${table}`);
    }
    yield batch;
  }

  #all(sql: string): SqlValue[][] {
    return this.#db.prepare<[], SqlValue[]>(sql).raw().all();
  }

  #refusal(error: unknown, doing: string): DxpuError {
    if (error instanceof DxpuError) return error;
    const said = error instanceof Error ? error.message : String(error);
    return new DxpuError(
      'data_loss',
      `${this.file}: the SQLite database is damaged or not readable: ${said}, while ${doing}. ` +
        'Copy it again, or export the report again: nsys export --type sqlite REPORT.nsys-rep',
      { details: { file: this.file }, cause: error },
    );
  }
}

/** The size of the file and its header, looked at: SQLite itself notices a lost end only when it gets there. */
function checkedHeader(file: string): { readonly size: number; readonly header: Uint8Array } {
  const header = new Uint8Array(HEADER_BYTES);
  let size: number;
  let read: number;
  let handle: number | undefined;
  try {
    handle = openSync(file, 'r');
    size = fstatSync(handle).size;
    read = readSync(handle, header, 0, HEADER_BYTES, 0);
  } catch (error) {
    throw unreadable(file, error);
  } finally {
    if (handle !== undefined) closeSync(handle);
  }
  const view = new DataView(header.buffer);
  const written = view.getUint16(16);
  const pageBytes = written === 1 ? 65_536 : written;
  // Only if the change counter equals the version that the page count is valid for.
  const isCountValid = view.getUint32(24) === view.getUint32(92);
  const expected = isCountValid ? view.getUint32(28) * pageBytes : 0;
  if (read < HEADER_BYTES || size < expected) {
    throw new DxpuError(
      'data_loss',
      `${file}: the SQLite database is cut short at byte ${size}` +
        `${read < HEADER_BYTES ? '' : `; its header promises ${expected} bytes`}. Copy it again, or ` +
        'export the report again: nsys export --type sqlite REPORT.nsys-rep',
      { details: { file, byte: size } },
    );
  }
  return { size, header };
}

function literal(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}
