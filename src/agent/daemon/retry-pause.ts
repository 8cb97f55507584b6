/** When to try again what failed: after a pause that doubles, until it has worked for as long as the longest. */
import type { Nanos } from '#base/units';

export class RetryPause {
  /** Infinity while nothing is to be tried. */
  atNs = Infinity;
  readonly #firstNs: number;
  readonly #longestNs: number;
  #pauseNs: number;
  #sinceNs = Infinity;

  constructor(firstNs: number, longestNs: number) {
    this.#firstNs = firstNs;
    this.#longestNs = longestNs;
    this.#pauseNs = firstNs;
  }

  /** It works from here on. */
  worked(now: Nanos): void {
    this.#sinceNs = now;
  }

  failed(now: Nanos): void {
    if (now - this.#sinceNs >= this.#longestNs) this.#pauseNs = this.#firstNs;
    this.#sinceNs = Infinity;
    this.atNs = now + this.#pauseNs;
    this.#pauseNs = Math.min(2 * this.#pauseNs, this.#longestNs);
  }
}
