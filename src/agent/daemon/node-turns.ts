/**
 * The turns of a node in real time. Every event from outside (a frame, a timer, a table, a task) ends in
 * `settle`, which sends what it caused, says that something changed, and arms the timer anew.
 */
import { type Clock, type Timed, TimerDriver } from '#base/clock';
import type { Nanos } from '#base/units';

export interface NodeTurnsOptions {
  readonly clock: Clock;
  /** The machines of the node; woken in this order. */
  readonly machines: readonly Timed[];
  /** Sends what they have to send. */
  readonly flush: (now: Nanos) => void;
  /** Something changed; called at the end of a turn. It may act, and settle in turn. */
  readonly onChanged: (now: Nanos) => void;
}

export class NodeTurns {
  readonly #options: NodeTurnsOptions;
  readonly #driver: TimerDriver;
  #hasChanged = false;
  #isTelling = false;

  constructor(options: NodeTurnsOptions) {
    const { clock, machines } = options;
    this.#options = options;
    this.#driver = new TimerDriver(clock, {
      nextDeadlineNs: () => {
        let nextNs = Infinity;
        for (const machine of machines) nextNs = Math.min(nextNs, machine.nextDeadlineNs());
        return nextNs;
      },
      tick: (now) => {
        for (const machine of machines) machine.tick(now);
        this.#end(now);
      },
    });
  }

  /** Told at the end of this turn. */
  changed(): void {
    this.#hasChanged = true;
  }

  settle(): void {
    this.#end(this.#options.clock.now());
    this.rearm();
  }

  /** A machine has another deadline. */
  rearm(): void {
    this.#driver.update();
  }

  stop(): void {
    this.#driver.stop();
  }

  #end(now: Nanos): void {
    if (this.#isTelling) return;
    this.#isTelling = true;
    try {
      for (;;) {
        this.#options.flush(now);
        if (!this.#hasChanged) return;
        this.#hasChanged = false;
        this.#options.onChanged(now);
      }
    } finally {
      this.#isTelling = false;
    }
  }
}
