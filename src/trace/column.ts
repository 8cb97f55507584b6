/**
 * A column of numbers that grows by chunks, so that growing copies nothing, and is put in its final
 * order once. The chunks are given up piece by piece as the order is made.
 */
type TypedArray = Float64Array | Uint32Array | Int32Array | Uint8Array;

const CHUNK_BITS = 14;
const CHUNK_ROWS = 1 << CHUNK_BITS;

/** What is asked for row by row. */
export interface Values {
  at(row: number): number;
}

export class Column<A extends TypedArray> implements Values {
  readonly #make: (rows: number) => A;
  readonly #chunks: A[] = [];
  #count = 0;

  constructor(make: (rows: number) => A) {
    this.#make = make;
  }

  get count(): number {
    return this.#count;
  }

  push(value: number): void {
    const row = this.#count & (CHUNK_ROWS - 1);
    if (row === 0) this.#chunks.push(this.#make(CHUNK_ROWS));
    const chunk = this.#chunks[this.#chunks.length - 1];
    if (chunk !== undefined) chunk[row] = value;
    this.#count += 1;
  }

  /** The value of a row there is. */
  at(row: number): number {
    return this.#chunks[row >>> CHUNK_BITS]?.[row & (CHUNK_ROWS - 1)] ?? 0;
  }

  /** Row i of the result is row `order[i]` of the column less `minus`; the column is empty afterwards. */
  take(order: Uint32Array, minus = 0): A {
    const result = this.#make(order.length);
    for (let row = 0; row < order.length; row += 1) {
      result[row] = this.at(order[row] ?? 0) - minus;
    }
    this.#chunks.length = 0;
    this.#count = 0;
    return result;
  }
}

export const float64Column = (): Column<Float64Array> =>
  new Column((rows) => new Float64Array(rows));
export const uint32Column = (): Column<Uint32Array> => new Column((rows) => new Uint32Array(rows));
export const uint8Column = (): Column<Uint8Array> => new Column((rows) => new Uint8Array(rows));

/** First row from `from` up to `to` whose value, rising by row, is at least `least`; `to` if there is none. */
export function firstAtLeast(
  values: Float64Array | Uint32Array,
  from: number,
  to: number,
  least: number,
): number {
  let low = from;
  let high = to;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((values[middle] ?? 0) < least) low = middle + 1;
    else high = middle;
  }
  return low;
}
