/**
 * One command ring of the accelerator. Commands are fetched ahead by DMA, and run one at a time in
 * ring order, each to its end:
 *
 *   OFF ─enable→ IDLE ─command→ TRANSFER ─data moved→ TIMED ─duration over→ SIGNAL ─fence and
 *   interrupt sent→ IDLE; any error → HALTED; disable → OFF from everywhere. A command may be HELD
 *   before its TRANSFER: an EVENT_WAIT by its event, a copy by the copy engine it has to share.
 *
 * HtoD copies that follow each other read ahead (`HtodCopies`), so that a round trip is not lost between
 * them. They still finish and signal in ring order.
 *
 * Two DMA channels belong to a ring: that of the `RingReader` fetches commands, so that a fetch need not
 * queue behind a long copy; the other moves data, fences and interrupts (`CommandSignal`), in order.
 */
import type { Nanos } from '#base/units';
import { type DmaClient, DmaStatus } from '#pcie/endpoint-transfer';
import { AccelCommand, COMMAND_BYTES, FLAG_DURATION, Opcode } from './accel-command.ts';
import type { ChannelContext } from './accel-context.ts';
import { HtodCopies } from './accel-htod-copies.ts';
import { runKernel } from './accel-kernels.ts';
import {
  AccelError,
  CHANNEL_BUSY,
  CHANNEL_ENABLED,
  CHANNEL_HALTED,
  CONTROL_ENABLE,
  CONTROL_ERROR_INTERRUPT,
} from './accel-registers.ts';
import { RingReader } from './accel-ring-reader.ts';
import { CommandSignal } from './accel-signal.ts';

const State = { OFF: 0, IDLE: 1, TRANSFER: 2, TIMED: 3, SIGNAL: 4, HALTED: 5, HELD: 6 } as const;
type State = (typeof State)[keyof typeof State];

// Cookies of this channel's own DMA.
const WRITTEN = 1;
const ERROR_SENT = 2;

export class AccelChannel implements DmaClient {
  ringBaseLo = 0;
  ringBaseHi = 0;
  ringEntries = 0;
  commandsDone = 0;
  errorCode: AccelError = AccelError.NONE;
  errorIndex = 0;
  errorAddress = 0;
  /** When the running command's duration is over, or Infinity. */
  wakeAtNs = Infinity;
  readonly signal: CommandSignal;

  readonly #index: number;
  readonly #context: ChannelContext;
  readonly #dataChannel: number;
  readonly #reader: RingReader;
  readonly #copies: HtodCopies;
  readonly #command = new AccelCommand();
  #control = 0;
  #state: State = State.OFF;
  #advancing = false;
  #startedNs = 0;

  constructor(index: number, context: ChannelContext) {
    this.#index = index;
    this.#context = context;
    this.#dataChannel = 2 * index + 1;
    const { dma } = context.endpoint;
    const { onFetch } = context;
    this.#reader = new RingReader(
      dma,
      2 * index,
      context,
      (now) => this.#advance(now),
      onFetch && ((now, askedNs, commands) => onFetch(now, index, askedNs, commands)),
    );
    this.#copies = new HtodCopies(context, this.#dataChannel, this.#reader, (now, slot, status) => {
      // A later copy waits for its turn with what it has.
      if (slot === this.#reader.slotOf(0)) this.#copied(now, status);
      this.#advance(now);
    });
    this.signal = new CommandSignal(index, this.#dataChannel, context, (now) => {
      this.#complete(now);
      this.#advance(now);
    });
  }

  get head(): number {
    return this.#reader.head;
  }

  get tail(): number {
    return this.#reader.tail;
  }

  get control(): number {
    return this.#control;
  }

  get status(): number {
    switch (this.#state) {
      case State.OFF:
        return 0;
      case State.HALTED:
        return CHANNEL_ENABLED | CHANNEL_HALTED;
      case State.IDLE:
        return this.head === this.tail ? CHANNEL_ENABLED : CHANNEL_ENABLED | CHANNEL_BUSY;
      default:
        return CHANNEL_ENABLED | CHANNEL_BUSY;
    }
  }

  /** Ring registers may change only while this is true. */
  get isOff(): boolean {
    return this.#state === State.OFF;
  }

  writeControl(now: Nanos, value: number): void {
    this.#control = value & (CONTROL_ENABLE | CONTROL_ERROR_INTERRUPT);
    const enable = (value & CONTROL_ENABLE) !== 0;
    if (enable && this.#state === State.OFF) this.#enable(now);
    else if (!enable && this.#state !== State.OFF) this.#disable(now);
  }

  doorbell(now: Nanos, tail: number): void {
    if (this.#state === State.OFF || this.#state === State.HALTED) return;
    if (tail >= this.ringEntries) {
      this.#halt(now, AccelError.BAD_RING, 0);
      return;
    }
    this.#reader.offer(now, tail);
    this.#advance(now);
  }

  /** As at power-on; nothing of what was under way is finished. */
  reset(now: Nanos): void {
    if (this.#state !== State.OFF) this.#disable(now);
    this.#control = 0;
    this.ringBaseLo = 0;
    this.ringBaseHi = 0;
    this.ringEntries = 0;
    this.#clearProgress();
  }

  /** Forgets what commands brought in. */
  scrub(): void {
    this.#reader.scrub();
    Object.assign(this.#command, new AccelCommand());
    this.#copies.scrub();
  }

  tick(now: Nanos): void {
    if (this.#state !== State.TIMED || now < this.wakeAtNs) return;
    this.wakeAtNs = Infinity;
    this.#signal(now);
    this.#advance(now);
  }

  dmaDone(now: Nanos, cookie: number): void {
    if (cookie !== WRITTEN) return;
    this.#finish(now, 0);
    this.#advance(now);
  }

  #enable(now: Nanos): void {
    this.#clearProgress();
    this.#state = State.IDLE;
    const base = this.ringBaseHi * 0x1_0000_0000 + this.ringBaseLo;
    if (!this.#reader.start(base, this.ringEntries)) {
      this.#halt(now, AccelError.BAD_RING, base);
    }
  }

  #disable(now: Nanos): void {
    this.#state = State.OFF;
    this.wakeAtNs = Infinity;
    this.#dropWork(now);
  }

  /** Nothing fetched or under way counts any more. */
  #dropWork(now: Nanos): void {
    const { endpoint, holds } = this.#context;
    this.#reader.stop();
    endpoint.dma.abort(this.#dataChannel);
    holds.forget(now, this);
    this.#copies.ahead = 0;
  }

  #clearProgress(): void {
    this.#reader.clear();
    this.commandsDone = 0;
    this.errorCode = AccelError.NONE;
    this.errorIndex = 0;
    this.errorAddress = 0;
    this.signal.clear();
  }

  /** Runs what can be run. A DMA may be over before its call returns, so this is a loop, not a call. */
  #advance(now: Nanos): void {
    if (this.#advancing) return;
    this.#advancing = true;
    const reader = this.#reader;
    while (this.#state === State.IDLE) {
      if (reader.fetched === 0) {
        // Commands fetched before the failed one have run by now.
        if (reader.status !== DmaStatus.OK) {
          this.#halt(now, dmaError(reader.status), reader.headAddress);
        }
        break;
      }
      reader.decode(0, this.#command);
      if (this.#copies.ahead > 0) this.#takeTurn(now);
      else this.#start(now);
    }
    if (this.#command.opcode === Opcode.COPY_HTOD) {
      while (this.#state === State.TRANSFER && this.#copies.startNext(now));
    }
    this.#advancing = false;
  }

  /** The command at `head` is a copy that was started ahead of its turn. */
  #takeTurn(now: Nanos): void {
    this.#startedNs = now;
    this.#state = State.TRANSFER;
    const status = this.#copies.takeTurn();
    if (status !== undefined) this.#copied(now, status);
  }

  /** What held the command at `head` up does so no longer: it is tried again. */
  released(now: Nanos): void {
    if (this.#state !== State.HELD) return;
    this.#state = State.IDLE;
    this.#advance(now);
  }

  #copied(now: Nanos, status: DmaStatus): void {
    if (status === DmaStatus.OK) this.#finish(now, 0);
    else this.#halt(now, dmaError(status), this.#command.operand0);
  }

  #start(now: Nanos): void {
    const { checker, holds, kernels, memory, endpoint } = this.#context;
    const command = this.#command;
    const error = checker.check(command);
    if (error !== AccelError.NONE) {
      this.#halt(now, error, checker.faultAddress);
      return;
    }
    if (holds.isHeld(this, command)) {
      this.#state = State.HELD;
      return;
    }
    this.#startedNs = now;
    this.#state = State.TRANSFER;
    const { operand0, operand1, operand2 } = command;
    switch (command.opcode) {
      case Opcode.EVENT_SIGNAL:
        holds.raise(now, operand0, operand1);
        break;
      case Opcode.COPY_HTOD:
        if (operand2 === 0) break;
        this.#copies.start(now, this.#reader.slotOf(0), command);
        return;
      case Opcode.COPY_DTOH:
        if (operand2 === 0) break;
        endpoint.dma.write(
          now,
          this.#dataChannel,
          operand1,
          memory,
          operand0,
          operand2,
          this,
          WRITTEN,
        );
        return;
      default:
        this.#finish(now, runKernel(kernels, command));
        return;
    }
    this.#finish(now, 0);
  }

  /** The command's effect is there; its time may not be over. */
  #finish(now: Nanos, flops: number): void {
    const command = this.#command;
    const askedNs = (command.flags & FLAG_DURATION) !== 0 ? command.durationNs : 0;
    const endNs = this.#startedNs + Math.max(askedNs, flops * this.#context.nsPerFlop);
    if (endNs > now) {
      this.#state = State.TIMED;
      this.wakeAtNs = endNs;
      return;
    }
    this.#signal(now);
  }

  #signal(now: Nanos): void {
    this.#state = State.SIGNAL;
    const { view } = this.#reader;
    this.signal.send(now, this.#command, view, this.#reader.slotOf(0) * COMMAND_BYTES);
  }

  #complete(now: Nanos): void {
    this.#context.onCommand?.(now, this.#index, this.#startedNs, this.#command);
    // Copies of this channel that read ahead keep the engine: they use it already.
    if (this.#copies.ahead === 0) this.#context.holds.giveBack(now, this, this.#command);
    this.commandsDone = (this.commandsDone + 1) >>> 0;
    this.#state = State.IDLE;
    this.#reader.pass(now);
  }

  #halt(now: Nanos, error: AccelError, address: number): void {
    this.#state = State.HALTED;
    this.wakeAtNs = Infinity;
    // What is in flight belongs to a ring that will not go on.
    this.#dropWork(now);
    this.errorCode = error;
    this.errorIndex = this.head;
    this.errorAddress = address;
    this.#context.channelHalted(this.#index, error, this.head, address);
    if ((this.#control & CONTROL_ERROR_INTERRUPT) !== 0) {
      this.#context.endpoint.interrupt(now, this.#dataChannel, 0, this, ERROR_SENT);
    }
  }
}

function dmaError(status: DmaStatus): AccelError {
  switch (status) {
    case DmaStatus.UNSUPPORTED:
      return AccelError.DMA_UNSUPPORTED;
    case DmaStatus.TIMEOUT:
      return AccelError.DMA_TIMEOUT;
    case DmaStatus.POISONED:
      return AccelError.DMA_POISONED;
    default:
      return AccelError.DMA_ABORTED;
  }
}
