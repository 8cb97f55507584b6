/** What is wrong with a mapping table, field by field. An ordinary "no", so a value. */

export interface TableError {
  /** Index of the row in the table as given. */
  readonly row: number;
  /** Name of the field, as in `HostRow` or `BoxRow`; `nonPrefetchable.base` for a part of one. */
  readonly field: string;
  /** What is wrong, with the values, and what would be right. */
  readonly message: string;
}

/** The slot number travels in 16 bits of a frame entry. */
export const MAX_SLOT = 0xffff;

/** Collects the errors of one table. */
export class TableChecker {
  readonly errors: TableError[] = [];

  error(row: number, field: string, message: string): void {
    this.errors.push({ row, field, message });
  }

  /** Whether `value` is an integer from `low` to `high`; says so if not. */
  integer(row: number, field: string, value: number, low: number, high: number): boolean {
    if (Number.isInteger(value) && value >= low && value <= high) return true;
    this.error(row, field, `${value} is not an integer from ${low} to ${high}`);
    return false;
  }

  /** Whether `value` names something. */
  name(row: number, field: string, value: string): boolean {
    if (typeof value === 'string' && value.length > 0) return true;
    this.error(row, field, 'is empty');
    return false;
  }

  generation(row: number, value: number): void {
    this.integer(row, 'generation', value, 1, Number.MAX_SAFE_INTEGER);
  }

  /** Says so if a new binding has a generation that is not above `highest`, which came before. */
  newGeneration(row: number, value: number, highest: number): void {
    if (value > highest) return;
    this.error(
      row,
      'generation',
      `${value} was used before; a new binding needs one above ${highest}`,
    );
  }

  /** Whether nothing before had this `key`; says which row had it if so. */
  unique<K>(seen: Map<K, number>, row: number, field: string, key: K, what: string): boolean {
    const before = seen.get(key);
    if (before !== undefined) {
      this.error(row, field, `${what} is already that of row ${before}`);
      return false;
    }
    seen.set(key, row);
    return true;
  }
}
