/** A list of any length on stdout, printed as it comes in. */
import {
  type Cell,
  formatTable,
  GrowingTable,
  LineWriter,
  type OutputFormat,
  printNote,
  yamlOf,
} from './output.ts';

export interface Column<T> {
  readonly title: string;
  readonly cell: (item: T) => Cell;
  /** Characters it has from the first line on. */
  readonly least?: number;
}

/** All of `items` at once, as text. */
export function tableOf<T>(columns: readonly Column<T>[], items: readonly T[]): string {
  return formatTable(
    columns.map(({ title }) => title),
    items.map((item) => columns.map(({ cell }) => cell(item))),
  );
}

export interface ListShape<T> {
  readonly columns: readonly Column<T>[];
  /** An item as machines get it. */
  readonly plain: (item: T) => unknown;
  /** Said on stderr when there was none. */
  readonly none: string;
}

/** A table, JSON lines (one object a line), or one YAML list. */
export class ListPrinter<T> {
  readonly #format: OutputFormat;
  readonly #shape: ListShape<T>;
  readonly #table: GrowingTable;
  readonly #out = new LineWriter(process.stdout);
  #count = 0;

  constructor(format: OutputFormat, shape: ListShape<T>) {
    this.#format = format;
    this.#shape = shape;
    this.#table = new GrowingTable(
      shape.columns.map(({ title }) => title),
      shape.columns.map(({ least }) => least ?? 0),
    );
  }

  /** Resolves once a slow reader has taken them. */
  async add(items: readonly T[]): Promise<void> {
    if (items.length === 0) return;
    this.#count += items.length;
    const { columns, plain } = this.#shape;
    switch (this.#format) {
      case 'table': {
        const rows = items.map((item) => columns.map(({ cell }) => cell(item)));
        for (const line of this.#table.lines(rows)) this.#out.line(line);
        break;
      }
      case 'json':
        for (const item of items) this.#out.line(JSON.stringify(plain(item)));
        break;
      case 'yaml':
        this.#out.line((await yamlOf(items.map(plain))).trimEnd());
        break;
    }
    await this.#out.flush();
  }

  async end(): Promise<void> {
    if (this.#count > 0) return;
    if (this.#format === 'yaml') this.#out.line('[]');
    await this.#out.flush();
    if (this.#format === 'table') printNote(this.#shape.none);
  }
}
