/** Which of many places changed, for readers that each come back now and then. */

/** The mark of a reader that has read nothing: it is told of every place. */
export const NOTHING_READ = -1;

export interface LogReader {
  /** The mark in the log up to which it has read. */
  read: number;
}

export class ChangeLog {
  readonly #count: number;
  /** Places as they changed; `#forgotten` entries before the first are gone. */
  readonly #log: number[] = [];
  #forgotten = 0;
  /** Where in the log, counted from its very beginning, a place stands last; `NOTHING_READ` if nowhere. */
  readonly #last: Float64Array;

  constructor(count: number) {
    this.#count = count;
    this.#last = new Float64Array(count).fill(NOTHING_READ);
  }

  changed(place: number): void {
    this.#last[place] = this.#end();
    this.#log.push(place);
    if (this.#log.length > 4 * this.#count + 1024) {
      this.#forgotten += this.#log.length;
      this.#log.length = 0;
    }
  }

  /**
   * Tells the reader each place that changed since it last read, once, in no order that means anything;
   * then it has read everything.
   */
  catchUp(reader: LogReader, visit: (place: number) => void): void {
    const { read } = reader;
    const end = this.#end();
    reader.read = end;
    if (read < this.#forgotten || end - read > this.#count) {
      // Looking through all places is shorter than reading, or all there is.
      for (let place = 0; place < this.#count; place++) {
        if ((this.#last[place] as number) >= read) visit(place);
      }
      return;
    }
    for (let i = read; i < end; i++) {
      const place = this.#log[i - this.#forgotten] as number;
      if (this.#last[place] === i) visit(place);
    }
  }

  #end(): number {
    return this.#forgotten + this.#log.length;
  }
}
