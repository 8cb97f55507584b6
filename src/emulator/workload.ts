/**
 * What an emulation runs: host threads that make calls at their times, and queues of commands that the
 * calls set going. Made from a trace (`trace-workload.ts`) or by hand; run by `HostProgram`.
 *
 * Everything is told by cause, nothing by the clock: a call comes a gap after the end of the one before
 * it on its thread, a batch a delay after the start of its call, a wait ends when its fences arrive.
 */
import type { RingCommand } from '#host/accel-channel-ring';

/** Commands that go into a queue at once, with one doorbell. */
export interface Batch {
  /** The call that submits them, an index into `Workload.calls`; -1: as soon as those before have been. */
  readonly call: number;
  /** From the start of the call to the doorbell, ns. */
  readonly delayNs: number;
  readonly commands: readonly RingCommand[];
}

/** The fence of a command, which must be flagged FENCE: number `command` of its queue, from 1. */
export interface FenceOf {
  readonly queue: number;
  readonly command: number;
}

export interface WorkloadCall {
  /** From the end of the call before on the thread, or from the beginning of the run, ns. */
  readonly gapNs: number;
  /**
   * How long the call lasts, ns. Where it waits: its own part, from the later of its start and the
   * moment when the last of its fences would have reached it natively.
   */
  readonly ownNs: number;
  /** What it waits for. */
  readonly fences: readonly FenceOf[];
  /** Calls of other threads it comes after as well, and how long after their ends, ns. */
  readonly after: readonly { readonly call: number; readonly gapNs: number }[];
}

export interface Workload {
  readonly calls: readonly WorkloadCall[];
  /** The calls of each thread, in order: indices into `calls`. */
  readonly threads: readonly (readonly number[])[];
  /** The batches of each queue, in the order they go into it. */
  readonly queues: readonly (readonly Batch[])[];
}

/**
 * One call, which takes no time itself: it gives its commands to one queue, and waits for that of number
 * `waitsFor`, if any.
 */
export function singleCall(commands: readonly RingCommand[], waitsFor?: number): Workload {
  const fences = waitsFor === undefined ? [] : [{ queue: 0, command: waitsFor }];
  return {
    calls: [{ gapNs: 0, ownNs: 0, fences, after: [] }],
    threads: [[0]],
    queues: [[{ call: 0, delayNs: 0, commands }]],
  };
}
