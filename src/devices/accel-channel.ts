/**
 * One command ring of the accelerator. Commands are fetched ahead by DMA, and run one at a time in
 * ring order, each to its end:
 *
 *   OFF ─enable→ IDLE ─command→ TRANSFER ─data moved→ TIMED ─duration over→ SIGNAL ─fence and
 *   interrupt sent→ IDLE; any error → HALTED; disable → OFF from everywhere. A command may be HELD
 *   before its TRANSFER: an EVENT_WAIT by its event, a copy by the copy engine it has to share.
 *
 * HtoD copies that follow each other read ahead: while one waits for its data, the next ones ask for
 * theirs, so that a round trip is not lost between them. They still finish and signal in ring order.
 *
 * Two DMA channels belong to a ring: one fetches commands, so that a fetch need not queue behind a
 * long copy; the other moves data, fences and interrupts, in order.
 */
import type { Nanos } from '#base/units';
import type { Endpoint } from '#pcie/endpoint';
import { type DmaClient, DmaStatus } from '#pcie/endpoint-transfer';
import { type CommandChecker, HOST_ADDRESS_END } from './accel-check.ts';
import {
  AccelCommand,
  bitsFloat,
  COMMAND_BYTES,
  COMMAND_FENCE_VALUE,
  decodeCommand,
  FLAG_ACCUMULATE,
  FLAG_DURATION,
  FLAG_FENCE,
  FLAG_INTERRUPT,
  Opcode,
} from './accel-command.ts';
import type { CopyEngine, EventFile } from './accel-held.ts';
import { fill, type KernelMemory, saxpy, sgemm } from './accel-kernels.ts';
import {
  AccelError,
  CHANNEL_BUSY,
  CHANNEL_ENABLED,
  CHANNEL_HALTED,
  CONTROL_ENABLE,
  CONTROL_ERROR_INTERRUPT,
  MAX_RING_ENTRIES,
  MIN_RING_ENTRIES,
} from './accel-registers.ts';

const State = { OFF: 0, IDLE: 1, TRANSFER: 2, TIMED: 3, SIGNAL: 4, HALTED: 5, HELD: 6 } as const;
type State = (typeof State)[keyof typeof State];

// Cookies of this channel's DMA.
const WRITTEN = 1;
const FENCE_SENT = 2;
const INTERRUPT_SENT = 3;
const ERROR_SENT = 4;
/** Plus the buffer slot of the command: an HtoD copy. */
const COPIED = 8;
/** Plus the buffer slot of the first of the commands. */
const FETCHED = 0x100;

/** Of an HtoD copy that was started and has no `DmaStatus` yet. */
const IN_FLIGHT = -1;

/** `startedNs`: when its turn had come and nothing held it up. It is done at `now`, its fence sent. */
export type CommandObserver = (
  now: Nanos,
  channel: number,
  startedNs: number,
  command: Readonly<AccelCommand>,
) => void;

/** What all channels of one accelerator share. */
export interface ChannelContext {
  readonly endpoint: Endpoint;
  readonly memory: Uint8Array;
  readonly kernels: KernelMemory;
  readonly checker: CommandChecker;
  readonly prefetchCommands: number;
  /** Commands that one fetch brings at most, and fetches under way at once. */
  readonly fetchCommands: number;
  readonly fetchesInFlight: number;
  readonly nsPerFlop: number;
  readonly events: EventFile;
  /** The engines all channels share; without them each channel copies by itself. */
  readonly readEngine: CopyEngine | undefined;
  readonly writeEngine: CopyEngine | undefined;
  /** Told of each command that is done; see `AcceleratorOptions`. */
  readonly onCommand: CommandObserver | undefined;
  /** Sets the channel's bits in INTERRUPT_STATUS. */
  fenceSignalled(channel: number): void;
  channelHalted(channel: number, error: AccelError, index: number, address: number): void;
}

export class AccelChannel implements DmaClient {
  ringBaseLo = 0;
  ringBaseHi = 0;
  ringEntries = 0;
  /** Ring index of the next command to finish, and one past the last command to run. */
  head = 0;
  tail = 0;
  commandsDone = 0;
  errorCode: AccelError = AccelError.NONE;
  errorIndex = 0;
  errorAddress = 0;
  fenceValueLo = 0;
  fenceValueHi = 0;
  /** When the running command's duration is over, or Infinity. */
  wakeAtNs = Infinity;

  readonly #index: number;
  readonly #context: ChannelContext;
  readonly #fetchChannel: number;
  readonly #dataChannel: number;
  readonly #command = new AccelCommand();
  readonly #buffer: Uint8Array;
  readonly #view: DataView;
  /** Copies that were started, by buffer slot: how they ended, and where they write. */
  readonly #copyStatus: Int8Array;
  readonly #copyStart: Float64Array;
  readonly #copyEnd: Float64Array;
  readonly #next = new AccelCommand();
  #control = 0;
  #state: State = State.OFF;
  #advancing = false;
  #startedNs = 0;
  #ringBase = 0;
  /** Entries the buffer is used for; a power of two that divides the ring. */
  #capacity = 1;
  /** Commands in the buffer from `head` on, and how many more are on their way. */
  #fetched = 0;
  #fetching = 0;
  /** Fetches under way, and how many commands each brings, by the buffer slot of the first. */
  #fetches = 0;
  readonly #fetchSize: Uint8Array;
  /** 1 once such a fetch has come, though one before it has not. */
  readonly #fetchCame: Uint8Array;
  #fetchStatus: DmaStatus = DmaStatus.OK;
  /** Commands behind the one at `head` that have been started: HtoD copies all. */
  #ahead = 0;

  constructor(index: number, context: ChannelContext) {
    this.#index = index;
    this.#context = context;
    this.#fetchChannel = 2 * index;
    this.#dataChannel = 2 * index + 1;
    this.#buffer = new Uint8Array(context.prefetchCommands * COMMAND_BYTES);
    this.#view = new DataView(this.#buffer.buffer);
    this.#fetchSize = new Uint8Array(context.prefetchCommands);
    this.#fetchCame = new Uint8Array(context.prefetchCommands);
    this.#copyStatus = new Int8Array(context.prefetchCommands);
    this.#copyStart = new Float64Array(context.prefetchCommands);
    this.#copyEnd = new Float64Array(context.prefetchCommands);
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
    this.tail = tail;
    this.#fetch(now);
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
    this.#buffer.fill(0);
    Object.assign(this.#command, new AccelCommand());
    Object.assign(this.#next, new AccelCommand());
  }

  tick(now: Nanos): void {
    if (this.#state !== State.TIMED || now < this.wakeAtNs) return;
    this.wakeAtNs = Infinity;
    this.#signal(now);
    this.#advance(now);
  }

  dmaDone(now: Nanos, cookie: number, status: DmaStatus): void {
    if (cookie >= FETCHED) {
      this.#fetchDone(now, cookie - FETCHED, status);
      this.#advance(now);
      return;
    }
    switch (cookie) {
      case WRITTEN:
        this.#finish(now, 0);
        break;
      case FENCE_SENT:
        this.#interrupt(now);
        break;
      case INTERRUPT_SENT:
        this.#complete(now);
        break;
      case ERROR_SENT:
        return;
      default: {
        const slot = cookie - COPIED;
        this.#copyStatus[slot] = status;
        // A later copy waits for its turn with what it has.
        if (slot === this.#slotOf(0)) this.#copied(now, status);
      }
    }
    this.#advance(now);
  }

  #enable(now: Nanos): void {
    this.#clearProgress();
    this.#ringBase = this.ringBaseHi * 0x1_0000_0000 + this.ringBaseLo;
    this.#state = State.IDLE;
    const entries = this.ringEntries;
    const isPowerOfTwo = entries > 0 && (entries & (entries - 1)) === 0;
    if (
      !isPowerOfTwo ||
      entries < MIN_RING_ENTRIES ||
      entries > MAX_RING_ENTRIES ||
      this.#ringBase % COMMAND_BYTES !== 0 ||
      this.#ringBase + entries * COMMAND_BYTES >= HOST_ADDRESS_END
    ) {
      this.#halt(now, AccelError.BAD_RING, this.#ringBase);
      return;
    }
    this.#capacity = Math.min(this.#context.prefetchCommands, entries);
  }

  #disable(now: Nanos): void {
    this.#state = State.OFF;
    this.wakeAtNs = Infinity;
    this.#dropWork(now);
  }

  /** Nothing fetched or under way counts any more. */
  #dropWork(now: Nanos): void {
    const { endpoint, events, readEngine, writeEngine } = this.#context;
    endpoint.dma.abort(this.#fetchChannel);
    endpoint.dma.abort(this.#dataChannel);
    events.forget(this);
    readEngine?.forget(now, this);
    writeEngine?.forget(now, this);
    this.#fetching = 0;
    this.#fetches = 0;
    this.#fetchSize.fill(0);
    this.#fetchCame.fill(0);
    this.#fetched = 0;
    this.#ahead = 0;
  }

  #clearProgress(): void {
    this.head = 0;
    this.tail = 0;
    this.commandsDone = 0;
    this.errorCode = AccelError.NONE;
    this.errorIndex = 0;
    this.errorAddress = 0;
    this.fenceValueLo = 0;
    this.fenceValueHi = 0;
    this.#fetchStatus = DmaStatus.OK;
  }

  /** Reads of entries that are there, each as many as fit in one piece. */
  #fetch(now: Nanos): void {
    while (this.#fetches < this.#context.fetchesInFlight && this.#fetchMore(now));
  }

  #fetchMore(now: Nanos): boolean {
    if (this.#fetchStatus !== DmaStatus.OK) return false;
    if (this.#state === State.OFF || this.#state === State.HALTED) return false;
    const mask = this.ringEntries - 1;
    const ahead = this.#fetched + this.#fetching;
    const next = (this.head + ahead) & mask;
    const slot = next & (this.#capacity - 1);
    const count = Math.min(
      (this.tail - next) & mask,
      this.#capacity - ahead,
      this.#capacity - slot,
      this.#context.fetchCommands,
    );
    if (count === 0) return false;
    this.#fetching += count;
    this.#fetches++;
    this.#fetchSize[slot] = count;
    this.#context.endpoint.dma.read(
      now,
      this.#fetchChannel,
      this.#ringBase + next * COMMAND_BYTES,
      this.#buffer,
      slot * COMMAND_BYTES,
      count * COMMAND_BYTES,
      this,
      FETCHED + slot,
    );
    return true;
  }

  /** Commands count as fetched in ring order, whatever order they come in. */
  #fetchDone(now: Nanos, cameAt: number, status: DmaStatus): void {
    this.#fetches--;
    if (status === DmaStatus.OK) this.#fetchCame[cameAt] = 1;
    else this.#fetchStatus = status;
    for (;;) {
      const slot = (this.head + this.#fetched) & (this.#capacity - 1);
      if (this.#fetching === 0 || this.#fetchCame[slot] !== 1) break;
      const count = this.#fetchSize[slot] as number;
      this.#fetchCame[slot] = 0;
      this.#fetched += count;
      this.#fetching -= count;
    }
    this.#fetch(now);
  }

  /** Runs what can be run. A DMA may be over before its call returns, so this is a loop, not a call. */
  #advance(now: Nanos): void {
    if (this.#advancing) return;
    this.#advancing = true;
    while (this.#state === State.IDLE) {
      if (this.#fetched === 0) {
        // Commands fetched before the failed one have run by now.
        if (this.#fetchStatus !== DmaStatus.OK) {
          const address = this.#ringBase + this.head * COMMAND_BYTES;
          this.#halt(now, dmaError(this.#fetchStatus), address);
        }
        break;
      }
      decodeCommand(this.#view, this.#slotOf(0) * COMMAND_BYTES, this.#command);
      if (this.#ahead > 0) this.#takeTurn(now);
      else this.#start(now);
    }
    this.#startAhead(now);
    this.#advancing = false;
  }

  /** Buffer slot of the `index`-th command from `head` on. */
  #slotOf(index: number): number {
    return (this.head + index) & (this.#capacity - 1);
  }

  /** The command at `head` is a copy that was started ahead of its turn. */
  #takeTurn(now: Nanos): void {
    this.#ahead--;
    this.#startedNs = now;
    this.#state = State.TRANSFER;
    const status = this.#copyStatus[this.#slotOf(0)] as number;
    if (status !== IN_FLIGHT) this.#copied(now, status as DmaStatus);
  }

  /** Starts the HtoD copies behind a running one, as long as what they write is theirs alone. */
  #startAhead(now: Nanos): void {
    if (this.#command.opcode !== Opcode.COPY_HTOD) return;
    const next = this.#next;
    while (this.#state === State.TRANSFER && this.#ahead + 1 < this.#fetched) {
      const index = this.#ahead + 1;
      decodeCommand(this.#view, this.#slotOf(index) * COMMAND_BYTES, next);
      const isCopy = next.opcode === Opcode.COPY_HTOD && next.operand2 > 0;
      // What is wrong with it is told when its turn comes.
      if (!isCopy || this.#context.checker.check(next) !== AccelError.NONE) return;
      const end = next.operand1 + next.operand2;
      for (let earlier = 0; earlier < index; earlier++) {
        const slot = this.#slotOf(earlier);
        const isApart =
          end <= (this.#copyStart[slot] as number) ||
          next.operand1 >= (this.#copyEnd[slot] as number);
        if (!isApart) return;
      }
      this.#ahead++;
      this.#startCopy(now, this.#slotOf(index), next);
    }
  }

  /** Whether something else has to happen first; `released` is then called when it has. */
  #isHeld(command: Readonly<AccelCommand>): boolean {
    const { events } = this.#context;
    if (command.opcode === Opcode.EVENT_WAIT) {
      return !events.waitFor(this, command.operand0, command.operand1);
    }
    const engine = this.#engineOf(command);
    return engine !== undefined && !engine.take(this);
  }

  /** The engine that a copy needs, if channels share one. */
  #engineOf(command: Readonly<AccelCommand>): CopyEngine | undefined {
    if (command.operand2 === 0) return undefined;
    if (command.opcode === Opcode.COPY_HTOD) return this.#context.readEngine;
    return command.opcode === Opcode.COPY_DTOH ? this.#context.writeEngine : undefined;
  }

  /** What held the command at `head` up does so no longer: it is tried again. */
  released(now: Nanos): void {
    if (this.#state !== State.HELD) return;
    this.#state = State.IDLE;
    this.#advance(now);
  }

  #startCopy(now: Nanos, slot: number, command: Readonly<AccelCommand>): void {
    const { operand0, operand1, operand2 } = command;
    this.#copyStatus[slot] = IN_FLIGHT;
    this.#copyStart[slot] = operand1;
    this.#copyEnd[slot] = operand1 + operand2;
    this.#context.endpoint.dma.read(
      now,
      this.#dataChannel,
      operand0,
      this.#context.memory,
      operand1,
      operand2,
      this,
      COPIED + slot,
    );
  }

  #copied(now: Nanos, status: DmaStatus): void {
    if (status === DmaStatus.OK) this.#finish(now, 0);
    else this.#halt(now, dmaError(status), this.#command.operand0);
  }

  #start(now: Nanos): void {
    const { checker, kernels, memory, endpoint } = this.#context;
    const command = this.#command;
    const error = checker.check(command);
    if (error !== AccelError.NONE) {
      this.#halt(now, error, checker.faultAddress);
      return;
    }
    if (this.#isHeld(command)) {
      this.#state = State.HELD;
      return;
    }
    this.#startedNs = now;
    this.#state = State.TRANSFER;
    const { operand0, operand1, operand2, m, n, k } = command;
    switch (command.opcode) {
      case Opcode.EVENT_SIGNAL:
        this.#context.events.raise(now, operand0, operand1);
        break;
      case Opcode.COPY_HTOD:
        if (operand2 === 0) break;
        this.#startCopy(now, this.#slotOf(0), command);
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
      case Opcode.COPY_DTOD:
        memory.copyWithin(operand1, operand0, operand0 + operand2);
        break;
      case Opcode.FILL:
        fill(kernels, operand1 / 4, operand2, command.scalar);
        break;
      case Opcode.SAXPY:
        saxpy(kernels, operand0 / 4, operand1 / 4, operand2, bitsFloat(command.scalar));
        this.#finish(now, 2 * operand2);
        return;
      case Opcode.SGEMM: {
        const accumulate = (command.flags & FLAG_ACCUMULATE) !== 0;
        sgemm(kernels, operand0 / 4, operand1 / 4, operand2 / 4, m, n, k, accumulate);
        this.#finish(now, 2 * m * n * k);
        return;
      }
      default:
        break;
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
    if ((this.#command.flags & FLAG_FENCE) === 0) {
      this.#interrupt(now);
      return;
    }
    // The value goes through as 64 raw bits, larger than a number holds exactly.
    const value = this.#slotOf(0) * COMMAND_BYTES + COMMAND_FENCE_VALUE;
    this.fenceValueLo = this.#view.getUint32(value, true);
    this.fenceValueHi = this.#view.getUint32(value + 4, true);
    this.#context.endpoint.dma.writeSmall(
      now,
      this.#dataChannel,
      this.#command.fenceAddress,
      this.fenceValueLo,
      this.fenceValueHi,
      8,
      this,
      FENCE_SENT,
    );
  }

  #interrupt(now: Nanos): void {
    if ((this.#command.flags & FLAG_INTERRUPT) !== 0) {
      this.#context.fenceSignalled(this.#index);
      const asked = this.#context.endpoint.interrupt(
        now,
        this.#dataChannel,
        0,
        this,
        INTERRUPT_SENT,
      );
      if (asked) return;
    }
    this.#complete(now);
  }

  #complete(now: Nanos): void {
    this.#context.onCommand?.(now, this.#index, this.#startedNs, this.#command);
    // Copies of this channel that read ahead keep the engine: they use it already.
    if (this.#ahead === 0) this.#engineOf(this.#command)?.giveBack(now, this);
    this.head = (this.head + 1) & (this.ringEntries - 1);
    this.#fetched--;
    this.commandsDone = (this.commandsDone + 1) >>> 0;
    this.#state = State.IDLE;
    this.#fetch(now);
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
