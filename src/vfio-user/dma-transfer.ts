/** A copy between the memory of a client and bytes of a device. */
import type { Done } from './refusal.ts';

export interface DmaTransfer {
  /** In the memory of the client. */
  readonly address: number;
  /** What is read goes here; what is written must not change before `done`. */
  readonly bytes: Uint8Array;
  /** Where in `bytes`. */
  readonly at: number;
  readonly count: number;
  /** Once: within the call where the memory is mapped or copied. */
  readonly done: Done;
}
