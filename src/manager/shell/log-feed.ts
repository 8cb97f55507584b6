/**
 * Streams the log to any number of watchers. A watcher is a position and nothing else: it reads entries
 * from the newest ones, kept here for all, or from the store where it is further behind. So a slow one
 * costs no memory, and one that comes back after a restart goes on where it was.
 */
import { assert } from '#base/assert';
import { DxpuError } from '#base/errors';
import type { LogRecord } from '../domain/records.ts';
import { bindingOf } from '../store/log-subject.ts';
import type { Store } from '../store/store.ts';
import type { WatchedEntries, WatchOptions } from './shell.ts';

/** Entries kept for those who follow; the tail has up to twice as many. */
const KEPT = 2048;
/** Entries given out at once. */
const CHUNK = 256;

export class LogFeed {
  readonly #store: Pick<Store, 'log'>;
  readonly #waiting = new Set<() => void>();
  #position: number;
  /** The newest entries without a gap; the last has `#position`. */
  #tail: LogRecord[] = [];
  #stopped: DxpuError | undefined;

  /** `position` is that of the newest entry in the store. */
  constructor(store: Pick<Store, 'log'>, position: number) {
    this.#store = store;
    this.#position = position;
  }

  get position(): number {
    return this.#position;
  }

  /** Entries that have become durable. */
  append(entries: readonly LogRecord[]): void {
    for (const entry of entries) {
      assert(entry.position === this.#position + 1, 'the log has no gaps');
      this.#position = entry.position;
      this.#tail.push(entry);
    }
    if (this.#tail.length > 2 * KEPT) this.#tail = this.#tail.slice(-KEPT);
    this.#wake();
  }

  /** Ends all watches with `error`. */
  stop(error: DxpuError): void {
    this.#stopped ??= error;
    this.#wake();
  }

  async *watch(options: WatchOptions): AsyncGenerator<WatchedEntries, void, undefined> {
    const { after, follow, binding, signal } = options;
    if (after > this.#position) {
      throw new DxpuError(
        'out_of_range',
        `position ${after} is beyond the end of the log, ${this.#position}: it is of another pool, or ` +
          'of this one before it was restored; watch from 0',
        { details: { after, position: this.#position } },
      );
    }
    let position = after;
    let atEnd = false;
    while (!signal.aborted) {
      if (this.#stopped !== undefined) throw this.#stopped;
      if (atEnd && position === this.#position) {
        if (!follow) return;
        await this.#change(signal);
        continue;
      }
      const next = this.#next(position, binding);
      position = next.position;
      // Told when the end is first reached; after that whoever follows knows that he is there.
      const isNews = next.entries.length > 0 || (next.caughtUp && !atEnd);
      atEnd ||= next.caughtUp;
      if (isNews) yield next;
    }
  }

  #next(after: number, binding: string | undefined): WatchedEntries {
    const first = this.#position - this.#tail.length + 1;
    if (after + 1 >= first) {
      const begin = after + 1 - first;
      const chunk = this.#tail.slice(begin, begin + CHUNK);
      const position = after + chunk.length;
      return {
        entries: binding === undefined ? chunk : chunk.filter((one) => bindingOf(one) === binding),
        position,
        caughtUp: position === this.#position,
      };
    }
    const entries = this.#store.log(after, CHUNK, binding);
    // Fewer than asked for: there are no more.
    const position = entries.length < CHUNK ? this.#position : (entries.at(-1)?.position ?? after);
    return { entries, position, caughtUp: position === this.#position };
  }

  #change(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const done = (): void => {
        this.#waiting.delete(done);
        signal.removeEventListener('abort', done);
        resolve();
      };
      this.#waiting.add(done);
      signal.addEventListener('abort', done);
    });
  }

  #wake(): void {
    for (const done of this.#waiting) done();
  }
}
