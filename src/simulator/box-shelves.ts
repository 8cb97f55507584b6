/** Boxes by group, model and number of free GPUs: all that tells boxes apart for most policies. */

const NOWHERE = -1;

export class BoxShelves {
  readonly #models: number;
  readonly #levels: number;
  readonly #shelves: number[][];
  /** Free GPUs by group and model, on boxes that are on a shelf. */
  readonly #free: Int32Array;
  readonly #shelfOf: Int32Array;
  readonly #placeOf: Int32Array;

  constructor(groups: number, models: number, gpusPerBox: number, boxes: number) {
    this.#models = models;
    this.#levels = gpusPerBox + 1;
    this.#shelves = Array.from({ length: groups * models * this.#levels }, () => []);
    this.#free = new Int32Array(groups * models);
    this.#shelfOf = new Int32Array(boxes).fill(NOWHERE);
    this.#placeOf = new Int32Array(boxes).fill(NOWHERE);
  }

  put(box: number, group: number, model: number, free: number): void {
    this.remove(box);
    const shelf = (group * this.#models + model) * this.#levels + free;
    const boxes = this.#shelves[shelf] as number[];
    this.#shelfOf[box] = shelf;
    this.#placeOf[box] = boxes.length;
    boxes.push(box);
    this.#count(shelf, 1);
  }

  /** From its shelf, if it is on one: a box that is down. */
  remove(box: number): void {
    const shelf = this.#shelfOf[box] as number;
    if (shelf === NOWHERE) return;
    const boxes = this.#shelves[shelf] as number[];
    const last = boxes.pop() as number;
    const place = this.#placeOf[box] as number;
    if (last !== box) {
      boxes[place] = last;
      this.#placeOf[last] = place;
    }
    this.#shelfOf[box] = NOWHERE;
    this.#count(shelf, -1);
  }

  /** The boxes with exactly so many free; in no order that means anything. */
  at(group: number, model: number, free: number): readonly number[] {
    return this.#shelves[(group * this.#models + model) * this.#levels + free] as number[];
  }

  /** Free GPUs of a model in a group. */
  free(group: number, model: number): number {
    return this.#free[group * this.#models + model] as number;
  }

  #count(shelf: number, sign: 1 | -1): void {
    const at = Math.floor(shelf / this.#levels);
    this.#free[at] = (this.#free[at] as number) + sign * (shelf % this.#levels);
  }
}
