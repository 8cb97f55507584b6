/** What is wrong with a mapping table, field by field. An ordinary "no", so a value. */

export interface TableError {
  /** Index of the row in the table as given. */
  readonly row: number;
  /** Name of the field, as in `HostRow` or `BoxRow`; `nonPrefetchable.base` for a part of one. */
  readonly field: string;
  /** What is wrong, with the values, and what would be right. */
  readonly message: string;
}
