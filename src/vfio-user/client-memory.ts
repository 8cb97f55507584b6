/**
 * The memory a client lends to a device, as far as the device asks for it by messages: `MemoryLending`
 * checks each DMA_READ and DMA_WRITE against what is lent and hands it to the `DmaTarget`, which answers
 * at once or later.
 */
import type { Nanos } from '#base/units';
import { IntervalMap } from '#base/interval-map';
import {
  DMA_DATA,
  decodeDmaAccess,
  encodeDmaReadReply,
  encodeDmaWriteReply,
} from './dma-access.ts';
import type { DmaMapRequest } from './dma-mapping.ts';
import type { PeerPort } from './message-channel.ts';
import { Command, errorReply, type Message, requestName, wantsReply } from './message.ts';
import { PendingAccesses } from './pending-accesses.ts';
import { Errno, Refusal } from './refusal.ts';

export interface DmaReadAccess {
  readonly address: number;
  readonly count: number;
  /** Answers with `count` of `bytes` from `at` on, which are copied. */
  complete(now: Nanos, bytes: Uint8Array, at?: number): void;
  fail(now: Nanos, errno: number): void;
}

export interface DmaWriteAccess {
  readonly address: number;
  readonly count: number;
  /** `count` bytes, valid during the call alone. */
  readonly bytes: Uint8Array;
  done(now: Nanos): void;
  fail(now: Nanos, errno: number): void;
}

/** Memory behind addresses. Only what is lent is asked for. Unanswered in time, an access fails. */
export interface DmaTarget {
  read(now: Nanos, access: DmaReadAccess): void;
  write(now: Nanos, access: DmaWriteAccess): void;
}

export class MemoryLending {
  readonly accesses: PendingAccesses;
  readonly #target: DmaTarget;
  readonly #port: PeerPort;
  readonly #maxBytes: number;
  readonly #lent = new IntervalMap();

  constructor(
    target: DmaTarget,
    port: PeerPort,
    limits: { maxBytes: number; timeoutMs: number; maxPending: number },
  ) {
    this.#target = target;
    this.#port = port;
    this.#maxBytes = limits.maxBytes;
    this.accesses = new PendingAccesses(limits.timeoutMs * 1e6, limits.maxPending);
  }

  /** False when some of it is lent already. */
  lend(request: DmaMapRequest): boolean {
    const { address, sizeBytes, readable, writable } = request;
    const flags = (readable ? 1 : 0) | (writable ? 2 : 0);
    return this.#lent.insert(address, address + sizeBytes - 1, flags);
  }

  /** Takes back what was lent from `address` on: nothing of it is asked for any more. */
  takeBack(address: number): boolean {
    return this.#lent.remove(address) >= 0;
  }

  /** A DMA_READ or DMA_WRITE. */
  serve(now: Nanos, message: Message): Refusal | undefined {
    const access = decodeDmaAccess(message, this.#maxBytes);
    if (access instanceof Refusal) return access;
    const isWrite = message.command === Command.DMA_WRITE;
    const { address, count } = access;
    const refused = this.#refuse(address, count, isWrite);
    if (refused !== undefined) return refused;
    const name = requestName(message);
    const isAwaited = wantsReply(message);
    const port = this.#port;
    const fail = (errno: number): void => {
      if (isAwaited) port.send(errorReply(name, errno));
    };
    const key = this.accesses.add(now, () => fail(Errno.ETIMEDOUT));
    const failed = (_now: Nanos, errno: number): void => {
      if (this.accesses.take(key)) fail(errno);
    };
    if (isWrite) {
      const bytes = message.bytes.subarray(DMA_DATA, DMA_DATA + count);
      const done = (): void => {
        if (!this.accesses.take(key) || !isAwaited) return;
        port.send(encodeDmaWriteReply(name.id, access));
      };
      this.#target.write(now, { address, count, bytes, done, fail: failed });
      return undefined;
    }
    const complete = (_now: Nanos, bytes: Uint8Array, at = 0): void => {
      if (!this.accesses.take(key) || !isAwaited) return;
      const reply = encodeDmaReadReply(name.id, access);
      reply.set(bytes.subarray(at, at + count), DMA_DATA);
      port.send(reply);
    };
    this.#target.read(now, { address, count, complete, fail: failed });
    return undefined;
  }

  #refuse(address: number, count: number, isWrite: boolean): Refusal | undefined {
    const lent = this.#lent;
    for (let at = address; at < address + count; ) {
      const place = lent.findIndex(at);
      if (place < 0) return new Refusal(Errno.EFAULT, `DMA to 0x${at.toString(16)}, not lent`);
      if ((lent.valueAt(place) & (isWrite ? 2 : 1)) === 0) {
        const what = isWrite ? 'writing' : 'reading';
        return new Refusal(Errno.EPERM, `DMA to 0x${at.toString(16)}, not lent for ${what}`);
      }
      at = lent.limitAt(place) + 1;
    }
    if (this.accesses.isFull) return new Refusal(Errno.EBUSY, 'too many DMA messages at once');
    return undefined;
  }
}

/** Memory that is an array, from `base` on. */
export class ArrayMemory implements DmaTarget {
  readonly #bytes: Uint8Array;
  readonly #base: number;

  constructor(bytes: Uint8Array, base = 0) {
    this.#bytes = bytes;
    this.#base = base;
  }

  read(now: Nanos, access: DmaReadAccess): void {
    const at = this.#place(access);
    if (at < 0) access.fail(now, Errno.EFAULT);
    else access.complete(now, this.#bytes, at);
  }

  write(now: Nanos, access: DmaWriteAccess): void {
    const at = this.#place(access);
    if (at < 0) {
      access.fail(now, Errno.EFAULT);
      return;
    }
    this.#bytes.set(access.bytes, at);
    access.done(now);
  }

  #place(access: { readonly address: number; readonly count: number }): number {
    const at = access.address - this.#base;
    return at >= 0 && at + access.count <= this.#bytes.length ? at : -1;
  }
}
