/** Which of many things are out of service, when several failures of one may overlap. */
import { assert } from '#base/assert';

export class Outages {
  readonly #reasons: Uint32Array;

  constructor(count: number) {
    this.#reasons = new Uint32Array(count);
  }

  isDown(index: number): boolean {
    return this.#reasons[index] !== 0;
  }

  /** One reason more, or one less, for it to be down. Whether it went down or came up by that. */
  change(index: number, down: boolean): boolean {
    const before = this.#reasons[index] as number;
    assert(down || before > 0, 'nothing comes up more often than it went down');
    this.#reasons[index] = before + (down ? 1 : -1);
    return before === (down ? 0 : 1);
  }
}
