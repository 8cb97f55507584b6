/**
 * A first-in first-out queue in a ring that doubles when it is full: no shifting, and no allocation
 * once it has grown to its working size.
 */
export class RingBuffer<T> {
  #items: (T | undefined)[];
  #head = 0;
  #size = 0;

  /** `capacity` is a first guess, rounded up to a power of two. */
  constructor(capacity = 16) {
    let slots = 1;
    while (slots < capacity) slots *= 2;
    this.#items = new Array<T | undefined>(slots).fill(undefined);
  }

  get size(): number {
    return this.#size;
  }

  /** Adds at the end. */
  push(item: T): void {
    if (this.#size === this.#items.length) this.#grow();
    this.#items[(this.#head + this.#size) & (this.#items.length - 1)] = item;
    this.#size++;
  }

  /** Removes and returns the oldest item, or `undefined` when empty. */
  shift(): T | undefined {
    if (this.#size === 0) return undefined;
    const item = this.#items[this.#head];
    // Let go of it, so that the ring keeps nothing alive.
    this.#items[this.#head] = undefined;
    this.#head = (this.#head + 1) & (this.#items.length - 1);
    this.#size--;
    return item;
  }

  /** The oldest item, or `undefined` when empty. */
  peek(): T | undefined {
    return this.at(0);
  }

  /** The `index`-th oldest item, or `undefined` when there are not so many. */
  at(index: number): T | undefined {
    if (index < 0 || index >= this.#size) return undefined;
    return this.#items[(this.#head + index) & (this.#items.length - 1)];
  }

  clear(): void {
    this.#items.fill(undefined);
    this.#head = 0;
    this.#size = 0;
  }

  #grow(): void {
    const old = this.#items;
    const items = new Array<T | undefined>(old.length * 2).fill(undefined);
    for (let index = 0; index < this.#size; index++) {
      items[index] = old[(this.#head + index) & (old.length - 1)];
    }
    this.#items = items;
    this.#head = 0;
  }
}
