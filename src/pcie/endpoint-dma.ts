/**
 * The DMA engine of an endpoint: transfers of any size become memory requests, as many in flight as
 * there are tags.
 *
 * Who owns what: a `Transfer` is pooled and lives from `read` or `write` to its end. A channel's two
 * queues hold the transfers that still have requests to send; `ReadsInFlight` holds the requests that
 * have been sent and not yet answered.
 *
 * Order: writes of one channel leave in the order they were asked for, so that a fence or an
 * interrupt comes behind the data before it. A read leaves behind the writes its channel was given
 * before it, and never holds up a write. Between channels nothing is promised: they take turns, one
 * TLP or one run of writes each.
 */
import { assert, assertDefined } from '#base/assert';
import { copyBytes } from '#base/copy-bytes';
import type { Nanos } from '#base/units';
import type { DevicePort } from './device.ts';
import { MAX_OUTSTANDING_READS, ReadsInFlight, type ReadsUser } from './endpoint-reads.ts';
import {
  DmaChannel,
  type DmaClient,
  DmaStatus,
  type Transfer,
  TransferPool,
} from './endpoint-transfer.ts';
import { readChunk, setMemoryRead, setMemoryWrite, writeChunk } from './split.ts';
import { FlowClass, Tlp } from './tlp.ts';
import { runOfWrites } from './tlp-run.ts';

export interface DmaOptions {
  readonly channels: number;
  /** Most read requests in flight, 1 to 768, whatever the host allows. */
  readonly tags: number;
  readonly completionTimeoutNs: number;
  /** A read request failed: for the function's error registers. */
  readonly onError: (status: DmaStatus) => void;
}

/** What the host's settings allow right now; `Endpoint` keeps it current. */
export class DmaLimits {
  busMaster = false;
  requesterId = 0;
  maxPayloadBytes = 128;
  maxReadRequestBytes = 128;
  tagBits: 5 | 8 | 10 = 5;
  timeoutEnabled = true;
}

const MAX_PAYLOAD_BYTES = 4096;

export class DmaEngine implements ReadsUser {
  readonly limits = new DmaLimits();
  readRequests = 0;
  writeRequests = 0;
  /** Read requests that ended with an error or a timeout. */
  failedRequests = 0;
  readonly #options: DmaOptions;
  readonly #channels: DmaChannel[];
  readonly #reads: ReadsInFlight;
  readonly #pool = new TransferPool();
  readonly #tlp = new Tlp();
  readonly #padded = new Uint8Array(MAX_PAYLOAD_BYTES);
  #port: DevicePort | undefined;
  /** Transfers in the channels' queues. */
  #queued = 0;
  /** The channel whose turn it is. */
  #turn = 0;
  #pumping = false;
  #again = false;
  /** The last request of a write, while it is handed to the port: an abort must reach it too. */
  #sending: Transfer | undefined;

  constructor(options: DmaOptions) {
    const { tags, channels } = options;
    assert(tags >= 1 && tags <= MAX_OUTSTANDING_READS, `not a number of tags: ${tags}`);
    this.#options = options;
    this.#channels = Array.from({ length: channels }, () => new DmaChannel());
    this.#reads = new ReadsInFlight(this, tags);
  }

  plug(port: DevicePort): void {
    this.#port = port;
  }

  /**
   * Reads `bytes` bytes from `address` of the host to `memoryOffset` of `memory`. At least one byte;
   * the range ends below 2^53.
   */
  read(
    now: Nanos,
    channel: number,
    address: number,
    memory: Uint8Array,
    memoryOffset: number,
    bytes: number,
    client: DmaClient,
    cookie: number,
  ): void {
    const queues = this.#channel(channel);
    const transfer = this.#take(channel, address, bytes, client, cookie);
    transfer.memory = memory;
    transfer.memoryOffset = memoryOffset;
    transfer.behindWrite = queues.writesAsked;
    queues.reads.push(transfer);
    this.#queued++;
    this.pump(now);
  }

  /**
   * Writes `bytes` bytes at `memoryOffset` of `memory` to `address` of the host. At least one byte;
   * the range ends below 2^53. The bytes must not change until `dmaDone`.
   */
  write(
    now: Nanos,
    channel: number,
    address: number,
    memory: Uint8Array,
    memoryOffset: number,
    bytes: number,
    client: DmaClient | undefined,
    cookie: number,
  ): void {
    const transfer = this.#take(channel, address, bytes, client, cookie);
    transfer.memory = memory;
    transfer.memoryOffset = memoryOffset;
    this.#queueWrite(now, transfer);
  }

  /** Writes one or two little-endian words, 4 or 8 bytes, in order behind the channel's writes. */
  writeSmall(
    now: Nanos,
    channel: number,
    address: number,
    lo: number,
    hi: number,
    bytes: 4 | 8,
    client: DmaClient | undefined,
    cookie: number,
  ): void {
    const transfer = this.#take(channel, address, bytes, client, cookie);
    transfer.memory = transfer.immediate;
    transfer.memoryOffset = 0;
    for (let i = 0; i < 4; i++) {
      transfer.immediate[i] = lo >>> (8 * i);
      transfer.immediate[4 + i] = hi >>> (8 * i);
    }
    this.#queueWrite(now, transfer);
  }

  /**
   * Forgets a channel's transfers: nothing more of them is sent, data still on its way is dropped
   * (its tags stay taken until then), and no client is told.
   */
  abort(channel: number): void {
    const queues = this.#channel(channel);
    this.#reads.abandon(channel);
    if (this.#sending?.channel === channel) this.#sending.abandoned = true;
    for (let read = queues.reads.shift(); read !== undefined; read = queues.reads.shift()) {
      this.#queued--;
      if (read.outstanding === 0) this.#pool.giveBack(read);
    }
    for (let write = queues.writes.shift(); write !== undefined; write = queues.writes.shift()) {
      this.#queued--;
      queues.writesSent++;
      this.#pool.giveBack(write);
    }
  }

  /** Forgets everything, tags in flight included: for a reset that ends the session with the host. */
  reset(): void {
    for (let channel = 0; channel < this.#channels.length; channel++) this.abort(channel);
    this.#reads.reset();
  }

  /** Whether a read request waits for its completion. */
  get pending(): boolean {
    return this.#reads.outstanding > 0;
  }

  /** A completion with this function's requester ID. Returns false for an unexpected one. */
  completion(now: Nanos, tlp: Tlp): boolean {
    const { tagsHeld } = this.#reads;
    const expected = this.#reads.completion(now, tlp);
    // Most completions are a part of their request: nothing can leave that could not before.
    if (this.#reads.tagsHeld < tagsHeld) this.pump(now);
    return expected;
  }

  /** A run of completions (tlp-run.ts), all parts of one request; false when nothing has happened. */
  completionRun(first: Tlp, stride: number, count: number): boolean {
    // No tag comes free by a part: nothing can leave that could not before.
    return this.#reads.completionRun(first, stride, count);
  }

  nextDeadlineNs(): number {
    return this.#reads.nextDeadlineNs();
  }

  tick(now: Nanos): void {
    if (this.#reads.nextDeadlineNs() > now) return;
    this.#reads.expire(now);
    this.pump(now);
  }

  requestDone(now: Nanos, transfer: Transfer, status: DmaStatus): void {
    transfer.outstanding--;
    if (status !== DmaStatus.OK) {
      this.failedRequests++;
      this.#options.onError(status);
      if (transfer.status === DmaStatus.OK) transfer.status = status;
      this.#stopAsking(transfer);
    }
    if (transfer.outstanding > 0) return;
    const isAllSent = transfer.sentBytes === transfer.bytes;
    if (isAllSent || transfer.status !== DmaStatus.OK || transfer.abandoned) {
      this.#end(now, transfer);
    }
  }

  /** Sends what may be sent: after new transfers, freed tags, `resume`, and changes of `limits`. */
  pump(now: Nanos): void {
    // A send may be answered at once and bring new work: the loop that is already running does it.
    if (this.#pumping) {
      this.#again = true;
      return;
    }
    if (this.#queued === 0 || !this.limits.busMaster) return;
    const port = assertDefined(this.#port, 'DMA before the device was plugged in');
    this.#pumping = true;
    let idleTurns = 0;
    while (idleTurns < this.#channels.length && this.limits.busMaster) {
      const queues = this.#channels[this.#turn] as DmaChannel;
      this.#turn = this.#turn + 1 === this.#channels.length ? 0 : this.#turn + 1;
      let isIdle = true;
      if (queues.writes.size > 0 && this.#sendWrite(now, port, queues)) isIdle = false;
      if (queues.reads.size > 0 && this.#sendRead(now, port, queues)) isIdle = false;
      idleTurns = isIdle && !this.#again ? idleTurns + 1 : 0;
      this.#again = false;
    }
    this.#pumping = false;
  }

  #sendWrite(now: Nanos, port: DevicePort, queues: DmaChannel): boolean {
    const transfer = queues.writes.peek();
    if (transfer === undefined) return false;
    const address = transfer.address + transfer.sentBytes;
    const remaining = transfer.bytes - transfer.sentBytes;
    const bytes = writeChunk(address, remaining, this.limits.maxPayloadBytes);
    const lead = address & 3;
    const payloadBytes = (lead + bytes + 3) & ~3;
    if (!port.canSend(FlowClass.POSTED, payloadBytes)) return false;
    const tlp = this.#tlp;
    setMemoryWrite(tlp, address, bytes, this.limits.requesterId);
    const source = transfer.memoryOffset + transfer.sentBytes;
    if (payloadBytes === bytes) {
      tlp.payload = transfer.memory;
      tlp.payloadOffset = source;
    } else {
      // Bytes that are not enabled go out as zeros, not as whatever lies beside the data.
      this.#padded.fill(0, 0, 4);
      this.#padded.fill(0, payloadBytes - 4, payloadBytes);
      copyBytes(this.#padded, lead, transfer.memory, source, bytes);
      tlp.payload = this.#padded;
      tlp.payloadOffset = 0;
    }
    if (port.sendWrites !== undefined) {
      // The last one ends the transfer: it goes by itself.
      const run = runOfWrites(address, remaining - 1, this.limits.maxPayloadBytes);
      const sent = run > 1 ? port.sendWrites(now, tlp, run) : 0;
      transfer.sentBytes += sent * bytes;
      this.writeRequests += sent;
      if (sent > 0) return true;
    }
    transfer.sentBytes += bytes;
    this.writeRequests++;
    if (transfer.sentBytes < transfer.bytes) {
      port.send(now, tlp);
      return true;
    }
    queues.writes.shift();
    queues.writesSent++;
    this.#queued--;
    this.#sending = transfer;
    port.send(now, tlp);
    this.#sending = undefined;
    this.#end(now, transfer);
    return true;
  }

  #sendRead(now: Nanos, port: DevicePort, queues: DmaChannel): boolean {
    const transfer = queues.reads.peek();
    if (transfer === undefined || transfer.behindWrite > queues.writesSent) return false;
    if (!port.canSend(FlowClass.NON_POSTED, 0)) return false;
    const { limits } = this;
    const tag = this.#reads.takeTag(limits.tagBits);
    if (tag < 0) return false;
    const address = transfer.address + transfer.sentBytes;
    const remaining = transfer.bytes - transfer.sentBytes;
    const bytes = readChunk(address, remaining, limits.maxReadRequestBytes);
    const timeoutNs = limits.timeoutEnabled ? this.#options.completionTimeoutNs : Infinity;
    this.#reads.open(tag, transfer, address, bytes, now + timeoutNs);
    transfer.sentBytes += bytes;
    transfer.outstanding++;
    this.readRequests++;
    if (transfer.sentBytes === transfer.bytes) {
      queues.reads.shift();
      this.#queued--;
    }
    setMemoryRead(this.#tlp, address, bytes, limits.requesterId, tag);
    port.send(now, this.#tlp);
    return true;
  }

  #queueWrite(now: Nanos, transfer: Transfer): void {
    const queues = this.#channel(transfer.channel);
    queues.writesAsked++;
    queues.writes.push(transfer);
    this.#queued++;
    this.pump(now);
  }

  /** A failed read asks for no more. What is partly sent is always the oldest of its channel. */
  #stopAsking(transfer: Transfer): void {
    const queues = this.#channel(transfer.channel);
    if (queues.reads.peek() !== transfer) return;
    queues.reads.shift();
    this.#queued--;
  }

  #end(now: Nanos, transfer: Transfer): void {
    const { client, cookie, status, abandoned } = transfer;
    this.#pool.giveBack(transfer);
    if (client !== undefined && !abandoned) client.dmaDone(now, cookie, status);
  }

  #channel(channel: number): DmaChannel {
    return assertDefined(this.#channels[channel], 'there is no such DMA channel');
  }

  #take(
    channel: number,
    address: number,
    bytes: number,
    client: DmaClient | undefined,
    cookie: number,
  ): Transfer {
    assert(
      bytes >= 1 && address >= 0 && Number.isSafeInteger(address + bytes),
      'not a range DMA can reach',
    );
    const transfer = this.#pool.take();
    transfer.channel = channel;
    transfer.address = address;
    transfer.bytes = bytes;
    transfer.client = client;
    transfer.cookie = cookie;
    return transfer;
  }
}
