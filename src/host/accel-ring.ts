/**
 * The command ring of one channel, from the driver's side.
 *
 * Each command carries a fence whose value is the command's sequence number, counted from 1 and never
 * used twice, so that one 64-bit word in host memory says how far the device has come. `run` takes a
 * batch of commands and returns when the last of them finished. Batches of several tasks may
 * interleave; the commands of each stay in order.
 *
 * When a command fails, or none finishes within the time limit, the channel is stopped: nothing of it
 * touches host memory afterwards. Every batch that is not finished then fails with the same error,
 * and the channel starts anew, in a new epoch.
 */
import { DxpuError } from '#base/errors';
import { ChannelRing, type RingCommand } from './accel-channel-ring.ts';
import * as layout from './accel-layout.ts';
import { mmioWrite32 } from './host-operations.ts';
import type { SoftHost } from './root-complex.ts';
import { currentTime, Signal, type Task, waitUntil } from './task.ts';

export interface AccelRingOptions {
  /** A power of two, 2 to 65536. */
  readonly entries: number;
  readonly channel: number;
  /** Notified of the function's interrupts; without it the fence is polled alone. */
  readonly interrupt: Signal | undefined;
  readonly pollIntervalNs: number;
  readonly commandTimeoutNs: number;
}

/** How often the channel is asked whether it halted, for interrupts can be lost and polls have none. */
const STATUS_CHECK_NS = 100e6;
/** A task that is woken later than this many failures hears of its own in general terms. */
const REMEMBERED_EPOCHS = 16;

interface Failure {
  /** The last command of the epoch that finished. */
  readonly finished: number;
  readonly error: DxpuError;
}

export class AccelRing {
  readonly #host: SoftHost;
  readonly #options: AccelRingOptions;
  readonly #channel: ChannelRing;
  /** Interrupts, and everything else that waiting tasks should look at. */
  readonly #wake = new Signal();
  readonly #stopListening: (() => void) | undefined;
  /** How the latest epochs ended, by number. */
  readonly #failures = new Map<number, Failure>();
  #epoch = 0;
  /** Sequence number of the last command in the ring, of the last one before it was last started, and
   * of the last one the device was told of. */
  #pushed = 0;
  #base = 0;
  #rung = 0;
  #interrupts = 0;
  /** The channel is being stopped and started, or not started at all: nothing may be pushed. */
  #isDown = true;
  /** Why the channel will not start again. */
  #closed: DxpuError | undefined;
  #checking = false;
  #isDisposed = false;
  /** What waits for the device to be done, in order. */
  readonly #idle: { readonly through: number; readonly epoch: number; readonly fn: () => void }[] =
    [];

  /** Allocates the ring and the fence; `start` must come next, `dispose` last. */
  constructor(host: SoftHost, registers: number, options: AccelRingOptions) {
    this.#host = host;
    this.#options = options;
    this.#channel = new ChannelRing(host, registers, options.channel, options.entries);
    this.#stopListening = options.interrupt?.listen((now) => {
      this.#interrupts++;
      this.#runIdle();
      this.#wake.notify(now);
    });
  }

  /** Programs the channel and enables it. Fails with `aborted` when the device does not want it. */
  *start(): Task<void> {
    this.#base = this.#pushed;
    this.#rung = this.#pushed;
    this.#channel.fenceValue = this.#pushed;
    yield* this.#channel.start(this.#options.interrupt !== undefined);
    this.#isDown = false;
  }

  /** Runs commands in order. Returns when all have finished, or fails with what stopped them. */
  *run(commands: readonly RingCommand[]): Task<void> {
    if (commands.length === 0) return;
    while (this.#isDown && this.#closed === undefined) {
      yield* waitUntil(() => !this.#isDown || this.#closed !== undefined, {
        signal: this.#wake,
        withinNs: STATUS_CHECK_NS,
      });
    }
    if (this.#closed !== undefined) throw this.#closed;
    this.#runIdle();
    const epoch = this.#epoch;
    const { entries } = this.#options;
    for (const [index, command] of commands.entries()) {
      // One entry stays free: a full ring would look empty.
      for (;;) {
        const isOver = this.#isDown || this.#epoch !== epoch;
        if (!isOver && this.#pushed - this.#done() < entries - 1) break;
        yield* this.#announce();
        // When this epoch is over there is nothing to wait for but its error.
        yield* this.#wait(isOver ? this.#pushed + 1 : this.#pushed - entries + 2, epoch);
      }
      const sequence = ++this.#pushed;
      // Whoever waits for room is woken a few times each turn of the ring, not for each command.
      const isLast = index === commands.length - 1;
      this.#encode(command, sequence, isLast || sequence % Math.max(1, entries >> 2) === 0);
    }
    const last = this.#pushed;
    yield* this.#announce();
    yield* this.#wait(last, epoch);
  }

  /**
   * Stops the channel for good; what is not finished fails with `error`. When this returns the
   * device touches no memory of this host any more.
   */
  *stop(error: DxpuError): Task<void> {
    this.#closed = error;
    yield* this.#halt(error);
    this.#wake.notify(yield* currentTime());
  }

  /**
   * Calls `fn` once the device is done with every command pushed so far: now, if it is already. For
   * giving back what commands point to, also when the task that waited for them was ended.
   */
  whenIdle(fn: () => void): void {
    this.#idle.push({ through: this.#pushed, epoch: this.#epoch, fn });
    this.#runIdle();
  }

  /** Gives the memory back. The channel must be stopped, or the function gone. */
  dispose(): void {
    this.#stopListening?.();
    this.#isDisposed = true;
    this.#runIdle();
    this.#channel.free();
  }

  #runIdle(): void {
    for (;;) {
      const first = this.#idle[0];
      if (first === undefined) return;
      const isOver =
        this.#isDisposed || this.#epoch !== first.epoch || this.#done() >= first.through;
      if (!isOver) return;
      this.#idle.shift();
      first.fn();
    }
  }

  /** Sequence number of the last command that finished. */
  #done(): number {
    return this.#channel.fenceValue;
  }

  /** Tells the device of all commands pushed so far. */
  *#announce(): Task<void> {
    if (this.#isDown || this.#rung === this.#pushed) return;
    this.#rung = this.#pushed;
    const tail = (this.#pushed - this.#base) % this.#options.entries;
    yield* mmioWrite32(this.#host, this.#channel.doorbell, tail);
  }

  /** Waits until the command with this sequence number, and all before it, finished. */
  *#wait(sequence: number, epoch: number): Task<void> {
    const { pollIntervalNs, commandTimeoutNs, interrupt } = this.#options;
    let progress = this.#done();
    let nowNs = yield* currentTime();
    let deadlineNs = nowNs + commandTimeoutNs;
    for (;;) {
      const seen = this.#interrupts;
      const woken = yield* waitUntil(
        () => this.#epoch !== epoch || this.#done() >= sequence || this.#interrupts !== seen,
        {
          signal: this.#wake,
          ...(interrupt === undefined ? { pollIntervalNs } : {}),
          withinNs: this.#isDown
            ? STATUS_CHECK_NS
            : Math.max(0, Math.min(STATUS_CHECK_NS, deadlineNs - nowNs)),
        },
      );
      nowNs = yield* currentTime();
      if (this.#epoch !== epoch) {
        const failure = this.#failures.get(epoch);
        if (failure !== undefined && failure.finished >= sequence) return;
        throw failure?.error ?? new DxpuError('aborted', 'the accelerator was stopped');
      }
      if (this.#done() >= sequence) return;
      if (this.#done() > progress) {
        progress = this.#done();
        deadlineNs = nowNs + commandTimeoutNs;
      }
      if (this.#isDown) continue;
      if (nowNs >= deadlineNs) {
        const message = `the accelerator finished no command within ${commandTimeoutNs / 1e9} s`;
        yield* this.#restart(
          new DxpuError('deadline_exceeded', message, {
            details: { sequence, finished: this.#done() },
          }),
        );
      } else if (!woken || !this.#checking) {
        // Woken by the interrupt of an earlier command, by that of an error, or by none at all.
        yield* this.#checkHalted();
      }
    }
  }

  *#checkHalted(): Task<void> {
    this.#checking = true;
    let isHalted = false;
    try {
      isHalted = yield* this.#channel.isHalted();
    } finally {
      this.#checking = false;
    }
    if (!isHalted || this.#isDown) return;
    this.#isDown = true;
    yield* this.#restart(yield* this.#channel.haltReason());
  }

  /** Fails every batch that is not finished, and starts the channel anew. */
  *#restart(error: DxpuError): Task<void> {
    const epoch = this.#epoch;
    try {
      yield* this.#halt(error);
      if (this.#closed === undefined) yield* this.start();
    } catch (failure) {
      // It will not start again, or the task was ended half-way: nobody may rely on the channel.
      this.#closed ??= DxpuError.from(failure);
      if (this.#epoch === epoch) this.#endEpoch(error);
    }
    this.#wake.notify(yield* currentTime());
  }

  /** Stops the channel, and with it the epoch. */
  *#halt(error: DxpuError): Task<void> {
    this.#isDown = true;
    yield* this.#channel.stop();
    this.#endEpoch(error);
  }

  #endEpoch(error: DxpuError): void {
    this.#failures.set(this.#epoch, { finished: this.#done(), error });
    this.#failures.delete(this.#epoch - REMEMBERED_EPOCHS);
    this.#epoch++;
    this.#runIdle();
  }

  #encode(command: RingCommand, sequence: number, interrupt: boolean): void {
    const isAsked = interrupt && this.#options.interrupt !== undefined;
    const flags = layout.FLAG_FENCE | (isAsked ? layout.FLAG_INTERRUPT : 0);
    this.#channel.write(sequence - 1 - this.#base, command, flags, sequence);
  }
}
