/** Holds back what has to come behind things that are under way, until all of those have ended. */
import type { Nanos } from './units.ts';

type Run = (now: Nanos) => void;

export class Barrier {
  /** Serial numbers of what is under way, ascending. */
  readonly #underWay = new Set<number>();
  #waiting: { readonly serial: number; readonly run: Run }[] = [];
  #serial = 0;

  /** Something is under way from here on. Returns what `ended` takes. */
  begin(): number {
    this.#underWay.add(++this.#serial);
    return this.#serial;
  }

  ended(now: Nanos, serial: number): void {
    this.#underWay.delete(serial);
    for (;;) {
      const [first] = this.#waiting;
      if (first === undefined || first.serial >= this.#oldest()) return;
      this.#waiting.shift();
      first.run(now);
    }
  }

  /** Nothing is under way, and nothing waits: what asks now need not. */
  get isOpen(): boolean {
    return this.#underWay.size === 0 && this.#waiting.length === 0;
  }

  /** Calls `run` once all that has begun so far has ended, in the order of these calls. Not for an open one. */
  wait(run: Run): void {
    this.#waiting.push({ serial: this.#serial, run });
  }

  /** Nothing is under way any more; what waits is dropped. */
  clear(): void {
    this.#underWay.clear();
    this.#waiting = [];
  }

  #oldest(): number {
    for (const serial of this.#underWay) return serial;
    return Infinity;
  }
}
