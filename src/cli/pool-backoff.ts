/** Pauses between attempts to reach a manager that is away: 50 ms, doubling to 1 s. */
import { setTimeout as pause } from 'node:timers/promises';

const FIRST_MS = 50;
const LONGEST_MS = 1000;

export class Backoff {
  #nextMs = FIRST_MS;

  get nextMs(): number {
    return this.#nextMs;
  }

  async pause(): Promise<void> {
    await pause(this.#nextMs);
    this.#nextMs = Math.min(2 * this.#nextMs, LONGEST_MS);
  }

  /** It answered. */
  reset(): void {
    this.#nextMs = FIRST_MS;
  }
}
