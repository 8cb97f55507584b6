/**
 * A binary heap keyed (time, sequence): equal times come out in the order they went in, which is
 * what makes a simulated world depend on its inputs alone.
 */
export class EventQueue<T> {
  #times: number[] = [];
  #sequences: number[] = [];
  #values: T[] = [];
  #nextSequence = 0;

  get size(): number {
    return this.#times.length;
  }

  /** The earliest time, or Infinity when empty. */
  get nextTimeNs(): number {
    return this.#times[0] ?? Infinity;
  }

  /** The value `pop` would return. */
  get next(): T | undefined {
    return this.#values[0];
  }

  push(timeNs: number, value: T): void {
    const sequence = this.#nextSequence++;
    let index = this.#times.length;
    this.#times.push(timeNs);
    this.#sequences.push(sequence);
    this.#values.push(value);
    while (index > 0) {
      const parent = (index - 1) >> 1;
      if (!this.#before(timeNs, sequence, parent)) break;
      this.#move(parent, index);
      index = parent;
    }
    this.#times[index] = timeNs;
    this.#sequences[index] = sequence;
    this.#values[index] = value;
  }

  /** Removes and returns the earliest value, or `undefined` when empty. */
  pop(): T | undefined {
    const count = this.#times.length;
    if (count === 0) return undefined;
    const result = this.#values[0];
    const timeNs = this.#times.pop() as number;
    const sequence = this.#sequences.pop() as number;
    const value = this.#values.pop() as T;
    const size = count - 1;
    if (size === 0) return result;
    let index = 0;
    for (;;) {
      let child = 2 * index + 1;
      if (child >= size) break;
      const right = child + 1;
      if (
        right < size &&
        this.#before(this.#times[right] as number, this.#sequences[right] as number, child)
      ) {
        child = right;
      }
      if (this.#before(timeNs, sequence, child)) break;
      this.#move(child, index);
      index = child;
    }
    this.#times[index] = timeNs;
    this.#sequences[index] = sequence;
    this.#values[index] = value;
    return result;
  }

  #before(timeNs: number, sequence: number, index: number): boolean {
    const other = this.#times[index] as number;
    return timeNs < other || (timeNs === other && sequence < (this.#sequences[index] as number));
  }

  #move(from: number, to: number): void {
    this.#times[to] = this.#times[from] as number;
    this.#sequences[to] = this.#sequences[from] as number;
    this.#values[to] = this.#values[from] as T;
  }
}
