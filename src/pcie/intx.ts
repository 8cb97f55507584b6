/**
 * INTx emulation (PCIe 5.0 base, 2.2.8.1 and 6.1.3): the level-triggered interrupt of conventional PCI,
 * as a virtual wire that two messages switch. One wire, INTA, which is all a single function may use.
 */
import {
  COMMAND,
  type ConfigSpace,
  INTERRUPT_LINE,
  INTERRUPT_PIN_INTA,
  STATUS_INTERRUPT_STATUS,
} from './config-space.ts';

export const MESSAGE_ASSERT_INTA = 0x20;
export const MESSAGE_DEASSERT_INTA = 0x24;
/** Local, terminated at the receiver (table 2-18). */
export const ROUTE_LOCAL = 4;

export class IntxWire {
  readonly #config: ConfigSpace;
  /** Whether the function has an interrupt pending, and whether the receiver was told so. */
  #level = false;
  #shown = false;

  constructor(config: ConfigSpace) {
    this.#config = config;
    config.define(INTERRUPT_LINE, INTERRUPT_PIN_INTA, 0xff);
  }

  /** Says whether an interrupt is pending: Interrupt Status follows, whatever masks the wire (7.5.1.1.4). */
  setLevel(level: boolean): void {
    this.#level = level;
    if (level) this.#config.setBits(COMMAND, STATUS_INTERRUPT_STATUS);
    else this.#config.clearBits(COMMAND, STATUS_INTERRUPT_STATUS);
  }

  /** Code of the message that is owed to the receiver while the wire may be asserted or not; 0 for none. */
  owed(mayAssert: boolean): number {
    const shown = this.#level && mayAssert;
    if (shown === this.#shown) return 0;
    return shown ? MESSAGE_ASSERT_INTA : MESSAGE_DEASSERT_INTA;
  }

  /** The message owed has been sent. */
  sent(): void {
    this.#shown = !this.#shown;
  }

  /** A reset ends the session with the receiver: it is told nothing, and holds the wire deasserted. */
  reset(): void {
    this.#level = false;
    this.#shown = false;
  }
}
