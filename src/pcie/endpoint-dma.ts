import type { Nanos } from '../base/units.ts';

/** How a DMA transfer ended. */
export const DmaStatus = {
  OK: 0,
  /** A completion with status UR. */
  UNSUPPORTED: 1,
  /** A completion with status CA, or one that does not fit its request. */
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
