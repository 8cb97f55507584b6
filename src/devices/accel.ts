import type { Device } from '#pcie/device';

export interface AcceleratorOptions {
  /** Lower-case 8-4-4-4-12; also readable in the UUID registers. */
  readonly uuid: string;
  /** Device serial number (DSN capability), 64 bits. Default: the first eight bytes of the UUID. */
  readonly serial?: bigint;
  readonly model?: string;
  /** Device memory behind BAR2: a power of two from 1 MiB to 2 GiB. Default 64 MiB. */
  readonly memoryBytes?: number;
  /** Independent command rings, 1 to 8. Default 4. */
  readonly channels?: number;
  /** Outstanding DMA reads the function can have, 1 to 768. Default 256. */
  readonly tags?: number;
  /** Largest Max_Payload_Size supported, a power of two from 128 to 4096. Default 512. */
  readonly maxPayloadBytes?: number;
  /** Bounds Max_Read_Request_Size as the host sets it. Default 4096. */
  readonly maxReadRequestBytes?: number;
  /** Default 4 s. */
  readonly completionTimeoutNs?: number;
  /** Ring entries fetched ahead per channel, 1 to 64. Default 16. */
  readonly prefetchCommands?: number;
  /** Time a kernel takes per floating-point operation. Default 0. */
  readonly nsPerFlop?: number;
  /** Told of accesses to unknown registers and of channels that halt. */
  readonly log?: (message: string) => void;
}

/** The reference accelerator of `docs/accelerator-datasheet.md`. */
export function createAccelerator(_options: AcceleratorOptions): Device {
  throw new Error('to be written');
}
