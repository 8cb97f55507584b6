/** What was last reported of things with a name each, so that a report carries what is new alone. */

export class Reported<T> {
  readonly #keyOf: (item: T) => string | number;
  readonly #isNews: (before: T, after: T) => boolean;
  readonly #items = new Map<string | number, T>();

  /** `isNews`: whether the two differ by enough to be said. Default: by anything. */
  constructor(
    keyOf: (item: T) => string | number,
    isNews: (before: T, after: T) => boolean = (before, after) =>
      before !== after && JSON.stringify(before) !== JSON.stringify(after),
  ) {
    this.#keyOf = keyOf;
    this.#isNews = isNews;
  }

  /** Those of `items` that are new or differ from what was reported. */
  newsOf(items: readonly T[]): T[] {
    return items.filter((item) => {
      const before = this.#items.get(this.#keyOf(item));
      return before === undefined || this.#isNews(before, item);
    });
  }

  /** Whether something was reported that is no longer there: only a whole report can say so. */
  hasLost(items: readonly T[]): boolean {
    if (this.#items.size === 0) return false;
    const keys = new Set(items.map((item) => this.#keyOf(item)));
    for (const key of this.#items.keys()) if (!keys.has(key)) return true;
    return false;
  }

  note(items: readonly T[]): void {
    for (const item of items) this.#items.set(this.#keyOf(item), item);
  }

  /** A whole report begins: nothing of before counts. */
  clear(): void {
    this.#items.clear();
  }
}
