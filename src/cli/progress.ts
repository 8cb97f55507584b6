/**
 * How far something long has come, on stderr: one line that changes on a terminal, now and then a line
 * elsewhere. Nothing is said of what takes less than a second.
 */
import { plainText } from '#report/text-width';

/** What is written to; stderr, or a stand-in. */
export interface ProgressStream {
  readonly isTTY?: boolean | undefined;
  readonly columns?: number | undefined;
  write(text: string): unknown;
}

const QUIET_MS = 1000;
const TERMINAL_EVERY_MS = 100;
const LINES_EVERY_MS = 5000;

export class Progress {
  readonly #stream: ProgressStream;
  readonly #isTerminal: boolean;
  readonly #nowMs: () => number;
  #nextMs: number;
  #last = '';

  constructor(stream: ProgressStream, nowMs: () => number = () => performance.now()) {
    this.#stream = stream;
    this.#isTerminal = stream.isTTY === true;
    this.#nowMs = nowMs;
    this.#nextMs = nowMs() + QUIET_MS;
  }

  /** Cheap, for every step: most calls print nothing. */
  tell(text: () => string): void {
    const now = this.#nowMs();
    if (now < this.#nextMs) return;
    this.#nextMs = now + (this.#isTerminal ? TERMINAL_EVERY_MS : LINES_EVERY_MS);
    const line = plainText(text());
    if (line === this.#last) return;
    if (this.#isTerminal) {
      const room = Math.max(10, (this.#stream.columns ?? 80) - 1);
      this.#stream.write(`\r\u001b[K${line.slice(0, room)}`);
    } else {
      this.#stream.write(`${line}\n`);
    }
    this.#last = line;
  }

  /** Takes the line of a terminal away, for something else to be printed. */
  clear(): void {
    if (this.#isTerminal && this.#last !== '') this.#stream.write('\r\u001b[K');
    this.#last = '';
  }
}
