/**
 * How busy the device's link is over time: wire bytes each way and reads outstanding, in intervals of
 * equal length. There are never more intervals than `MOST`; where a run is longer, they are joined in
 * pairs.
 */

export interface LoadInterval {
  readonly startNs: number;
  readonly bytesDown: number;
  readonly bytesUp: number;
  readonly meanReads: number;
  readonly mostReads: number;
}

const MOST = 4096;
const FIRST_NS = 1024;

export class LinkLoad {
  /** Length of an interval. */
  intervalNs = FIRST_NS;
  readonly #down = new Float64Array(MOST);
  readonly #up = new Float64Array(MOST);
  /** Reads × ns. */
  readonly #readNs = new Float64Array(MOST);
  readonly #most = new Float64Array(MOST);
  #used = 0;
  #open = 0;
  #sinceNs = 0;

  down(now: number, wireBytes: number): void {
    const index = this.#at(now);
    this.#down[index] = (this.#down[index] as number) + wireBytes;
  }

  up(now: number, wireBytes: number): void {
    const index = this.#at(now);
    this.#up[index] = (this.#up[index] as number) + wireBytes;
  }

  /** So many reads are outstanding from now on. Times do not go backwards. */
  reads(now: number, open: number): void {
    const last = this.#at(now);
    const { intervalNs } = this;
    for (let fromNs = this.#sinceNs; this.#open > 0 && fromNs < now; ) {
      const index = Math.floor(fromNs / intervalNs);
      const untilNs = Math.min(now, (index + 1) * intervalNs);
      this.#readNs[index] = (this.#readNs[index] as number) + this.#open * (untilNs - fromNs);
      if ((this.#most[index] as number) < this.#open) this.#most[index] = this.#open;
      fromNs = untilNs;
    }
    if ((this.#most[last] as number) < open) this.#most[last] = open;
    this.#open = open;
    this.#sinceNs = now;
  }

  /** Up to the last one in which anything was. */
  *intervals(): Generator<LoadInterval> {
    for (let index = 0; index < this.#used; index += 1) {
      yield {
        startNs: index * this.intervalNs,
        bytesDown: this.#down[index] as number,
        bytesUp: this.#up[index] as number,
        meanReads: (this.#readNs[index] as number) / this.intervalNs,
        mostReads: this.#most[index] as number,
      };
    }
  }

  #at(now: number): number {
    while (now >= MOST * this.intervalNs) this.#join();
    const index = Math.floor(now / this.intervalNs);
    if (index >= this.#used) this.#used = index + 1;
    return index;
  }

  #join(): void {
    this.intervalNs *= 2;
    for (const values of [this.#down, this.#up, this.#readNs]) {
      for (let index = 0; index < MOST / 2; index += 1) {
        values[index] = (values[2 * index] as number) + (values[2 * index + 1] as number);
      }
      values.fill(0, MOST / 2);
    }
    const most = this.#most;
    for (let index = 0; index < MOST / 2; index += 1) {
      most[index] = Math.max(most[2 * index] as number, most[2 * index + 1] as number);
    }
    most.fill(0, MOST / 2);
    this.#used = Math.ceil(this.#used / 2);
  }
}
