/** Numbers by correlation id, in as few bytes as may be: ids usually follow each other closely. */
import type { Values } from './column.ts';

const EMPTY = -1;
/** Entries for each id to come before they are hashed. */
const MAX_SPREAD = 4;

export class CorrelationTable {
  readonly #first: number;
  readonly #values: Int32Array;
  /** Where the ids lie far apart: the id of each entry, hashed. */
  readonly #ids: Float64Array | undefined;

  /** For at most `count` ids, all of them whole numbers from `first` to `last`. */
  constructor(first: number, last: number, count: number) {
    this.#first = first;
    const spread = Math.max(0, last - first + 1);
    if (spread <= MAX_SPREAD * count) {
      this.#values = new Int32Array(spread).fill(EMPTY);
    } else {
      const entries = 2 ** Math.ceil(Math.log2(Math.max(2, 1.5 * count)));
      this.#values = new Int32Array(entries).fill(EMPTY);
      this.#ids = new Float64Array(entries);
    }
  }

  /** For the correlation ids of these rows; 0 is none of them. */
  static forRows(rows: Uint32Array, correlation: Values): CorrelationTable {
    let first = Infinity;
    let last = 0;
    for (const row of rows) {
      const id = correlation.at(row);
      if (id === 0) continue;
      first = Math.min(first, id);
      last = Math.max(last, id);
    }
    return new CorrelationTable(Math.min(first, last), last, rows.length);
  }

  /** -1 where nothing was set. */
  get(id: number): number {
    return this.#values[this.#entry(id)] ?? EMPTY;
  }

  /** `value` is at least 0. */
  set(id: number, value: number): void {
    const entry = this.#entry(id);
    this.#values[entry] = value;
    if (this.#ids !== undefined) this.#ids[entry] = id;
  }

  #entry(id: number): number {
    const ids = this.#ids;
    if (ids === undefined) return id - this.#first;
    const mask = ids.length - 1;
    const low = id % 0x1_0000_0000;
    const high = (id - low) / 0x1_0000_0000;
    let hash = Math.imul(low ^ Math.imul(high, 0x9e3779b1), 0x85ebca6b);
    hash ^= hash >>> 15;
    let entry = hash & mask;
    while (this.#values[entry] !== EMPTY && ids[entry] !== id) entry = (entry + 1) & mask;
    return entry;
  }
}
