/** Runs a workload on a system from the first call to the last command. */
import { DxpuError } from '#base/errors';
import type { Nanos } from '#base/units';
import { AccelQueues } from '#host/accel-queues';
import type { Task, TaskScope } from '#host/task';
import { type LinkProfile, roundTripNs } from '#pcie/link-profile';
import type { EmulatedSystem } from './emulated-system.ts';
import { HostProgram } from './host-program.ts';
import type { TlpCounts } from './tlp-probe.ts';
import type { Workload } from './workload.ts';

export interface WorkloadRun {
  /** From the beginning to the end of the last call or command, ns; of a command as the device sees it. */
  readonly spanNs: number;
  /** When the run began, by the clock of its system, ns. */
  readonly originNs: number;
  /** By call, ns since the beginning. */
  readonly callStartNs: Float64Array;
  readonly callEndNs: Float64Array;
  readonly counts: TlpCounts;
  /** Bytes of network frames from the device's side and to it; 0 natively. */
  readonly frameBytesUp: number;
  readonly frameBytesDown: number;
}

export interface RunOptions {
  readonly profile: LinkProfile;
  /** Called when setting up is over and the run begins, with the time: to cut paths, to fill memory. */
  readonly begun?: (now: Nanos) => void;
  /** Nothing may take longer, ns of virtual time. Default 24 hours. */
  readonly limitNs?: number;
  readonly ringEntries?: number;
}

const DAY_NS = 24 * 3600e9;
/** A function may take so long to appear, and so many round trips: it is asked for all of its registers. */
const APPEARS_WITHIN_NS = 10e9;
const APPEARS_WITHIN_TRIPS = 1000;

/**
 * Runs to the end. Throws what stopped it: `unavailable` when the device went away, `aborted` when a
 * channel halted, `deadline_exceeded` when the limit passed. Nothing of a run that failed is given.
 */
export function runWorkload(
  system: EmulatedSystem,
  workload: Workload,
  options: RunOptions,
): WorkloadRun {
  const { clock, soft, probe } = system;
  const { profile, limitNs = DAY_NS } = options;
  let queues: AccelQueues | undefined;
  let scope: TaskScope | undefined;
  let failure: unknown;
  let isOpen = false;
  function* open(): Task<AccelQueues> {
    const patienceNs = APPEARS_WITHIN_NS + APPEARS_WITHIN_TRIPS * roundTripNs(profile);
    const fn = yield* system.hotPlug.waitForFunction(0, patienceNs);
    scope = fn.scope;
    return yield* AccelQueues.open(soft, fn, {
      queues: Math.max(1, workload.queues.length),
      ...(options.ringEntries === undefined ? {} : { entries: options.ringEntries }),
      halted: (_now, error) => (failure ??= error),
    });
  }
  system.run(open(), (_now, outcome) => {
    isOpen = true;
    if (outcome.ok) queues = outcome.value;
    else failure = outcome.error;
  });
  clock.runWhile(() => !isOpen, limitNs);
  if (queues === undefined) throw failure ?? tooLate(limitNs);

  const originNs = clock.now();
  const untilNs = originNs + limitNs;
  system.catchUp();
  const before = frameBytes(system);
  let after: FrameBytes | undefined;
  const program = new HostProgram(workload, queues, soft.tasks, profile.nativeRttNs / 2, () => {
    // Frames come and go after the end, and a host that lags tells of it when some have.
    after = frameBytes(system);
  });
  probe.clear(originNs);
  options.begun?.(originNs);
  program.start(originNs);
  system.settle();
  // Not before: the run begins at one moment for all.
  system.letLag(true);
  const isGoing = (): boolean =>
    after === undefined && failure === undefined && scope?.error === undefined;
  // What the host has yet to do by then tells nobody else of it in time.
  if (!clock.runWhile(isGoing, untilNs)) clock.runUntil(untilNs);
  system.letLag(false);
  system.catchUp();
  queues.close();
  failure ??= scope?.error;
  if (failure !== undefined) throw failure;
  if (after === undefined) throw tooLate(limitNs);
  let spanNs = workload.queues.some((queue) => queue.length > 0) ? probe.lastWriteNs - originNs : 0;
  for (const endNs of program.callEndNs) spanNs = Math.max(spanNs, endNs);
  return {
    spanNs,
    originNs,
    callStartNs: program.callStartNs,
    callEndNs: program.callEndNs,
    counts: probe.counts(clock.now()),
    frameBytesUp: after.up - before.up,
    frameBytesDown: after.down - before.down,
  };
}

interface FrameBytes {
  readonly up: number;
  readonly down: number;
}

function frameBytes({ network }: EmulatedSystem): FrameBytes {
  return { up: network?.frameBytesUp ?? 0, down: network?.frameBytesDown ?? 0 };
}

function tooLate(limitNs: number): DxpuError {
  return new DxpuError(
    'deadline_exceeded',
    `the emulated workload did not end within ${limitNs / 1e9} s of virtual time: ` +
      'take a link with a shorter round trip, more tags or a higher rate, or a shorter workload',
  );
}
