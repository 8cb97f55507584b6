/** The bytes of a value that came in earlier pieces. */
export class Carry {
  #bytes = new Uint8Array(1 << 12);
  #length = 0;
  isGivenUp = false;

  get isEmpty(): boolean {
    return this.#length === 0 && !this.isGivenUp;
  }

  append(piece: Uint8Array, start: number, end: number): void {
    if (this.isGivenUp) return;
    const length = this.#length + end - start;
    if (length > this.#bytes.length) {
      const larger = new Uint8Array(Math.max(length, 2 * this.#bytes.length));
      larger.set(this.#bytes.subarray(0, this.#length));
      this.#bytes = larger;
    }
    this.#bytes.set(piece.subarray(start, end), this.#length);
    this.#length = length;
  }

  /** Valid until the next change. */
  view(): Uint8Array {
    return this.#bytes.subarray(0, this.#length);
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
