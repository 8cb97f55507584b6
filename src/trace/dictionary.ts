/** Values by key, each with a number in the order they came. */
export class Dictionary<V> {
  readonly #indexes = new Map<string, number>();
  readonly values: V[] = [];

  index(key: string, make: () => V): number {
    const known = this.#indexes.get(key);
    if (known !== undefined) return known;
    this.#indexes.set(key, this.values.length);
    return this.values.push(make()) - 1;
  }

  replace(index: number, value: V): void {
    this.values[index] = value;
  }
}
