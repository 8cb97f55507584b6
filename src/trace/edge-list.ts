/** Edges collected in any order, then put in order of what they lead to. */
import { firstAtLeast, uint8Column, uint32Column } from './column.ts';

/** Bits of an edge's flags. */
export const EDGE = {
  /** Leaves the start of its source, not the end: the two overlap in the record. */
  fromStart: 1,
  /** Nothing in the trace tells of it: chosen by a rule. */
  inferred: 2,
  /** Stands for a synchronisation: of a host call with work, or of one stream with another. */
  sync: 4,
  /** Closes a circle of events recorded at one time; left out. */
  dropped: 8,
} as const;

/** Edges by target, ascending; those of one target stand together. */
export interface Edges {
  readonly count: number;
  readonly target: Uint32Array;
  readonly source: Uint32Array;
  /** `EDGE` bits. */
  readonly flags: Uint8Array;
}

export class EdgeList {
  readonly #target = uint32Column();
  readonly #source = uint32Column();
  readonly #flags = uint8Column();
  #isSorted = true;

  get count(): number {
    return this.#target.count;
  }

  add(target: number, source: number, flags: number): void {
    const last = this.#target.count - 1;
    if (last >= 0 && this.#target.at(last) > target) this.#isSorted = false;
    this.#target.push(target);
    this.#source.push(source);
    this.#flags.push(flags);
  }

  /** The list is empty afterwards. */
  finish(): Edges {
    const order = Uint32Array.from({ length: this.count }, (_, edge) => edge);
    if (!this.#isSorted) order.sort((a, b) => this.#target.at(a) - this.#target.at(b) || a - b);
    return {
      count: order.length,
      target: this.#target.take(order),
      source: this.#source.take(order),
      flags: this.#flags.take(order),
    };
  }
}

/** First edge whose target is at least `target`. */
export function firstEdge(edges: Edges, target: number): number {
  return firstAtLeast(edges.target, 0, edges.count, target);
}
