/**
 * Commands of one ring, fetched by DMA ahead of their turn into a buffer that is used again: several at a
 * time where several are there, never beyond the tail. They count as fetched in ring order, whatever
 * order they come in.
 */
import type { Nanos } from '#base/units';
import type { DmaEngine } from '#pcie/endpoint-dma';
import { type DmaClient, DmaStatus } from '#pcie/endpoint-transfer';
import { type AccelCommand, COMMAND_BYTES, decodeCommand } from './accel-command.ts';
import { MAX_RING_ENTRIES, MIN_RING_ENTRIES } from './accel-registers.ts';
import { HOST_ADDRESS_END } from './device-model.ts';

export interface FetchLimits {
  /** Commands fetched ahead at most: a power of two. */
  readonly prefetchCommands: number;
  /** Commands that one fetch brings at most, and fetches under way at once. */
  readonly fetchCommands: number;
  readonly fetchesInFlight: number;
}

/** `askedNs`: when the fetch of so many commands was asked for. */
export type FetchedObserver = (now: Nanos, askedNs: number, commands: number) => void;

export class RingReader implements DmaClient {
  /** Ring index of the next command to finish, and one past the last command to run. */
  head = 0;
  tail = 0;
  /** How many commands are there, from `head` on. */
  fetched = 0;
  /** How the first fetch that failed ended: nothing is fetched after it. */
  status: DmaStatus = DmaStatus.OK;
  /** Of the commands, each at its slot. */
  readonly view: DataView;
  readonly #dma: DmaEngine;
  readonly #channel: number;
  readonly #limits: FetchLimits;
  readonly #came: (now: Nanos) => void;
  readonly #onFetch: FetchedObserver | undefined;
  readonly #buffer: Uint8Array;
  /** How many commands a fetch brings, by the slot of the first, and 1 once it has come. */
  readonly #size: Uint8Array;
  readonly #hasCome: Uint8Array;
  readonly #askedNs: Float64Array;
  #isReading = false;
  #base = 0;
  #entries = 0;
  /** Entries the buffer is used for; a power of two that divides the ring. */
  #capacity = 1;
  /** Commands on their way behind those that are there, and fetches under way. */
  #fetching = 0;
  #fetches = 0;

  /** `came` is called when a fetch has ended, well or not; `onFetch`, if any, when one brought commands. */
  constructor(
    dma: DmaEngine,
    channel: number,
    limits: FetchLimits,
    came: (now: Nanos) => void,
    onFetch?: FetchedObserver,
  ) {
    this.#dma = dma;
    this.#channel = channel;
    this.#limits = limits;
    this.#came = came;
    this.#onFetch = onFetch;
    const { prefetchCommands } = limits;
    this.#buffer = new Uint8Array(prefetchCommands * COMMAND_BYTES);
    this.view = new DataView(this.#buffer.buffer);
    this.#size = new Uint8Array(prefetchCommands);
    this.#hasCome = new Uint8Array(prefetchCommands);
    this.#askedNs = new Float64Array(prefetchCommands);
  }

  /** Address of the command at `head`. */
  get headAddress(): number {
    return this.#base + this.head * COMMAND_BYTES;
  }

  /**
   * Reads a ring of `entries` at `base`, from its first entry on. False, and nothing is read, where the
   * datasheet allows no such ring.
   */
  start(base: number, entries: number): boolean {
    const isPowerOfTwo = entries > 0 && (entries & (entries - 1)) === 0;
    if (
      !isPowerOfTwo ||
      entries < MIN_RING_ENTRIES ||
      entries > MAX_RING_ENTRIES ||
      base % COMMAND_BYTES !== 0 ||
      base + entries * COMMAND_BYTES >= HOST_ADDRESS_END
    ) {
      return false;
    }
    this.clear();
    this.#base = base;
    this.#entries = entries;
    this.#capacity = Math.min(this.#limits.prefetchCommands, entries);
    this.#isReading = true;
    return true;
  }

  /** Nothing fetched or under way counts any more. Head and tail stay. */
  stop(): void {
    this.#isReading = false;
    this.#dma.abort(this.#channel);
    this.#fetching = 0;
    this.#fetches = 0;
    this.#size.fill(0);
    this.#hasCome.fill(0);
    this.fetched = 0;
  }

  clear(): void {
    this.head = 0;
    this.tail = 0;
    this.status = DmaStatus.OK;
  }

  scrub(): void {
    this.#buffer.fill(0);
  }

  /** Commands up to `tail` may be fetched. */
  offer(now: Nanos, tail: number): void {
    this.tail = tail;
    this.#fetch(now);
  }

  /** The command at `head` is done. */
  pass(now: Nanos): void {
    this.head = (this.head + 1) & (this.#entries - 1);
    this.fetched--;
    this.#fetch(now);
  }

  /** Place in the buffer of the `index`-th command from `head` on. */
  slotOf(index: number): number {
    return (this.head + index) & (this.#capacity - 1);
  }

  /** The `index`-th of those that are there. */
  decode(index: number, into: AccelCommand): void {
    decodeCommand(this.view, this.slotOf(index) * COMMAND_BYTES, into);
  }

  /** A fetch has ended whose first command is at slot `cookie`. */
  dmaDone(now: Nanos, cookie: number, status: DmaStatus): void {
    this.#fetches--;
    if (status === DmaStatus.OK) {
      this.#hasCome[cookie] = 1;
      this.#onFetch?.(now, this.#askedNs[cookie] as number, this.#size[cookie] as number);
    } else {
      this.status = status;
    }
    for (;;) {
      const slot = this.slotOf(this.fetched);
      if (this.#fetching === 0 || this.#hasCome[slot] !== 1) break;
      const count = this.#size[slot] as number;
      this.#hasCome[slot] = 0;
      this.fetched += count;
      this.#fetching -= count;
    }
    this.#fetch(now);
    this.#came(now);
  }

  /** Reads of entries that are there, each as many as fit in one piece. */
  #fetch(now: Nanos): void {
    while (this.#fetches < this.#limits.fetchesInFlight && this.#fetchMore(now));
  }

  #fetchMore(now: Nanos): boolean {
    if (this.status !== DmaStatus.OK || !this.#isReading) return false;
    const mask = this.#entries - 1;
    const ahead = this.fetched + this.#fetching;
    const next = (this.head + ahead) & mask;
    const slot = next & (this.#capacity - 1);
    const count = Math.min(
      (this.tail - next) & mask,
      this.#capacity - ahead,
      this.#capacity - slot,
      this.#limits.fetchCommands,
    );
    if (count === 0) return false;
    this.#fetching += count;
    this.#fetches++;
    this.#size[slot] = count;
    this.#askedNs[slot] = now;
    this.#dma.read(
      now,
      this.#channel,
      this.#base + next * COMMAND_BYTES,
      this.#buffer,
      slot * COMMAND_BYTES,
      count * COMMAND_BYTES,
      this,
      slot,
    );
    return true;
  }
}
