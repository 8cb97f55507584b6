/**
 * Boxes by id and by number. What a search through them asks first is a column by number: hosts' paths
 * hold numbers, and most boxes are passed over without touching the entry.
 */
import { assertDefined } from '#base/assert';
import { type BoxEntry, newBox } from './box-entry.ts';

export class BoxTable {
  readonly #byId = new Map<string, BoxEntry>();
  readonly #byNumber: (BoxEntry | undefined)[] = [];
  readonly #unused: number[] = [];
  #offered = new Int32Array(64);

  /** Free GPU nodes of each box by number; 0 while it is not reachable. Good until a box is added. */
  get offered(): Int32Array {
    return this.#offered;
  }

  get(id: string): BoxEntry | undefined {
    return this.#byId.get(id);
  }

  at(number: number): BoxEntry {
    return assertDefined(this.#byNumber[number], 'a path leads to a box that is not in the table');
  }

  values(): IterableIterator<BoxEntry> {
    return this.#byId.values();
  }

  /** The box of this id, made when there is none. */
  of(id: string): BoxEntry {
    let box = this.#byId.get(id);
    if (box === undefined) {
      const number = this.#unused.pop() ?? this.#byNumber.length;
      box = newBox(id, number);
      this.#byId.set(id, box);
      this.#byNumber[number] = box;
      if (number >= this.#offered.length) this.#grow();
    }
    return box;
  }

  /** After a change of what the box has free or of its reachability. */
  updateOffer(box: BoxEntry): void {
    this.#offered[box.number] = box.reachable ? box.free : 0;
  }

  /** No path may lead to it. Its number goes to another. */
  delete(box: BoxEntry): void {
    this.#byId.delete(box.id);
    this.#byNumber[box.number] = undefined;
    this.#offered[box.number] = 0;
    this.#unused.push(box.number);
  }

  #grow(): void {
    const grown = new Int32Array(2 * this.#offered.length);
    grown.set(this.#offered);
    this.#offered = grown;
  }
}
