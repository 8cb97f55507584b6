/** Which host slots take which functions, all at the same time. */
import { type BarNeeds, fitsSlot } from './bar-needs.ts';
import type { HostSlotFacts } from './facts.ts';

/** Functions with equal needs, and the slots (as positions in the list of free ones) that take them. */
export interface Shape {
  readonly needs: BarNeeds;
  readonly fitting: readonly number[];
}

export function shapeOf(needs: BarNeeds, slots: readonly HostSlotFacts[]): Shape {
  const fitting: number[] = [];
  for (const [position, slot] of slots.entries()) {
    if (fitsSlot(needs, slot)) fitting.push(position);
  }
  return { needs, fitting };
}

/**
 * A bipartite matching that grows by one function at a time (augmenting paths, so that earlier ones
 * move to other slots where that makes room). Sets of functions that fit together form a matroid:
 * adding in any order, and leaving out what does not fit, ends with as many as there can be.
 */
export class SlotMatching {
  /** By position of the slot. */
  readonly #takenBy: (Shape | undefined)[] = [];
  /** Up to where a shape's slots are known to be taken: they never become free again. */
  readonly #passed = new Map<Shape, number>();
  /** For which there will be no room any more. */
  readonly #full = new Set<Shape>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  shapeAt(position: number): Shape | undefined {
    return this.#takenBy[position];
  }

  /** Makes room for one more, in the first of its slots that is free; false when there is none. */
  add(shape: Shape): boolean {
    if (this.#full.has(shape)) return false;
    if (!this.#takeFree(shape) && !this.#move(shape, new Set())) {
      this.#full.add(shape);
      return false;
    }
    this.#size++;
    return true;
  }

  #takeFree(shape: Shape): boolean {
    const { fitting } = shape;
    let next = this.#passed.get(shape) ?? 0;
    while (next < fitting.length && this.#takenBy[fitting[next] ?? 0] !== undefined) next++;
    this.#passed.set(shape, next);
    const free = fitting[next];
    if (free !== undefined) this.#takenBy[free] = shape;
    return free !== undefined;
  }

  /** Functions of one shape can move to the same slots: trying one of them is enough. */
  #move(shape: Shape, tried: Set<Shape>): boolean {
    tried.add(shape);
    for (const position of shape.fitting) {
      const other = this.#takenBy[position];
      if (other === undefined || tried.has(other)) continue;
      if (this.#takeFree(other) || this.#move(other, tried)) {
        this.#takenBy[position] = shape;
        return true;
      }
    }
    return false;
  }
}
