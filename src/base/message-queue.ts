import { assert } from './assert.ts';

/** What goes out on one stream, in order: put in at any time, taken out as fast as the peer reads. */
export class MessageQueue<T> implements AsyncIterable<T> {
  readonly #limit: number;
  readonly #onFull: () => void;
  #messages: T[] = [];
  #wake: (() => void) | undefined;
  #end: { readonly error: Error | undefined } | undefined;

  /** `onFull` is called when more than `limit` come to wait: it is to end what does not take them. */
  constructor(limit: number, onFull: () => void) {
    this.#limit = limit;
    this.#onFull = onFull;
  }

  /** After `end` nothing is taken any more. */
  push(message: T): void {
    if (this.#end !== undefined) return;
    this.#messages.push(message);
    if (this.#messages.length === this.#limit + 1) this.#onFull();
    this.#notify();
  }

  /** What waits is still taken out, then the iteration ends; with `error` it throws that. */
  end(error?: Error): void {
    this.#end ??= { error };
    this.#notify();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<T, void, undefined> {
    assert(this.#wake === undefined, 'one reader');
    for (;;) {
      const messages = this.#messages;
      this.#messages = [];
      yield* messages;
      if (this.#messages.length > 0) continue;
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
