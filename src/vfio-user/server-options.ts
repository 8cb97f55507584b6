/** What a server session is made with, and what it counts. */
import type { Nanos } from '#base/units';
import type { UnsealedMemory } from './dma-map.ts';
import type { Refusal } from './refusal.ts';

export interface ServerOptions {
  /**
   * After this long without an answer of the device a region read is answered with all ones. QEMU gives
   * up after 5 s and is wrecked by an answer that comes then. Default 4500.
   */
  readonly accessTimeoutMs?: number;
  /** After this long without a reply a DMA message has failed. Default 4000. */
  readonly dmaTimeoutMs?: number;
  /** Descriptors taken in one message, 1 to 253; QEMU refuses more than 16. Default 8. */
  readonly maxMsgFds?: number;
  /** The largest data of one message, 4096 to 64 MiB, which is QEMU's bound. Default 1 MiB. */
  readonly maxDataXferBytes?: number;
  /** DMA regions at once. Default 65535. */
  readonly maxDmaMaps?: number;
  /**
   * Of these, mapped at once; others are copied. Linux has 65,530 mappings a process by default, and one
   * that has used them up gets no memory for anything else. Default 8192.
   */
  readonly maxMappedRegions?: number;
  /** Accesses of the client that are unanswered at once; more get EBUSY. Default 1024. */
  readonly maxPendingAccesses?: number;
  /** DMA messages that are out at once. Default 16. */
  readonly maxDmaMessages?: number;
  /** Default `copy`. */
  readonly unsealedMemory?: UnsealedMemory;
  /** A message was refused; the client has been told. `command` is its number. */
  readonly onRefused?: (now: Nanos, command: number, refused: Refusal) => void;
}

export type ServerSettings = Required<Omit<ServerOptions, 'onRefused'>> &
  Pick<ServerOptions, 'onRefused'>;

export const DEFAULT_SERVER_OPTIONS: ServerSettings = {
  accessTimeoutMs: 4500,
  dmaTimeoutMs: 4000,
  maxMsgFds: 8,
  maxDataXferBytes: 1_048_576,
  maxDmaMaps: 65_535,
  maxMappedRegions: 8192,
  maxPendingAccesses: 1024,
  maxDmaMessages: 16,
  unsealedMemory: 'copy',
};

export interface ServerCounters {
  /** Messages of the client, replies included. */
  messages: number;
  /** Of these, refused. */
  refused: number;
  /** Accesses answered for a device that did not. */
  expired: number;
  /** Answers of the device after that, or after the client had gone. */
  late: number;
}
