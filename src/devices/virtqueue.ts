/**
 * One split virtqueue of a virtio device (virtio 1.2, 2.7), reached by DMA alone. It hands its owner
 * one request at a time, in ring order, and gives the buffer back once the owner has answered:
 *
 *   IDLE ─notified→ AVAIL (idx read) ─new→ HEADS (ring read) → CHAIN (descriptors read) → REQUEST (the
 *   owner's turn: gather, answer) → USED (response, ring entry and idx written) → EVENT (suppression
 *   read, maybe a notification) → the next head, or AVAIL again → IDLE.
 *   What breaks the rules of the ring → BROKEN, until the device is reset.
 *
 * Who owns what: the queue owns the `DescriptorChain` of the request under way, which its `ChainReader`
 * fills and its `RequestBuffers` moves data by, and the DMA channel of all three, on which everything
 * leaves in order: response, ring entry, idx, then reads that must see what came after. The owner may use
 * the channel for DMA of its own while it has the turn.
 *
 * Bounds: a request has at most `MAX_CHAIN` buffers; rings and tables are read into buffers that are
 * made once; nothing else is kept of what the driver says.
 */
import type { Nanos } from '#base/units';
import { type DmaClient, DmaStatus } from '#pcie/endpoint-transfer';
import { VirtqueueAreas } from './virtqueue-areas.ts';
import { DescriptorChain } from './virtqueue-chain.ts';
import { ChainReader, type ChainReaderOwner, unreadable } from './virtqueue-chain-reader.ts';
import { RequestBuffers } from './virtqueue-buffers.ts';

const VIRTQ_AVAIL_F_NO_INTERRUPT = 1;

const State = {
  IDLE: 0,
  AVAIL: 1,
  HEADS: 2,
  CHAIN: 3,
  REQUEST: 4,
  USED: 5,
  EVENT: 6,
  AVAIL_EVENT: 7,
  BROKEN: 8,
} as const;
type State = (typeof State)[keyof typeof State];

/** Cookie of the queue's own DMA: the `State` says what the one transfer under way is for. */
const STEP = 0;

export interface VirtqueueOwner extends ChainReaderOwner {
  /** Whether the driver has accepted VIRTIO_F_EVENT_IDX. */
  readonly eventIndex: boolean;
  /** A request waits: `gather` what is needed of it, then `answer`. */
  requestReady(now: Nanos, queue: Virtqueue): void;
  /** What was asked of `gather` is there. */
  requestGathered(now: Nanos, queue: Virtqueue): void;
  /** Buffers were used and the driver wants to know; may be called from inside `answer`. */
  notifyUsed(now: Nanos, queue: Virtqueue): void;
  /** The driver broke the rules, or the ring cannot be reached. The queue does nothing more. */
  queueBroken(now: Nanos, queue: Virtqueue, reason: string): void;
}

export class Virtqueue implements DmaClient {
  readonly index: number;
  /** DMA channel of this queue, and of what the owner does for its requests. */
  readonly channel: number;
  readonly maxSize: number;
  // As the driver has set them; to be changed while the queue is not enabled.
  size: number;
  readonly areas = new VirtqueueAreas();

  readonly #owner: VirtqueueOwner;
  readonly #heads: Uint8Array;
  readonly #headView: DataView;
  readonly #word = new Uint8Array(4);
  readonly #wordView = new DataView(this.#word.buffer);
  readonly #avail = new Uint8Array(4);
  readonly #availView = new DataView(this.#avail.buffer);
  /** Of the request under way. */
  readonly #chain = new DescriptorChain();
  readonly #chainReader: ChainReader;
  readonly #buffers: RequestBuffers;
  #state: State = State.IDLE;
  #enabled = false;
  /** Free-running, as the ring's own: the next head to take, one past the last one offered. */
  #next = 0;
  #offered = 0;
  /** Heads in `#heads` from `#next` on. */
  #fetched = 0;
  #headAt = 0;
  #head = 0;
  #used = 0;
  #availEvent = 0;
  #notified = false;

  constructor(owner: VirtqueueOwner, index: number, channel: number, maxSize: number) {
    this.#owner = owner;
    this.index = index;
    this.channel = channel;
    this.maxSize = maxSize;
    this.size = maxSize;
    this.#heads = new Uint8Array(2 * maxSize);
    this.#headView = new DataView(this.#heads.buffer);
    const { dma } = owner.endpoint;
    this.#chainReader = new ChainReader(owner, channel, this.areas, this.#chain, (now, wrong) => {
      if (wrong === '') this.#ready(now);
      else this.#break(now, wrong);
    });
    this.#buffers = new RequestBuffers(dma, channel, this.#chain, (now, ok) => {
      if (ok) this.#owner.requestGathered(now, this);
      else this.#break(now, 'a request that cannot be read');
    });
  }

  get enabled(): boolean {
    return this.#enabled;
  }

  /** Bytes of the request's device-readable buffers. */
  get readableBytes(): number {
    return this.#chain.readableBytes;
  }

  /** Takes the ring into use. Returns what is wrong with where it is, or '' (2.7: alignment). */
  enable(): string {
    const wrong = this.areas.take(this.size);
    this.#enabled = wrong === '';
    return wrong;
  }

  /** The driver says that there may be buffers. */
  notify(now: Nanos): void {
    if (!this.#enabled) return;
    if (this.#state === State.IDLE) this.#readAvail(now);
    else this.#notified = true;
  }

  /** As at power-on; nothing under way is finished. */
  reset(): void {
    this.stop();
    this.size = this.maxSize;
    this.areas.clear();
    this.#enabled = false;
    this.#state = State.IDLE;
    this.#next = 0;
    this.#offered = 0;
    this.#fetched = 0;
    this.#used = 0;
    this.#availEvent = 0;
    this.#notified = false;
    this.#chain.clear();
  }

  /** Does nothing more until `reset`. */
  stop(): void {
    this.#state = State.BROKEN;
    this.#buffers.stop();
    this.#owner.endpoint.dma.abort(this.channel);
  }

  /** Forgets what came from the driver's memory. */
  scrub(): void {
    for (const bytes of [this.#heads, this.#word, this.#avail]) bytes.fill(0);
    this.#chain.scrub();
  }

  /**
   * Reads `bytes` bytes at `offset` of the request's device-readable part, which has them, to
   * `into[at]`. `requestGathered` follows; the queue breaks when they cannot be read.
   */
  gather(now: Nanos, offset: number, into: Uint8Array, at: number, bytes: number): void {
    this.#buffers.gather(now, offset, into, at, bytes);
  }

  /**
   * Writes the first `bytes` bytes of `response` to the request's device-writable part, as far as they
   * fit, and gives the buffer back. `response` must not change before the next request is ready.
   */
  answer(now: Nanos, response: Uint8Array, bytes: number): void {
    this.#state = State.USED;
    const { dma } = this.#owner.endpoint;
    const written = this.#buffers.respond(now, response, bytes);
    const entry = this.areas.usedEntry(this.#used % this.size);
    this.#used = (this.#used + 1) & 0xffff;
    this.#next = (this.#next + 1) & 0xffff;
    this.#fetched--;
    this.#headAt += 2;
    dma.writeSmall(now, this.channel, entry, this.#head, written, 8, undefined, 0);
    // flags, which stay 0, and idx in one.
    const flagsAndIdx = this.#used * 0x1_0000;
    dma.writeSmall(now, this.channel, this.areas.usedFlags, flagsAndIdx, 0, 4, this, STEP);
  }

  dmaDone(now: Nanos, _cookie: number, status: DmaStatus): void {
    if (status !== DmaStatus.OK) {
      this.#break(now, unreadable(status));
      return;
    }
    switch (this.#state) {
      case State.AVAIL:
        this.#availRead(now);
        break;
      case State.HEADS:
        this.#takeHead(now);
        break;
      case State.USED:
        this.#usedWritten(now);
        break;
      case State.EVENT:
        this.#eventRead(now);
        break;
      case State.AVAIL_EVENT:
        this.#readAvail(now);
        break;
      default:
        break;
    }
  }

  #read(now: Nanos, address: number, into: Uint8Array, bytes: number): void {
    this.#owner.endpoint.dma.read(now, this.channel, address, into, 0, bytes, this, STEP);
  }

  #readAvail(now: Nanos): void {
    this.#state = State.AVAIL;
    this.#notified = false;
    this.#read(now, this.areas.availFlags, this.#avail, 4);
  }

  #availRead(now: Nanos): void {
    this.#offered = this.#availView.getUint16(2, true);
    const waiting = (this.#offered - this.#next) & 0xffff;
    if (waiting > this.size) {
      this.#break(
        now,
        `available idx ${this.#offered} is ${waiting} ahead in a ring of ${this.size}`,
      );
    } else if (waiting > 0) {
      this.#readHeads(now, waiting);
    } else if (this.#owner.eventIndex && this.#availEvent !== this.#next) {
      // Asks to be notified of the next buffer, then looks again for one that came before that.
      this.#availEvent = this.#next;
      this.#state = State.AVAIL_EVENT;
      this.#wordView.setUint16(0, this.#availEvent, true);
      const at = this.areas.availEvent;
      this.#owner.endpoint.dma.write(now, this.channel, at, this.#word, 0, 2, this, STEP);
    } else if (this.#notified) {
      // What was read may be older than the notification.
      this.#readAvail(now);
    } else {
      this.#state = State.IDLE;
    }
  }

  #readHeads(now: Nanos, waiting: number): void {
    this.#state = State.HEADS;
    const slot = this.#next % this.size;
    this.#fetched = Math.min(waiting, this.size - slot);
    this.#headAt = 0;
    const address = this.areas.availEntry(slot);
    this.#read(now, address, this.#heads, 2 * this.#fetched);
  }

  #takeHead(now: Nanos): void {
    this.#head = this.#headView.getUint16(this.#headAt, true);
    this.#state = State.CHAIN;
    this.#chainReader.start(now, this.#head, this.size);
  }

  #ready(now: Nanos): void {
    this.#state = State.REQUEST;
    this.#owner.requestReady(now, this);
  }

  #usedWritten(now: Nanos): void {
    this.#state = State.EVENT;
    if (this.#owner.eventIndex) {
      this.#read(now, this.areas.usedEvent, this.#word, 2);
    } else {
      this.#read(now, this.areas.availFlags, this.#avail, 4);
    }
  }

  #eventRead(now: Nanos): void {
    const isWanted = this.#owner.eventIndex
      ? this.#wordView.getUint16(0, true) === ((this.#used - 1) & 0xffff)
      : (this.#availView.getUint16(0, true) & VIRTQ_AVAIL_F_NO_INTERRUPT) === 0;
    if (isWanted) this.#owner.notifyUsed(now, this);
    if (this.#state !== State.EVENT) return;
    if (this.#fetched > 0) this.#takeHead(now);
    // Without an event index, idx came with the flags.
    else if (this.#owner.eventIndex) this.#readAvail(now);
    else this.#availRead(now);
  }

  #break(now: Nanos, reason: string): void {
    this.stop();
    this.#owner.queueBroken(now, this, reason);
  }
}
