/** What a client session is made with, and what it finds. */
import type { Nanos } from '#base/units';
import type { Refusal } from './refusal.ts';
import type { RegionInfo } from './region-info.ts';

export interface ClientOptions {
  /** After this long without a reply a request has failed. Default 5000, as QEMU's. */
  readonly requestTimeoutMs?: number;
  /** After this long without an answer of the `DmaTarget` a DMA message fails. Default 4000. */
  readonly dmaTimeoutMs?: number;
  /** Descriptors taken in one message. Default 8. */
  readonly maxMsgFds?: number;
  /** The largest data of one message that is taken. Default 1 MiB. */
  readonly maxDataXferBytes?: number;
  /** DMA messages of the device that are unanswered at once; more get EBUSY. Default 256. */
  readonly maxPendingDma?: number;
  /** A message of the device was refused. */
  readonly onRefused?: (now: Nanos, command: number, refused: Refusal) => void;
}

export type ClientSettings = Required<Omit<ClientOptions, 'onRefused'>> &
  Pick<ClientOptions, 'onRefused'>;

export const DEFAULT_CLIENT_OPTIONS: ClientSettings = {
  requestTimeoutMs: 5000,
  dmaTimeoutMs: 4000,
  maxMsgFds: 8,
  maxDataXferBytes: 1_048_576,
  maxPendingDma: 256,
};

/** A device as its server describes it. */
export interface DeviceDescription {
  readonly resettable: boolean;
  /** By index. Those of size 0 do not exist. */
  readonly regions: readonly RegionInfo[];
  /** How many interrupts of each type. */
  readonly irqs: readonly number[];
  /** The server takes REGION_WRITE_MULTI. */
  readonly writeMultiple: boolean;
}
