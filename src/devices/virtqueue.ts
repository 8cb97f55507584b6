/**
 * One split virtqueue of a virtio device (virtio 1.2, 2.7), reached by DMA alone. It hands its owner
 * one request at a time, in ring order, and gives the buffer back once the owner has answered:
 *
 *   IDLE ─notified→ AVAIL (idx read) ─new→ HEADS (ring read) → DESC (chain read, one by one) or
 *   TABLE (indirect) → REQUEST (the owner's turn: gather, answer) → USED (response, ring entry and idx
 *   written) → EVENT (suppression read, maybe a notification) → the next head, or AVAIL again → IDLE.
 *   What breaks the rules of the ring → BROKEN, until the device is reset.
 *
 * Who owns what: the queue owns the `DescriptorChain` of the request under way and its DMA channel, on
 * which everything leaves in order: response, ring entry, idx, then reads that must see what came after.
 * The owner may use the channel for DMA of its own while it has the turn.
 *
 * Bounds: a request has at most `MAX_CHAIN` buffers; rings and tables are read into buffers that are
 * made once; nothing else is kept of what the driver says.
 */
import type { Nanos } from '#base/units';
import type { Endpoint } from '#pcie/endpoint';
import { type DmaClient, DmaStatus } from '#pcie/endpoint-transfer';
import { HOST_ADDRESS_END } from './device-model.ts';
import { VirtqueueAreas } from './virtqueue-areas.ts';
import {
  DESC_BYTES,
  DescriptorChain,
  VIRTQ_DESC_F_INDIRECT,
  VIRTQ_DESC_F_NEXT,
} from './virtqueue-chain.ts';

const VIRTQ_AVAIL_F_NO_INTERRUPT = 1;

const State = {
  IDLE: 0,
  AVAIL: 1,
  HEADS: 2,
  DESC: 3,
  TABLE: 4,
  REQUEST: 5,
  USED: 6,
  EVENT: 7,
  AVAIL_EVENT: 8,
  BROKEN: 9,
} as const;
type State = (typeof State)[keyof typeof State];

// Cookies of the queue's DMA. A `State` says what the one transfer under way is for.
const STEP = 0;
const GATHERED = 1;

export interface VirtqueueOwner {
  readonly endpoint: Endpoint;
  /** Whether the driver has accepted VIRTIO_F_INDIRECT_DESC and VIRTIO_F_EVENT_IDX. */
  readonly indirectDescriptors: boolean;
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
  #state: State = State.IDLE;
  #enabled = false;
  /** Free-running, as the ring's own: the next head to take, one past the last one offered. */
  #next = 0;
  #offered = 0;
  /** Heads in `#heads` from `#next` on. */
  #fetched = 0;
  #headAt = 0;
  #head = 0;
  #descriptors = 0;
  #used = 0;
  #availEvent = 0;
  #notified = false;
  /** Reads of `gather` under way. */
  #gathering = 0;
  #gatherFailed = false;
  /** Counts stops, so that a `gather` that was interrupted by one goes no further. */
  #stops = 0;

  constructor(owner: VirtqueueOwner, index: number, channel: number, maxSize: number) {
    this.#owner = owner;
    this.index = index;
    this.channel = channel;
    this.maxSize = maxSize;
    this.size = maxSize;
    this.#heads = new Uint8Array(2 * maxSize);
    this.#headView = new DataView(this.#heads.buffer);
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
    this.#stops++;
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
    const stops = this.#stops;
    const chain = this.#chain;
    // One more, so that reads which end within the call do not end the whole.
    this.#gathering = 1;
    this.#gatherFailed = false;
    let skip = offset;
    let remaining = bytes;
    let to = at;
    for (let index = 0; index < chain.readableBuffers && remaining > 0; index++) {
      const length = chain.length[index] as number;
      if (skip >= length) {
        skip -= length;
        continue;
      }
      const part = Math.min(length - skip, remaining);
      const address = (chain.address[index] as number) + skip;
      this.#gathering++;
      this.#read(now, address, into, to, part, GATHERED);
      if (stops !== this.#stops) return;
      to += part;
      remaining -= part;
      skip = 0;
    }
    this.#gathered(now);
  }

  /**
   * Writes the first `bytes` bytes of `response` to the request's device-writable part, as far as they
   * fit, and gives the buffer back. `response` must not change before the next request is ready.
   */
  answer(now: Nanos, response: Uint8Array, bytes: number): void {
    this.#state = State.USED;
    const { dma } = this.#owner.endpoint;
    const chain = this.#chain;
    const written = Math.min(bytes, chain.writableBytes);
    let at = 0;
    for (let index = chain.readableBuffers; index < chain.buffers && at < written; index++) {
      const part = Math.min(chain.length[index] as number, written - at);
      if (part === 0) continue;
      const address = chain.address[index] as number;
      dma.write(now, this.channel, address, response, at, part, undefined, 0);
      at += part;
    }
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

  dmaDone(now: Nanos, cookie: number, status: DmaStatus): void {
    if (cookie === GATHERED) {
      if (status !== DmaStatus.OK) this.#gatherFailed = true;
      this.#gathered(now);
      return;
    }
    if (status !== DmaStatus.OK) {
      this.#break(now, `the ring cannot be read (DMA status ${status})`);
      return;
    }
    switch (this.#state) {
      case State.AVAIL:
        this.#availRead(now);
        break;
      case State.HEADS:
        this.#takeHead(now);
        break;
      case State.DESC:
        this.#descriptorRead(now);
        break;
      case State.TABLE:
        this.#tableRead(now);
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

  #read(
    now: Nanos,
    address: number,
    into: Uint8Array,
    at: number,
    bytes: number,
    cookie: number,
  ): void {
    this.#owner.endpoint.dma.read(now, this.channel, address, into, at, bytes, this, cookie);
  }

  #readAvail(now: Nanos): void {
    this.#state = State.AVAIL;
    this.#notified = false;
    this.#read(now, this.areas.availFlags, this.#avail, 0, 4, STEP);
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
    this.#read(now, address, this.#heads, 0, 2 * this.#fetched, STEP);
  }

  #takeHead(now: Nanos): void {
    this.#head = this.#headView.getUint16(this.#headAt, true);
    this.#chain.clear();
    this.#descriptors = 0;
    this.#readDescriptor(now, this.#head);
  }

  #readDescriptor(now: Nanos, index: number): void {
    if (index >= this.size) {
      this.#break(now, `descriptor ${index} in a table of ${this.size}`);
      return;
    }
    // A chain longer than its table comes round again.
    if (++this.#descriptors > this.size) {
      this.#break(now, 'a chain of descriptors does not end');
      return;
    }
    this.#state = State.DESC;
    this.#read(now, this.areas.descriptor(index), this.#chain.table, 0, DESC_BYTES, STEP);
  }

  #descriptorRead(now: Nanos): void {
    const flags = this.#chain.flagsAt(0);
    if ((flags & VIRTQ_DESC_F_INDIRECT) !== 0) {
      this.#readTable(now, flags);
      return;
    }
    const wrong = this.#chain.append(0);
    if (wrong !== '') this.#break(now, wrong);
    else if ((flags & VIRTQ_DESC_F_NEXT) !== 0) {
      this.#readDescriptor(now, this.#chain.nextAt(0));
    } else this.#ready(now);
  }

  #readTable(now: Nanos, flags: number): void {
    const { table } = this.#chain;
    const address = this.#chain.addressAt(0);
    const bytes = this.#chain.bytesAt(0);
    if (!this.#owner.indirectDescriptors) {
      this.#break(now, 'an indirect descriptor, which was not negotiated');
    } else if ((flags & VIRTQ_DESC_F_NEXT) !== 0) {
      this.#break(now, 'an indirect descriptor that is not the last of its chain');
    } else if (bytes === 0 || bytes % DESC_BYTES !== 0 || bytes > table.length) {
      this.#break(now, `an indirect table of ${bytes} bytes`);
    } else if (address + bytes >= HOST_ADDRESS_END) {
      this.#break(now, `an indirect table at 0x${address.toString(16)}`);
    } else {
      this.#state = State.TABLE;
      this.#descriptors = bytes / DESC_BYTES;
      this.#read(now, address, table, 0, bytes, STEP);
    }
  }

  #tableRead(now: Nanos): void {
    const wrong = this.#chain.appendTable(this.#descriptors);
    if (wrong !== '') this.#break(now, wrong);
    else this.#ready(now);
  }

  #ready(now: Nanos): void {
    this.#state = State.REQUEST;
    this.#owner.requestReady(now, this);
  }

  #gathered(now: Nanos): void {
    this.#gathering--;
    if (this.#gathering > 0) return;
    if (this.#gatherFailed) this.#break(now, 'a request that cannot be read');
    else this.#owner.requestGathered(now, this);
  }

  #usedWritten(now: Nanos): void {
    this.#state = State.EVENT;
    if (this.#owner.eventIndex) {
      this.#read(now, this.areas.usedEvent, this.#word, 0, 2, STEP);
    } else {
      this.#read(now, this.areas.availFlags, this.#avail, 0, 4, STEP);
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
