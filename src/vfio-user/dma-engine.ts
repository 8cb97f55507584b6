/**
 * The transfers of a device: in memory that is mapped or copied they happen within the call, elsewhere
 * as DMA_READ and DMA_WRITE messages, a few at a time. `DmaEngine` cuts a transfer at regions and at the
 * largest message; `PendingRequests` has the messages that are out.
 *
 * `afterWrites` gives interrupts their place: behind every write begun before them.
 */
import { copyBytes } from '#base/copy-bytes';
import { Barrier } from '#base/barrier';
import type { Nanos } from '#base/units';
import { DMA_DATA, encodeDmaRead, encodeDmaWrite, isDmaReply } from './dma-access.ts';
import type { DmaMap, DmaRegion } from './dma-map.ts';
import type { DmaTransfer } from './dma-transfer.ts';
import type { FdOperations } from './fd-operations.ts';
import type { PeerPort } from './message-channel.ts';
import { Command, type Message } from './message.ts';
import type { PendingRequests } from './pending-requests.ts';
import { type Done, Errno, Refusal } from './refusal.ts';

export interface DmaEngineOptions {
  readonly map: DmaMap;
  readonly fds: FdOperations;
  readonly port: PeerPort;
  readonly pending: PendingRequests;
  /** Messages that are out at once. */
  readonly maxMessages: number;
  /** A reply that is none ends the session. */
  readonly onLie: (now: Nanos, refused: Refusal) => void;
}

interface Transfer {
  readonly isWrite: boolean;
  /** Of a write, among `#writes`. */
  readonly serial: number | undefined;
  readonly done: Done;
  /** Pieces that have neither been answered nor dropped. */
  left: number;
  refused: Refusal | undefined;
}

/** Part of a transfer that goes as one message. */
interface Piece {
  readonly transfer: Transfer;
  readonly region: DmaRegion;
  readonly address: number;
  readonly bytes: Uint8Array;
  readonly at: number;
  readonly count: number;
}

export class DmaEngine {
  readonly #options: DmaEngineOptions;
  /** The largest count of a message; what the peer says it takes. */
  maxMessageBytes = 4096;
  #queue: Piece[] = [];
  readonly #out = new Set<Piece>();
  readonly #writes = new Barrier();

  constructor(options: DmaEngineOptions) {
    this.#options = options;
  }

  read(now: Nanos, transfer: DmaTransfer): void {
    this.#begin(now, false, transfer);
  }

  write(now: Nanos, transfer: DmaTransfer): void {
    this.#begin(now, true, transfer);
  }

  /** Calls `run` once all writes begun so far have ended; at once if none is under way. In order. */
  afterWrites(run: () => void): void {
    if (this.#writes.isOpen) run();
    else this.#writes.wait(run);
  }

  /** Ends what still has to do with `region`: nothing of it is sent or copied from here on. */
  drop(now: Nanos, region: DmaRegion): void {
    const refused = new Refusal(Errno.EFAULT, 'the memory has been taken back');
    const dropped = this.#queue.filter((piece) => piece.region === region);
    if (dropped.length > 0) this.#queue = this.#queue.filter((piece) => piece.region !== region);
    for (const piece of this.#out) if (piece.region === region) dropped.push(piece);
    for (const piece of dropped) {
      this.#out.delete(piece);
      this.#ended(now, piece, refused);
    }
    this.#pump(now);
  }

  /** The connection is gone. `PendingRequests.abort`, called next, ends what is out. */
  abort(now: Nanos, reason: string): void {
    // Nobody is left to be interrupted.
    this.#writes.clear();
    const refused = new Refusal(Errno.ECONNRESET, reason);
    for (const piece of this.#queue.splice(0)) this.#ended(now, piece, refused);
  }

  #begin(now: Nanos, isWrite: boolean, asked: DmaTransfer): void {
    const { address, bytes, at, count, done } = asked;
    if (this.#copied(isWrite, asked)) {
      done(now, undefined);
      return;
    }
    const refused = this.#refuse(isWrite, address, count);
    if (refused !== undefined) {
      done(now, refused);
      return;
    }
    const serial = isWrite ? this.#writes.begin() : undefined;
    const transfer: Transfer = { isWrite, serial, done, left: 1, refused: undefined };
    for (let from = 0; from < count; ) {
      const region = this.#options.map.find(address + from) as DmaRegion;
      const end = region.address + region.sizeBytes - address - from;
      let part = Math.min(count - from, end);
      if (region.access === 'message') part = Math.min(part, this.maxMessageBytes);
      const piece = {
        transfer,
        region,
        address: address + from,
        bytes,
        at: at + from,
        count: part,
      };
      if (region.access !== 'message') {
        this.#copy(piece);
      } else {
        transfer.left++;
        this.#queue.push(piece);
      }
      from += part;
    }
    this.#pieceEnded(now, transfer);
    this.#pump(now);
  }

  /** Whether it was all of one mapped window, as nearly every transfer is; then it is done. */
  #copied(isWrite: boolean, { address, bytes, at, count }: DmaTransfer): boolean {
    const region = this.#options.map.find(address);
    if (region?.memory === undefined || count < 1) return false;
    if (!(isWrite ? region.writable : region.readable)) return false;
    const { windows, windowBytes } = region.memory;
    const offset = address - region.address;
    const place = offset % windowBytes;
    if (offset + count > region.sizeBytes || place + count > windowBytes) return false;
    const window = windows[(offset - place) / windowBytes] as Uint8Array;
    if (isWrite) copyBytes(window, place, bytes, at, count);
    else copyBytes(bytes, at, window, place, count);
    return true;
  }

  #refuse(isWrite: boolean, address: number, count: number): Refusal | undefined {
    if (!Number.isSafeInteger(address + count) || address < 0 || count < 1) {
      return new Refusal(Errno.EFAULT, 'DMA of nothing, or beyond 2^53');
    }
    for (let at = address; at < address + count; ) {
      const region = this.#options.map.find(at);
      if (region === undefined) {
        return new Refusal(Errno.EFAULT, `DMA to 0x${at.toString(16)}, where no memory is`);
      }
      if (isWrite ? !region.writable : !region.readable) {
        const what = isWrite ? 'written' : 'read';
        return new Refusal(Errno.EPERM, `DMA to 0x${at.toString(16)}, which must not be ${what}`);
      }
      at = region.address + region.sizeBytes;
    }
    return undefined;
  }

  #copy(piece: Piece): void {
    const { transfer, region, address, bytes, at, count } = piece;
    const offset = address - region.address;
    if (region.memory !== undefined) {
      const { windows, windowBytes } = region.memory;
      for (let from = 0; from < count; ) {
        const place = (offset + from) % windowBytes;
        const window = windows[Math.floor((offset + from) / windowBytes)] as Uint8Array;
        const part = Math.min(count - from, windowBytes - place);
        if (transfer.isWrite) copyBytes(window, place, bytes, at + from, part);
        else copyBytes(bytes, at + from, window, place, part);
        from += part;
      }
      return;
    }
    const { fds } = this.#options;
    const fd = region.file?.fd ?? -1;
    const position = region.fileOffset + offset;
    const went = transfer.isWrite
      ? fds.write(fd, position, bytes, at, count)
      : fds.read(fd, position, bytes, at, count);
    if (!went) transfer.refused ??= new Refusal(Errno.EIO, 'the memory is not there any more');
  }

  #pump(now: Nanos): void {
    const { pending, port, maxMessages } = this.#options;
    while (this.#out.size < maxMessages) {
      const piece = this.#queue.shift();
      if (piece === undefined) return;
      const { address, bytes, at, count, transfer } = piece;
      const command = transfer.isWrite ? Command.DMA_WRITE : Command.DMA_READ;
      const id = pending.add(now, command, (then, reply) => {
        // Dropped in the meantime: its late completion is not for anybody.
        if (!this.#out.delete(piece)) return;
        this.#answered(then, piece, reply);
        this.#pump(then);
      });
      if (id === undefined) {
        this.#ended(now, piece, new Refusal(Errno.EBUSY, 'the peer answers nothing'));
        continue;
      }
      this.#out.add(piece);
      port.send(
        transfer.isWrite
          ? encodeDmaWrite(id, address, bytes, at, count)
          : encodeDmaRead(id, address, count),
      );
    }
  }

  #answered(now: Nanos, piece: Piece, reply: Message | Refusal): void {
    const { address, bytes, at, count, transfer } = piece;
    if (reply instanceof Refusal) {
      this.#ended(now, piece, reply);
      return;
    }
    if (!isDmaReply(reply, address, count)) {
      const refused = new Refusal(Errno.EPROTO, 'a DMA reply that does not answer its request');
      this.#ended(now, piece, refused);
      this.#options.onLie(now, refused);
      return;
    }
    if (!transfer.isWrite) copyBytes(bytes, at, reply.bytes, DMA_DATA, count);
    this.#ended(now, piece, undefined);
  }

  #ended(now: Nanos, piece: Piece, refused: Refusal | undefined): void {
    piece.transfer.refused ??= refused;
    this.#pieceEnded(now, piece.transfer);
  }

  #pieceEnded(now: Nanos, transfer: Transfer): void {
    if (--transfer.left > 0) return;
    transfer.done(now, transfer.refused);
    if (transfer.serial !== undefined) this.#writes.ended(now, transfer.serial);
  }
}
