/** A part of an array, to be used again and again by who took it. */
export interface SlabPlace {
  readonly bytes: Uint8Array;
  readonly offset: number;
}

/** Places in a few large arrays: copying among many small ones is slow (copy-bytes.ts). */
export class Slab {
  readonly #slabBytes: number;
  #slab = new Uint8Array(0);
  #used = 0;

  /** `slabBytes`: of each array, unless a place needs more. */
  constructor(slabBytes: number) {
    this.#slabBytes = slabBytes;
  }

  take(bytes: number): SlabPlace {
    if (this.#used + bytes > this.#slab.length) {
      this.#slab = new Uint8Array(Math.max(this.#slabBytes, bytes));
      this.#used = 0;
    }
    const offset = this.#used;
    this.#used += bytes;
    return { bytes: this.#slab, offset };
  }
}
