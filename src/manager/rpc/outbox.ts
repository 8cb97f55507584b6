/** What goes out on one stream, in order: put in by the shell, taken out as fast as the peer reads. */
import { assert } from '#base/assert';

export class Outbox<T> {
  readonly #limit: number;
  readonly #onFull: () => void;
  #items: T[] = [];
  #wake: (() => void) | undefined;
  #end: { readonly error: Error | undefined } | undefined;

  /** `onFull` is called once, when more than `limit` items wait: the peer does not read. */
  constructor(limit: number, onFull: () => void) {
    this.#limit = limit;
    this.#onFull = onFull;
  }

  put(item: T): void {
    if (this.#end !== undefined) return;
    this.#items.push(item);
    if (this.#items.length === this.#limit + 1) this.#onFull();
    this.#notify();
  }

  /** What is in it is still taken out, then the iteration ends; with `error` it throws that. */
  end(error?: Error): void {
    this.#end ??= { error };
    this.#notify();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<T, void, undefined> {
    assert(this.#wake === undefined, 'one reader');
    for (;;) {
      const items = this.#items;
      this.#items = [];
      yield* items;
      if (this.#items.length > 0) continue;
      if (this.#end !== undefined) {
        if (this.#end.error !== undefined) throw this.#end.error;
        return;
      }
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  #notify(): void {
    const wake = this.#wake;
    this.#wake = undefined;
    wake?.();
  }
}
