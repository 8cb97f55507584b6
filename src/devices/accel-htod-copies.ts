/**
 * HtoD copies of one ring that have been started, each at the slot its command has: how they ended, and
 * where in device memory they write.
 */
import type { DmaStatus } from '#pcie/endpoint-transfer';
import type { AccelCommand } from './accel-command.ts';

/** Of a copy that has no `DmaStatus` yet. */
const IN_FLIGHT = -1;

export class HtodCopies {
  readonly #status: Int8Array;
  readonly #start: Float64Array;
  readonly #end: Float64Array;

  constructor(slots: number) {
    this.#status = new Int8Array(slots);
    this.#start = new Float64Array(slots);
    this.#end = new Float64Array(slots);
  }

  begin(slot: number, { operand1, operand2 }: Readonly<AccelCommand>): void {
    this.#status[slot] = IN_FLIGHT;
    this.#start[slot] = operand1;
    this.#end[slot] = operand1 + operand2;
  }

  end(slot: number, status: DmaStatus): void {
    this.#status[slot] = status;
  }

  /** How the copy ended; undefined while it has not. */
  statusOf(slot: number): DmaStatus | undefined {
    const status = this.#status[slot] as number;
    return status === IN_FLIGHT ? undefined : (status as DmaStatus);
  }

  /** Whether `command` would write where the copy at `slot` does not. */
  isApart(slot: number, { operand1, operand2 }: Readonly<AccelCommand>): boolean {
    return (
      operand1 + operand2 <= (this.#start[slot] as number) ||
      operand1 >= (this.#end[slot] as number)
    );
  }
}
