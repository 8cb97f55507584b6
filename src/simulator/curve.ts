/** Allocated share against arrived share, in steps of one percent, as the published results give it. */

export interface CurvePoint {
  /** Of GPU capacity asked for so far, in percent. */
  readonly arrivedPct: number;
  /** Of GPU capacity allocated, in percent: the mean over arrivals that round to `arrivedPct`. */
  readonly allocatedPct: number;
}

export class Curve {
  readonly #capacityMilli: number;
  readonly #sums: number[] = [];
  readonly #counts: number[] = [];

  constructor(capacityMilli: number) {
    this.#capacityMilli = capacityMilli;
  }

  /** To be told after every arrival, placed or not. */
  add(arrivedMilli: number, allocatedMilli: number): void {
    const at = Math.round((arrivedMilli / this.#capacityMilli) * 100);
    this.#sums[at] = (this.#sums[at] ?? 0) + (allocatedMilli / this.#capacityMilli) * 100;
    this.#counts[at] = (this.#counts[at] ?? 0) + 1;
  }

  /** Percentages that no arrival rounds to are left out. */
  points(): CurvePoint[] {
    return this.#counts.flatMap((count, arrivedPct) =>
      count === undefined
        ? []
        : [{ arrivedPct, allocatedPct: (this.#sums[arrivedPct] ?? 0) / count }],
    );
  }
}
