import { SPARE_BYTES } from './json-skip.ts';

/** The bytes of a value that lies across pieces. */
export class Carry {
  #bytes = new Uint8Array(1 << 12);
  #length = 0;
  /** It got too long: there are none. */
  isGivenUp = false;

  get isEmpty(): boolean {
    return this.#length === 0 && !this.isGivenUp;
  }

  append(piece: Uint8Array, start: number, end: number): void {
    if (this.isGivenUp) return;
    const length = this.#length + end - start;
    if (length + SPARE_BYTES > this.#bytes.length) {
      const larger = new Uint8Array(Math.max(length + SPARE_BYTES, 2 * this.#bytes.length));
      larger.set(this.#bytes.subarray(0, this.#length));
      this.#bytes = larger;
    }
    this.#bytes.set(piece.subarray(start, end), this.#length);
    this.#length = length;
  }

  /** `length` bytes count, and some spare ones follow; valid until the next change. */
  get bytes(): Uint8Array {
    return this.#bytes;
  }

  get length(): number {
    return this.#length;
  }

  /** A copy; the carry is empty afterwards. */
  take(): Uint8Array {
    const copy = this.#bytes.slice(0, this.#length);
    this.clear();
    return copy;
  }

  giveUp(): void {
    this.clear();
    this.isGivenUp = true;
  }

  clear(): void {
    this.#length = 0;
    this.isGivenUp = false;
    if (this.#bytes.length > 1 << 20) this.#bytes = new Uint8Array(1 << 12);
  }
}
