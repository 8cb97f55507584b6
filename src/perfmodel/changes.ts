/** Changes to a workload that the model can be run again with: what they spare, in both estimates. */
import { CALL_KIND } from '#trace/call-kind';
import { forEachCall, forEachWork } from '#trace/lanes';
import type { Timeline } from '#trace/timeline';
import { WORK_KIND } from '#trace/timeline';
import type { Payers } from './additive.ts';
import type { Change } from './replay.ts';
import type { WorkloadModel } from './workload-model.ts';

export interface Spared {
  readonly payers: Payers;
  readonly change: Change;
  /** Submissions, copies or waits it is about. */
  readonly count: number;
}

const SHORT_KERNEL_NS = 10_000;
/** A graph of fewer kernels is not worth its trouble. */
const LEAST_RUN = 4;

/**
 * Runs of at least four launches of one kernel of at most 10 µs each, on one thread with no host wait
 * and no other submission between, become a graph each: all but the first submit for nothing. The CPU
 * time a graph spares as well is not counted.
 */
export function asGraphs(model: WorkloadModel): Spared {
  const { timeline, lanes, payers } = model;
  const { calls } = timeline;
  const isShort = shortLaunches(timeline, model);
  const freeLaunches = new Uint8Array(calls.count);
  let spared = 0;
  let run: number[] = [];
  const close = (): void => {
    if (run.length >= LEAST_RUN) {
      for (const call of run.slice(1)) freeLaunches[call] = 1;
      spared += run.length - 1;
    }
    run = [];
  };
  for (let thread = 0; thread < lanes.callFrom.length; thread += 1) {
    const to = lanes.callTo[thread] ?? 0;
    for (let call = lanes.callFrom[thread] ?? 0; call < to; call += 1) {
      if (isShort[call] === 1) run.push(call);
      else if (endsRun(calls.kind[call] ?? 0)) close();
    }
    close();
  }
  return {
    payers: { ...payers, submissions: payers.submissions - spared },
    change: { freeLaunches },
    count: spared,
  };
}

/** Calls that launch one short kernel and nothing else. */
function shortLaunches(timeline: Timeline, { lanes }: WorkloadModel): Uint8Array {
  const { calls, work } = timeline;
  const isShort = new Uint8Array(calls.count);
  forEachWork(lanes, (row) => {
    const call = work.call[row] ?? -1;
    if (call < 0 || calls.kind[call] !== CALL_KIND.launch) return;
    const isShortKernel =
      work.kind[row] === WORK_KIND.kernel && (work.durationNs[row] ?? 0) <= SHORT_KERNEL_NS;
    // A second piece of work under one call, as a nested driver call may bring, rules it out.
    isShort[call] = isShortKernel && isShort[call] === 0 ? 1 : 2;
  });
  return isShort;
}

function endsRun(kind: number): boolean {
  return (
    kind !== CALL_KIND.other &&
    kind !== CALL_KIND.query &&
    kind !== CALL_KIND.eventRecord &&
    kind !== CALL_KIND.memory
  );
}

/**
 * HtoD copies read ahead from pinned memory while the GPU works, DtoH copies into pinned memory that
 * nobody waits for at once: HtoD copies cost nothing more than recorded, and neither copies made to
 * block by pageable memory nor blocking HtoD copies hold the host up.
 */
export function withPrefetchedCopies(model: WorkloadModel): Spared {
  const { timeline, lanes, payers } = model;
  const { calls, work } = timeline;
  const freeLaunches = new Uint8Array(calls.count);
  const noWait = new Uint8Array(calls.count);
  const submissions = new Set<number>();
  forEachWork(lanes, (row) => {
    const call = work.call[row] ?? -1;
    const launchedBy = call < 0 ? CALL_KIND.other : calls.kind[call];
    if (work.kind[row] === WORK_KIND.htod) {
      // A graph that holds a copy is still submitted.
      if (launchedBy === CALL_KIND.graphLaunch) return;
      submissions.add(work.submission[row] ?? 0);
      if (call >= 0) freeLaunches[call] = 1;
      if (launchedBy === CALL_KIND.copyBlocking) noWait[call] = 1;
    } else if (work.kind[row] === WORK_KIND.dtoh && launchedBy === CALL_KIND.copyAsync) {
      noWait[call] = 1;
    }
  });
  const { skippedWaits, spared } = skipWaits(model, noWait);
  return {
    payers: {
      ...payers,
      htod: new Uint32Array(0),
      submissions: payers.submissions - submissions.size,
      hostWaits: payers.hostWaits - spared,
    },
    change: { freeLaunches, skippedWaits, isHtodHidden: true },
    count: payers.htod.length + spared,
  };
}

/**
 * Of device, context, stream and event synchronises only the last of each marked iteration waits; of
 * a trace without marks every second one of each thread.
 */
export function withFewerWaits(model: WorkloadModel): Spared {
  const { timeline, lanes, payers } = model;
  const { calls, iterations } = timeline;
  const noWait = new Uint8Array(calls.count);
  const lastOf = new Map<string, number>();
  const seen = new Map<number, number>();
  forEachCall(lanes, (call) => {
    if (!isSynchronise(calls.kind[call] ?? 0)) return;
    const thread = calls.thread[call] ?? 0;
    if (iterations.length === 0) {
      const count = seen.get(thread) ?? 0;
      seen.set(thread, count + 1);
      noWait[call] = count % 2 === 0 ? 1 : 0;
      return;
    }
    const key = `${thread} ${iterationAt(timeline, calls.startNs[call] ?? 0)}`;
    const last = lastOf.get(key);
    if (last !== undefined) noWait[last] = 1;
    lastOf.set(key, call);
  });
  const { skippedWaits, spared } = skipWaits(model, noWait);
  return {
    payers: { ...payers, hostWaits: payers.hostWaits - spared },
    change: { skippedWaits },
    count: spared,
  };
}

/** Number of the iteration that began last by then; -1 before the first. */
function iterationAt({ iterations }: Timeline, atNs: number): number {
  let low = 0;
  let high = iterations.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((iterations[middle]?.startNs ?? 0) <= atNs) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

function isSynchronise(kind: number): boolean {
  return (
    kind === CALL_KIND.deviceSync ||
    kind === CALL_KIND.contextSync ||
    kind === CALL_KIND.streamSync ||
    kind === CALL_KIND.eventSync
  );
}

function skipWaits(
  { isWait, lanes, replay }: WorkloadModel,
  noWait: Uint8Array,
): { readonly skippedWaits: Uint8Array; readonly spared: number } {
  const waits = replay?.graph.waits;
  const skippedWaits = Uint8Array.from(waits?.call ?? [], (call) => noWait[call] ?? 0);
  let spared = 0;
  forEachCall(lanes, (call) => {
    if (noWait[call] === 1 && isWait[call] === 1) spared += 1;
  });
  return { skippedWaits, spared };
}
