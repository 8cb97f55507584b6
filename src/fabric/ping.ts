/** Round trips by ping: who asks when, and what the answers say. */
import type { LinkCounters } from './link-counters.ts';

/** Pings whose answer may still come; a power of two. */
const REMEMBERED = 8;

export class PingClock {
  readonly #sentAtNs = new Float64Array(REMEMBERED).fill(-1);
  readonly #counters: LinkCounters;
  #nextId = 0;

  constructor(counters: LinkCounters) {
    this.#counters = counters;
  }

  /** A ping goes out now; returns its id. */
  begin(nowNs: number): number {
    const id = this.#nextId;
    this.#nextId = (id + 1) >>> 0;
    this.#sentAtNs[id & (REMEMBERED - 1)] = nowNs;
    return id;
  }

  /** An answer came. One that was not asked for, or comes again, says nothing. */
  end(nowNs: number, id: number): void {
    const behind = (this.#nextId - id) >>> 0;
    if (behind === 0 || behind > REMEMBERED) return;
    const index = id & (REMEMBERED - 1);
    const sentAtNs = this.#sentAtNs[index] as number;
    if (sentAtNs < 0) return;
    this.#sentAtNs[index] = -1;
    this.#counters.addRtt(nowNs - sentAtNs);
  }

  /** The connection is another one: answers to old pings would measure nothing. */
  forget(): void {
    this.#sentAtNs.fill(-1);
    this.#counters.forgetRecent();
  }
}
