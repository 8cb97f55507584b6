/** Waits of a certain time that something may end before. */
import type { Clock } from './clock.ts';
import { nanos } from './units.ts';

export class Pause {
  readonly #running = new Set<() => void>();

  /** Returns after `ns`, or at the next `end`. */
  for(clock: Clock, ns: number): Promise<void> {
    return new Promise((resolve) => {
      const over = (): void => {
        cancel();
        this.#running.delete(over);
        resolve();
      };
      const cancel = clock.at(nanos(clock.now() + ns), over);
      this.#running.add(over);
    });
  }

  /** Ends those that run now. */
  end(): void {
    for (const over of this.#running) over();
  }
}
