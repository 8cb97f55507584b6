/**
 * Disjoint inclusive ranges of addresses, each with a number: memory windows to slots, bus addresses
 * to memory regions. Lookups are a binary search over one sorted array and allocate nothing.
 */
import { assert } from './assert.ts';

export class IntervalMap {
  /** Base and limit of interval `i` at `2i` and `2i + 1`, ascending. */
  #bounds: Float64Array;
  #values: Float64Array;
  #size = 0;

  /** `capacity` is a first guess; the arrays grow on `insert`. */
  constructor(capacity = 16) {
    this.#bounds = new Float64Array(2 * Math.max(1, capacity));
    this.#values = new Float64Array(Math.max(1, capacity));
  }

  get size(): number {
    return this.#size;
  }

  /**
   * Adds [base, limit] (both included, safe integers, base ≤ limit) with `value`, a non-negative
   * number. Returns false, and changes nothing, when it overlaps an interval already there.
   */
  insert(base: number, limit: number, value: number): boolean {
    assert(
      Number.isSafeInteger(base) && Number.isSafeInteger(limit) && base <= limit,
      `not an interval: ${base} to ${limit}`,
    );
    assert(value >= 0, `an interval's value must not be negative: ${value}`);
    const index = this.#firstBaseAbove(base);
    if (index > 0 && this.limitAt(index - 1) >= base) return false;
    if (index < this.#size && this.baseAt(index) <= limit) return false;
    if (this.#size === this.#values.length) this.#grow();
    this.#bounds.copyWithin(2 * index + 2, 2 * index, 2 * this.#size);
    this.#values.copyWithin(index + 1, index, this.#size);
    this.#bounds[2 * index] = base;
    this.#bounds[2 * index + 1] = limit;
    this.#values[index] = value;
    this.#size++;
    return true;
  }

  /** Removes the interval that starts exactly at `base`. Returns its value, or −1 when there is none. */
  remove(base: number): number {
    const index = this.#firstBaseAbove(base) - 1;
    if (index < 0 || this.baseAt(index) !== base) return -1;
    const value = this.valueAt(index);
    this.#bounds.copyWithin(2 * index, 2 * index + 2, 2 * this.#size);
    this.#values.copyWithin(index, index + 1, this.#size);
    this.#size--;
    return value;
  }

  clear(): void {
    this.#size = 0;
  }

  /** The value of the interval that holds `address`, or −1. */
  find(address: number): number {
    const index = this.findIndex(address);
    return index < 0 ? -1 : this.valueAt(index);
  }

  /**
   * The position (0 to `size` − 1, ascending by base) of the interval that holds `address`, or −1.
   * Positions are good until the next `insert` or `remove`.
   */
  findIndex(address: number): number {
    const index = this.#firstBaseAbove(address) - 1;
    return index >= 0 && address <= this.limitAt(index) ? index : -1;
  }

  /** Whether any interval shares an address with [base, limit]. */
  overlaps(base: number, limit: number): boolean {
    const index = this.#firstBaseAbove(limit) - 1;
    return index >= 0 && this.limitAt(index) >= base;
  }

  baseAt(index: number): number {
    return this.#bounds[2 * index] as number;
  }

  limitAt(index: number): number {
    return this.#bounds[2 * index + 1] as number;
  }

  valueAt(index: number): number {
    return this.#values[index] as number;
  }

  /** The first position whose base is above `address`; `size` when there is none. */
  #firstBaseAbove(address: number): number {
    const bounds = this.#bounds;
    let low = 0;
    let high = this.#size;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((bounds[2 * middle] as number) <= address) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  #grow(): void {
    const bounds = new Float64Array(this.#bounds.length * 2);
    bounds.set(this.#bounds);
    this.#bounds = bounds;
    const values = new Float64Array(this.#values.length * 2);
    values.set(this.#values);
    this.#values = values;
  }
}
