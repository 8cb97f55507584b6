/** What all channels of one accelerator share. */
import type { Nanos } from '#base/units';
import type { Endpoint } from '#pcie/endpoint';
import type { CommandChecker } from './accel-check.ts';
import type { AccelCommand } from './accel-command.ts';
import type { CommandHolds } from './accel-held.ts';
import type { KernelMemory } from './accel-kernels.ts';
import type { AccelError } from './accel-registers.ts';
import type { FetchLimits } from './accel-ring-reader.ts';

/** `startedNs`: when its turn had come and nothing held it up. It is done at `now`, its fence sent. */
export type CommandObserver = (
  now: Nanos,
  channel: number,
  startedNs: number,
  command: Readonly<AccelCommand>,
) => void;

/** A fetch that was asked for at `askedNs` has brought so many commands. */
export type FetchObserver = (
  now: Nanos,
  channel: number,
  askedNs: number,
  commands: number,
) => void;

export interface ChannelContext extends FetchLimits {
  readonly endpoint: Endpoint;
  readonly memory: Uint8Array;
  readonly kernels: KernelMemory;
  readonly checker: CommandChecker;
  readonly nsPerFlop: number;
  readonly holds: CommandHolds;
  /** Told of each command that is done; see `AcceleratorOptions`. */
  readonly onCommand: CommandObserver | undefined;
  readonly onFetch: FetchObserver | undefined;
  /** Sets the channel's bits in INTERRUPT_STATUS. */
  fenceSignalled(channel: number): void;
  channelHalted(channel: number, error: AccelError, index: number, address: number): void;
}
