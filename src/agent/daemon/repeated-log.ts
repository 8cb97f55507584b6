/**
 * Log lines a peer can cause as often as it likes. The first of a kind is logged at once; those that
 * follow within a second become one line with their number.
 */
import type { Logger } from './logger.ts';

const INTERVAL_MS = 1000;
/** Above this many kinds at once, new ones share a count. */
const MAX_KINDS = 256;
const OTHER = 'other';

interface Kind {
  level: 'info' | 'warn' | 'error';
  facts: object;
  message: string;
  times: number;
}

export class RepeatedLog {
  readonly #log: Pick<Logger, 'info' | 'warn' | 'error'>;
  readonly #kinds = new Map<string, Kind>();

  constructor(log: Pick<Logger, 'info' | 'warn' | 'error'>) {
    this.#log = log;
  }

  /** `kind` is what makes two lines alike: the message without what differs from time to time. */
  say(level: Kind['level'], facts: object, message: string, kind = message): void {
    const isKnown = this.#kinds.has(kind);
    const key = isKnown || this.#kinds.size < MAX_KINDS ? kind : OTHER;
    const known = this.#kinds.get(key);
    if (known !== undefined) {
      Object.assign(known, { level, facts, message, times: known.times + 1 });
      return;
    }
    this.#log[level](facts, message);
    this.#kinds.set(key, { level, facts, message, times: 0 });
    this.#wait(key);
  }

  #wait(key: string): void {
    setTimeout(() => this.#tell(key), INTERVAL_MS).unref();
  }

  #tell(key: string): void {
    const kind = this.#kinds.get(key);
    if (kind === undefined) return;
    if (kind.times === 0) {
      this.#kinds.delete(key);
      return;
    }
    const { level, facts, message, times } = kind;
    this.#log[level]({ ...facts, times }, message);
    kind.times = 0;
    this.#wait(key);
  }
}
