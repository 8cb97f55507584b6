/** Records of the DMA engine (endpoint-dma.ts): one transfer, and one channel's queues. */
import { RingBuffer } from '#base/ring-buffer';
import type { Nanos } from '#base/units';

/** How a DMA transfer ended. */
export const DmaStatus = {
  OK: 0,
  /** A completion with status UR. */
  UNSUPPORTED: 1,
  /** A completion with status CA or CRS. */
  ABORTED: 2,
  /** A request was not answered within the completion timeout. */
  TIMEOUT: 3,
  /** A completion carried poisoned data. */
  POISONED: 4,
} as const;
export type DmaStatus = (typeof DmaStatus)[keyof typeof DmaStatus];

/** Told when a transfer is over. May start new transfers from inside the call. */
export interface DmaClient {
  /**
   * A read: every byte is in its place, or the status says why not (the target's content is then
   * undefined), and none of its requests is outstanding any more. A write: the last of it was sent.
   */
  dmaDone(now: Nanos, cookie: number, status: DmaStatus): void;
}

/** One DMA read or write; pooled. */
export class Transfer {
  address = 0;
  bytes = 0;
  /** Where the data goes to or comes from: `bytes` bytes at `memoryOffset` of `memory`. */
  memory: Uint8Array;
  memoryOffset = 0;
  client: DmaClient | undefined;
  cookie = 0;
  status: DmaStatus = DmaStatus.OK;
  channel = 0;
  /** Bytes that requests have been sent for. */
  sentBytes = 0;
  /** Read requests in flight. */
  outstanding = 0;
  /** How many of its channel's writes must have left before this read may. */
  behindWrite = 0;
  /** Its channel was aborted: what still comes is dropped, and nobody is told. */
  abandoned = false;
  /** Room for a small write of its own, so that whoever asked need not keep the bytes. */
  readonly immediate = new Uint8Array(8);

  constructor() {
    this.memory = this.immediate;
  }
}

/** The transfers of one channel that still have requests to send, oldest first. */
export class DmaChannel {
  readonly reads = new RingBuffer<Transfer>();
  readonly writes = new RingBuffer<Transfer>();
  /** Writes ever asked for, and ever completely sent or dropped. */
  writesAsked = 0;
  writesSent = 0;
}

/** Transfers not in use. */
export class TransferPool {
  readonly #free: Transfer[] = [];

  take(): Transfer {
    return this.#free.pop() ?? new Transfer();
  }

  giveBack(transfer: Transfer): void {
    transfer.client = undefined;
    transfer.memory = transfer.immediate;
    transfer.status = DmaStatus.OK;
    transfer.sentBytes = 0;
    transfer.outstanding = 0;
    transfer.behindWrite = 0;
    transfer.abandoned = false;
    this.#free.push(transfer);
  }
}
