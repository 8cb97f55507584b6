/** The best of many scores of which few change at a time: a tree of winners. */

/** Scores start at -Infinity, which never wins. Among equals the lowest index wins. */
export class Tournament {
  readonly #leaves: number;
  readonly #scores: Float64Array;
  readonly #winners: Int32Array;

  constructor(count: number) {
    let leaves = 1;
    while (leaves < count) leaves *= 2;
    this.#leaves = leaves;
    this.#scores = new Float64Array(leaves).fill(-Infinity);
    this.#winners = new Int32Array(2 * leaves);
    for (let i = 0; i < leaves; i++) this.#winners[leaves + i] = i;
    for (let i = leaves - 1; i >= 1; i--) this.#decide(i);
  }

  set(index: number, score: number): void {
    if (this.#scores[index] === score) return;
    this.#scores[index] = score;
    for (let i = (this.#leaves + index) >> 1; i >= 1; i >>= 1) this.#decide(i);
  }

  /** The index of the best, or -1 if all are -Infinity. */
  best(): number {
    const winner = this.#winners[1] as number;
    return this.#scores[winner] === -Infinity ? -1 : winner;
  }

  score(index: number): number {
    return this.#scores[index] as number;
  }

  #decide(i: number): void {
    const left = this.#winners[2 * i] as number;
    const right = this.#winners[2 * i + 1] as number;
    this.#winners[i] =
      (this.#scores[right] as number) > (this.#scores[left] as number) ? right : left;
  }
}
