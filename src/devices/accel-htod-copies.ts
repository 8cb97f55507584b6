/**
 * HtoD copies of one ring, each at the slot its command has. While the one at `head` waits for its data, the
 * next ones ask for theirs: how each ended is kept until its turn, and none starts that writes where an
 * earlier one does.
 */
import type { Nanos } from '#base/units';
import type { DmaClient, DmaStatus } from '#pcie/endpoint-transfer';
import { AccelCommand, Opcode } from './accel-command.ts';
import type { ChannelContext } from './accel-context.ts';
import { AccelError } from './accel-registers.ts';
import type { RingReader } from './accel-ring-reader.ts';

/** Of a copy that has no `DmaStatus` yet. */
const IN_FLIGHT = -1;

export class HtodCopies implements DmaClient {
  /** Copies behind the command at `head` that have been started. */
  ahead = 0;
  readonly #context: ChannelContext;
  readonly #dmaChannel: number;
  readonly #reader: RingReader;
  readonly #ended: (now: Nanos, slot: number, status: DmaStatus) => void;
  readonly #next = new AccelCommand();
  // By slot; where in device memory a copy writes.
  readonly #status: Int8Array;
  readonly #start: Float64Array;
  readonly #end: Float64Array;

  /** `ended` is told the slot of each copy that has ended. */
  constructor(
    context: ChannelContext,
    dmaChannel: number,
    reader: RingReader,
    ended: (now: Nanos, slot: number, status: DmaStatus) => void,
  ) {
    this.#context = context;
    this.#dmaChannel = dmaChannel;
    this.#reader = reader;
    this.#ended = ended;
    const slots = context.prefetchCommands;
    this.#status = new Int8Array(slots);
    this.#start = new Float64Array(slots);
    this.#end = new Float64Array(slots);
  }

  /** Starts `command`, the one at `slot`. */
  start(now: Nanos, slot: number, command: Readonly<AccelCommand>): void {
    const { operand0, operand1, operand2 } = command;
    const { endpoint, memory } = this.#context;
    this.#status[slot] = IN_FLIGHT;
    this.#start[slot] = operand1;
    this.#end[slot] = operand1 + operand2;
    endpoint.dma.read(now, this.#dmaChannel, operand0, memory, operand1, operand2, this, slot);
  }

  /** Starts the next command behind those that are started, if it is such a copy. Returns whether it did. */
  startNext(now: Nanos): boolean {
    const reader = this.#reader;
    const next = this.#next;
    const index = this.ahead + 1;
    if (index >= reader.fetched) return false;
    reader.decode(index, next);
    const isCopy = next.opcode === Opcode.COPY_HTOD && next.operand2 > 0;
    // What is wrong with it is told when its turn comes.
    if (!isCopy || this.#context.checker.check(next) !== AccelError.NONE) return false;
    for (let earlier = 0; earlier < index; earlier++) {
      if (!this.#isApart(reader.slotOf(earlier), next)) return false;
    }
    this.ahead++;
    this.start(now, reader.slotOf(index), next);
    return true;
  }

  /** The first copy ahead is the command at `head` now. How it ended; undefined while it has not. */
  takeTurn(): DmaStatus | undefined {
    this.ahead--;
    const status = this.#status[this.#reader.slotOf(0)] as number;
    return status === IN_FLIGHT ? undefined : (status as DmaStatus);
  }

  /** Forgets what commands brought in. */
  scrub(): void {
    Object.assign(this.#next, new AccelCommand());
  }

  dmaDone(now: Nanos, slot: number, status: DmaStatus): void {
    this.#status[slot] = status;
    this.#ended(now, slot, status);
  }

  /** Whether `command` would write where the copy at `slot` does not. */
  #isApart(slot: number, { operand1, operand2 }: Readonly<AccelCommand>): boolean {
    return (
      operand1 + operand2 <= (this.#start[slot] as number) ||
      operand1 >= (this.#end[slot] as number)
    );
  }
}
