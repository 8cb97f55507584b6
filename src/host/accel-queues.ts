/**
 * All channels of an accelerator at once, each a queue that is fed and not waited for: for programs
 * that issue commands at given times and hear of fences the moment they arrive, as the emulator does.
 * `AccelDriver` is for programs that want results.
 *
 * Who calls whom: `submit` writes commands into the ring as far as there is room, keeps the rest, and
 * rings the doorbell once. Each interrupt looks at the fence words of all queues, tells who waits, and
 * feeds what was kept. An interrupt that no fence explains asks the device whether a channel halted.
 */
import { appendTo } from '#base/append-to';
import { assert } from '#base/assert';
import { DxpuError } from '#base/errors';
import { RingBuffer } from '#base/ring-buffer';
import type { Nanos } from '#base/units';
import { ChannelRing, type RingCommand } from './accel-channel-ring.ts';
import { identify, resetDevice } from './accel-identity.ts';
import * as layout from './accel-layout.ts';
import type { PciFunction } from './pci-function.ts';
import type { SoftHost } from './root-complex.ts';
import { inScope, type Task } from './task.ts';

export interface AccelQueuesOptions {
  /** Channels 0 to `queues` − 1 are used. */
  readonly queues: number;
  /** Of each ring: a power of two from 4 to 65536. Default 4096. */
  readonly entries?: number;
  /** A channel halted: nothing more of its queue will be done. At most once for each. */
  readonly halted?: (now: Nanos, error: DxpuError) => void;
}

/** One channel. Commands are numbered from 1 in the order they are given. */
class AccelQueue {
  readonly channel: ChannelRing;
  /** Number of the last command known to be done. */
  done = 0;
  isHalted = false;
  readonly #host: SoftHost;
  readonly #entries: number;
  readonly #kept = new RingBuffer<RingCommand>();
  /** Commands with a fence that has not been seen, by number. */
  readonly #fenced = new RingBuffer<number>();
  readonly #waiters = new Map<number, ((now: Nanos) => void)[]>();
  /** Number of the last command given, and of the last one written to the ring. */
  #given = 0;
  #pushed = 0;

  constructor(host: SoftHost, base: number, channel: number, entries: number) {
    this.#host = host;
    this.#entries = entries;
    this.channel = new ChannelRing(host, base, channel, entries);
  }

  give(now: Nanos, commands: readonly RingCommand[]): number {
    for (const command of commands) this.#kept.push(command);
    this.#given += commands.length;
    this.#feed(now);
    return this.#given;
  }

  /** Moves commands that were kept into the ring, as far as there is room. */
  #feed(now: Nanos): void {
    const before = this.#pushed;
    // One entry stays free: a full ring would look empty.
    while (this.#pushed - this.done < this.#entries - 1) {
      const command = this.#kept.shift();
      if (command === undefined) break;
      const number = ++this.#pushed;
      // Without these a full ring would never show that it has room again.
      const isMark = number % (this.#entries >> 2) === 0;
      const isFenced = isMark || ((command.flags ?? 0) & layout.FLAG_FENCE) !== 0;
      if (isFenced) this.#fenced.push(number);
      const flags = isFenced ? layout.FLAG_FENCE | layout.FLAG_INTERRUPT : 0;
      this.channel.write(number - 1, command, flags, number);
    }
    if (this.#pushed === before) return;
    this.#host.writeMmio32(now, this.channel.doorbell, this.#pushed % this.#entries);
  }

  /** Looks at the fence word. Returns how many fences have come since the last look. */
  look(now: Nanos): number {
    const done = this.channel.fenceValue;
    if (done === this.done) return 0;
    this.done = done;
    let seen = 0;
    for (let next = this.#fenced.peek(); next !== undefined && next <= done; ) {
      this.#fenced.shift();
      seen += 1;
      const waiters = this.#waiters.get(next);
      this.#waiters.delete(next);
      if (waiters !== undefined) for (const fn of waiters) fn(now);
      next = this.#fenced.peek();
    }
    this.#feed(now);
    return seen;
  }

  whenDone(number: number, fn: (now: Nanos) => void): void {
    appendTo(this.#waiters, number, fn);
  }
}

export class AccelQueues {
  readonly #host: SoftHost;
  readonly #fn: PciFunction;
  readonly #queues: readonly AccelQueue[];
  readonly #halted: (now: Nanos, error: DxpuError) => void;
  readonly #stopListening: () => void;
  /** Interrupts that came, less the fences that explain them. */
  #unexplained = 0;

  private constructor(
    host: SoftHost,
    fn: PciFunction,
    queues: readonly AccelQueue[],
    halted: (now: Nanos, error: DxpuError) => void,
  ) {
    this.#host = host;
    this.#fn = fn;
    this.#queues = queues;
    this.#halted = halted;
    this.#stopListening = host.msiSignal(fn.virtualSlot, 0).listen((now) => this.#interrupted(now));
  }

  /** Resets the accelerator and starts its channels. Errors as `AccelDriver.open`. */
  static open(host: SoftHost, fn: PciFunction, options: AccelQueuesOptions): Task<AccelQueues> {
    return inScope(fn.scope, AccelQueues.#open(host, fn, options));
  }

  static *#open(host: SoftHost, fn: PciFunction, options: AccelQueuesOptions): Task<AccelQueues> {
    const { queues: count, entries = 4096 } = options;
    assert(entries >= 4 && Number.isInteger(Math.log2(entries)), `not a ring: ${entries} entries`);
    const { base, channels } = yield* identify(host, fn);
    if (count > channels) {
      throw new DxpuError(
        'invalid_argument',
        `${count} queues need as many channels: the accelerator has ${channels}`,
      );
    }
    if (fn.msi === undefined) {
      throw new DxpuError('failed_precondition', 'the accelerator has no MSI, which queues need');
    }
    yield* resetDevice(host, base);
    const queues: AccelQueue[] = [];
    for (let channel = 0; channel < count; channel += 1) {
      const queue = new AccelQueue(host, base, channel, entries);
      queues.push(queue);
      yield* queue.channel.start(true);
    }
    return new AccelQueues(host, fn, queues, options.halted ?? (() => {}));
  }

  /**
   * Gives commands to a queue; those flagged FENCE tell the host when they are done. Returns the
   * number of the last one. Nothing bounds what a queue keeps until there is room in its ring.
   */
  submit(now: Nanos, queue: number, commands: readonly RingCommand[]): number {
    return this.#queue(queue).give(now, commands);
  }

  /** Calls `fn` when the fence of that command arrives; it must be flagged FENCE, and not done yet. */
  whenDone(queue: number, command: number, fn: (now: Nanos) => void): void {
    this.#queue(queue).whenDone(command, fn);
  }

  /** Number of the last command of the queue that is known to be done. */
  doneOf(queue: number): number {
    return this.#queue(queue).done;
  }

  /** Hears nothing more. The rings keep their memory: the device may still write fences. */
  close(): void {
    this.#stopListening();
  }

  #queue(index: number): AccelQueue {
    const queue = this.#queues[index];
    assert(queue !== undefined, `there is no queue ${index}`);
    return queue;
  }

  #interrupted(now: Nanos): void {
    this.#unexplained += 1;
    for (const queue of this.#queues) this.#unexplained -= queue.look(now);
    // A fence is in memory before its own interrupt: then this is negative for a while.
    if (this.#unexplained <= 0) return;
    this.#unexplained = 0;
    this.#host.tasks.run(now, this.#askHalted(), undefined, this.#fn.scope);
  }

  *#askHalted(): Task<void> {
    for (const queue of this.#queues) {
      if (queue.isHalted || !(yield* queue.channel.isHalted())) continue;
      queue.isHalted = true;
      const error = yield* queue.channel.haltReason();
      this.#host.tasks.at(0, (now) => this.#halted(now, error));
    }
  }
}
