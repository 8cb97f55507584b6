/**
 * Places (hosts of a group, or groups) as they changed, for those who keep something of each place up to
 * date: they read what they have missed when they are next asked.
 */

/** Of one who has read nothing yet. */
export const UNREAD = -1;

export class ChangeLog {
  readonly #count: number;
  /** Entries before the first are gone: `#forgotten` of them. */
  readonly #log: number[] = [];
  #forgotten = 0;

  constructor(count: number) {
    this.#count = count;
  }

  changed(place: number): void {
    this.#log.push(place);
    if (this.#log.length > 4 * this.#count + 1024) {
      this.#forgotten += this.#log.length;
      this.#log.length = 0;
    }
  }

  /**
   * Calls `look` for every place that changed since `read`, for all places if that is not known any more.
   * Returns what has been read now.
   */
  catchUp(read: number, look: (place: number) => void): number {
    if (read < this.#forgotten) {
      for (let place = 0; place < this.#count; place++) look(place);
    } else {
      for (let i = read - this.#forgotten; i < this.#log.length; i++) look(this.#log[i] as number);
    }
    return this.#forgotten + this.#log.length;
  }
}
