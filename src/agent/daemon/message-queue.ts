/** Messages that wait to be sent, as the RPC library takes them. */

export class MessageQueue<T> implements AsyncIterable<T> {
  readonly #limit: number;
  readonly #onFull: () => void;
  #messages: T[] = [];
  #isEnded = false;
  #wake: (() => void) | undefined;

  /** Calls `onFull` when more than `limit` messages wait; it is to end whatever does not take them. */
  constructor(limit: number, onFull: () => void) {
    this.#limit = limit;
    this.#onFull = onFull;
  }

  /** After `end` nothing is taken any more. */
  push(message: T): void {
    if (this.#isEnded) return;
    this.#messages.push(message);
    if (this.#messages.length > this.#limit) this.#onFull();
    this.#wake?.();
  }

  /** What waits is still taken; then the messages end. */
  end(): void {
    this.#isEnded = true;
    this.#wake?.();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<T> {
    for (;;) {
      const messages = this.#messages;
      this.#messages = [];
      yield* messages;
      if (this.#messages.length > 0) continue;
      if (this.#isEnded) return;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }
}
