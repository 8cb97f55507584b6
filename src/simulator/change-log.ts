/** Which of many places changed, for readers that each come back now and then. */

/** The mark of a reader that has read nothing: it is told of every place. */
export const NOTHING_READ = -1;

export class ChangeLog {
  readonly #count: number;
  /** Places as they changed; `#forgotten` entries before the first are gone. */
  readonly #log: number[] = [];
  #forgotten = 0;
  /** Where in the log, counted from its very beginning, a place stands last; -1 if nowhere. */
  readonly #last: Float64Array;

  constructor(count: number) {
    this.#count = count;
    this.#last = new Float64Array(count).fill(-1);
  }

  /** The mark of a reader that has read everything. */
  get end(): number {
    return this.#forgotten + this.#log.length;
  }

  changed(place: number): void {
    this.#last[place] = this.end;
    this.#log.push(place);
    if (this.#log.length > 4 * this.#count + 1024) {
      this.#forgotten += this.#log.length;
      this.#log.length = 0;
    }
  }

  /** Tells each place that changed since the mark once, in no order that means anything. */
  tell(mark: number, visit: (place: number) => void): void {
    const end = this.end;
    if (mark < this.#forgotten || end - mark > this.#count) {
      // Looking through all places is shorter than reading, or all there is.
      for (let place = 0; place < this.#count; place++) {
        if (mark < 0 || (this.#last[place] as number) >= mark) visit(place);
      }
      return;
    }
    for (let i = mark; i < end; i++) {
      const place = this.#log[i - this.#forgotten] as number;
      if (this.#last[place] === i) visit(place);
    }
  }
}
