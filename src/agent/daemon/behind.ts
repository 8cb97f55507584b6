/** What has to come behind things that are under way: it waits until all of them have ended. */
import type { Nanos } from '#base/units';

type Run = (now: Nanos) => void;

export class Behind {
  /** Serial numbers of what is under way, ascending. */
  readonly #open = new Set<number>();
  #waiting: { readonly serial: number; readonly run: Run }[] = [];
  #serial = 0;

  begin(): number {
    this.#open.add(++this.#serial);
    return this.#serial;
  }

  ended(now: Nanos, serial: number): void {
    this.#open.delete(serial);
    for (;;) {
      const [first] = this.#waiting;
      if (first === undefined || first.serial >= this.#oldest()) return;
      this.#waiting.shift();
      first.run(now);
    }
  }

  /** Calls `run` once all that has begun so far has ended: within the call if it has. In order. */
  after(now: Nanos, run: Run): void {
    if (this.#open.size === 0 && this.#waiting.length === 0) run(now);
    else this.#waiting.push({ serial: this.#serial, run });
  }

  /** Nothing is under way any more; what waits is dropped. */
  clear(): void {
    this.#open.clear();
    this.#waiting = [];
  }

  #oldest(): number {
    for (const serial of this.#open) return serial;
    return Infinity;
  }
}
