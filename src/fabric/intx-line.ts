/**
 * INTA of one function, as its host is told of it: what the function says by its messages, while the
 * function is in its slot and the host has not set Interrupt Disable (invariant 3: a function that goes on
 * all the same interrupts nobody).
 */
import type { Nanos } from '#base/units';
import type { RootSide } from '#pcie/root-port';

export class IntxLine {
  readonly #virtualSlot: number;
  /** As the function says, and as the root was told. */
  #asserted = false;
  #shown = false;

  constructor(virtualSlot: number) {
    this.#virtualSlot = virtualSlot;
  }

  /** The function has said so. */
  set(asserted: boolean): void {
    this.#asserted = asserted;
  }

  /** Tells the root of a change; `enabled` says whether the host lets the function interrupt. */
  show(now: Nanos, root: RootSide, enabled: boolean): void {
    const shown = this.#asserted && enabled;
    if (shown === this.#shown) return;
    this.#shown = shown;
    root.interruptPin(now, this.#virtualSlot, shown);
  }

  /** The function has gone. */
  release(now: Nanos, root: RootSide): void {
    this.#asserted = false;
    this.show(now, root, false);
  }
}
