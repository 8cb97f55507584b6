/**
 * What a command of one channel can be held up by that belongs to the whole device: events, and copy
 * engines. Both know the channels that wait and release them; a channel then tries its command again.
 */
import { assert } from '#base/assert';
import type { Nanos } from '#base/units';
import { type AccelCommand, Opcode } from './accel-command.ts';
import { EVENT_COUNT } from './accel-registers.ts';

/** A channel whose command at its head is held up. */
export interface Held {
  released(now: Nanos): void;
}

interface Waiter {
  readonly held: Held;
  readonly event: number;
  readonly value: number;
}

/** The events: numbers that only grow, 0 after a reset. */
class EventFile {
  readonly #values = new Float64Array(EVENT_COUNT);
  #waiters: Waiter[] = [];

  /** True if the event has reached `value`; otherwise `held` is released when it has. */
  waitFor(held: Held, event: number, value: number): boolean {
    if ((this.#values[event] as number) >= value) return true;
    this.#waiters.push({ held, event, value });
    return false;
  }

  /** The event becomes `value`, unless it is more already. */
  raise(now: Nanos, event: number, value: number): void {
    if ((this.#values[event] as number) >= value) return;
    this.#values[event] = value;
    const due = this.#waiters.filter((waiter) => waiter.event === event && waiter.value <= value);
    if (due.length === 0) return;
    this.#waiters = this.#waiters.filter((waiter) => !due.includes(waiter));
    for (const { held } of due) held.released(now);
  }

  forget(held: Held): void {
    this.#waiters = this.#waiters.filter((waiter) => waiter.held !== held);
  }

  reset(): void {
    this.#values.fill(0);
    this.#waiters = [];
  }
}

/** An engine that one channel has at a time; the others get it in the order they asked. */
class CopyEngine {
  #user: Held | undefined;
  #queue: Held[] = [];

  /** True if `held` has the engine now; otherwise it is released when its turn has come. */
  take(held: Held): boolean {
    this.#user ??= held;
    if (this.#user === held) return true;
    this.#queue.push(held);
    return false;
  }

  giveBack(now: Nanos, held: Held): void {
    assert(this.#user === held, 'a copy engine is given back by who has it');
    this.#user = this.#queue.shift();
    this.#user?.released(now);
  }

  /** `held` has stopped: it neither has the engine nor waits for it any more. */
  forget(now: Nanos, held: Held): void {
    this.#queue = this.#queue.filter((other) => other !== held);
    if (this.#user === held) this.giveBack(now, held);
  }

  reset(): void {
    this.#user = undefined;
    this.#queue = [];
  }
}

/** All that commands of one device can be held up by. */
export class CommandHolds {
  readonly #events = new EventFile();
  /** The engines all channels share; without them each channel copies by itself. */
  readonly #readEngine: CopyEngine | undefined;
  readonly #writeEngine: CopyEngine | undefined;

  constructor(sharesEngines: boolean) {
    this.#readEngine = sharesEngines ? new CopyEngine() : undefined;
    this.#writeEngine = sharesEngines ? new CopyEngine() : undefined;
  }

  /** Whether something else has to happen first; `held` is then released when it has. */
  isHeld(held: Held, command: Readonly<AccelCommand>): boolean {
    if (command.opcode === Opcode.EVENT_WAIT) {
      return !this.#events.waitFor(held, command.operand0, command.operand1);
    }
    const engine = this.#engineOf(command);
    return engine !== undefined && !engine.take(held);
  }

  /** The event becomes `value`, unless it is more already. */
  raise(now: Nanos, event: number, value: number): void {
    this.#events.raise(now, event, value);
  }

  /** `held` needs the engine of `command`, if any, no longer. */
  giveBack(now: Nanos, held: Held, command: Readonly<AccelCommand>): void {
    this.#engineOf(command)?.giveBack(now, held);
  }

  /** `held` has stopped: it neither has anything nor waits for it any more. */
  forget(now: Nanos, held: Held): void {
    this.#events.forget(held);
    this.#readEngine?.forget(now, held);
    this.#writeEngine?.forget(now, held);
  }

  reset(): void {
    this.#events.reset();
    this.#readEngine?.reset();
    this.#writeEngine?.reset();
  }

  #engineOf({ opcode, operand2 }: Readonly<AccelCommand>): CopyEngine | undefined {
    if (operand2 === 0) return undefined;
    if (opcode === Opcode.COPY_HTOD) return this.#readEngine;
    return opcode === Opcode.COPY_DTOH ? this.#writeEngine : undefined;
  }
}
