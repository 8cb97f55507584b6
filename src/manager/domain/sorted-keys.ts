/**
 * A sorted set for paging: 100,000 keys, a page at any key, keys that come and go meanwhile. Chunks of
 * bounded size, so that an insertion moves a few hundred keys at most.
 */

const CHUNK = 512;

export class SortedKeys<K> {
  readonly #compare: (a: K, b: K) => number;
  #chunks: K[][] = [];
  #size = 0;

  /** `compare`: as for `Array.sort`, a total order. */
  constructor(compare: (a: K, b: K) => number) {
    this.#compare = compare;
  }

  get size(): number {
    return this.#size;
  }

  /** A key that is there already stays as it is. */
  add(key: K): void {
    const at = this.#chunkOf(key);
    const chunk = this.#chunks[at];
    if (chunk === undefined) {
      // Above all: onto the last chunk, for keys often come in order.
      const last = this.#chunks.at(-1);
      if (last === undefined || last.length >= CHUNK) this.#chunks.push([key]);
      else last.push(key);
      this.#size++;
      return;
    }
    const index = this.#indexIn(chunk, key);
    if (this.#compare(chunk[index] as K, key) === 0) return;
    chunk.splice(index, 0, key);
    this.#size++;
    if (chunk.length > CHUNK) this.#chunks.splice(at + 1, 0, chunk.splice(CHUNK / 2));
  }

  delete(key: K): void {
    const at = this.#chunkOf(key);
    const chunk = this.#chunks[at];
    if (chunk === undefined) return;
    const index = this.#indexIn(chunk, key);
    if (this.#compare(chunk[index] as K, key) !== 0) return;
    chunk.splice(index, 1);
    this.#size--;
    if (chunk.length === 0) this.#chunks.splice(at, 1);
  }

  /** Ascending, those above `key`; all when it is `undefined`. Not to be used after a change. */
  *above(key: K | undefined): IterableIterator<K> {
    let at = key === undefined ? 0 : this.#chunkOf(key);
    let index = 0;
    const first = this.#chunks[at];
    if (key !== undefined && first !== undefined) {
      index = this.#indexIn(first, key);
      if (this.#compare(first[index] as K, key) === 0) index++;
    }
    for (; at < this.#chunks.length; at++) {
      const chunk = this.#chunks[at] as K[];
      for (; index < chunk.length; index++) yield chunk[index] as K;
      index = 0;
    }
  }

  /** The first chunk whose last key is not below `key`; the number of chunks when there is none. */
  #chunkOf(key: K): number {
    let low = 0;
    let high = this.#chunks.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const chunk = this.#chunks[middle] as K[];
      if (this.#compare(chunk.at(-1) as K, key) < 0) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** The first index whose key is not below `key`; there is one. */
  #indexIn(chunk: readonly K[], key: K): number {
    let low = 0;
    let high = chunk.length - 1;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#compare(chunk[middle] as K, key) < 0) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

export function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

export function compareNumbers(a: number, b: number): number {
  return a - b;
}
