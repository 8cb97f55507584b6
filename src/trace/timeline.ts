/**
 * The compact form every trace format is read into: host calls and GPU work as columns of typed
 * arrays, joined to each other. Made by `TimelineBuilder`; read by the model and the emulator; never
 * changed afterwards.
 *
 * Times are nanoseconds since the earliest event kept, which is at 0; they are exact where the trace
 * had whole nanoseconds. Rows of calls are ordered by (thread, start), rows of work by
 * (stream, start); ties keep the order of the file. An index that points nowhere is -1.
 */
import type { CallKind } from './call-kind.ts';
import { CALL_KIND, waitsByName } from './call-kind.ts';

export const TRACE_FORMATS = ['kineto', 'nsys', 'nvprof', 'tensorflow', 'synthetic'] as const;
export type TraceFormat = (typeof TRACE_FORMATS)[number];

export const WORK_KIND = {
  kernel: 0,
  htod: 1,
  dtoh: 2,
  /** Within one device. */
  dtod: 3,
  /** Host to host. */
  htoh: 4,
  /** Between two devices. */
  ptop: 5,
  memset: 6,
  /** A copy whose kind the trace does not tell. */
  copy: 7,
  /** A whole graph, where the trace has one record for a graph launch and none for what is in it. */
  graph: 8,
} as const;
export type WorkKind = (typeof WORK_KIND)[keyof typeof WORK_KIND];

/** Bits of `WorkColumns.flags`. */
export const WORK_FLAG = {
  /** The host side of the copy is pageable memory. */
  pageable: 1,
  /** The host side is known to be pinned. */
  pinned: 2,
  /** Part of a graph launch, as the record itself says. */
  graph: 4,
} as const;

/**
 * Host API calls. Only outermost ones: a call inside another on the same thread (a driver call under
 * a runtime call, or the same call exported twice) is the same call.
 */
export interface CallColumns {
  readonly count: number;
  readonly startNs: Float64Array;
  /** At least 0. Calls of one thread do not overlap. */
  readonly durationNs: Float64Array;
  /** Index into `Timeline.threads`. */
  readonly thread: Uint32Array;
  /** `CallKind`. */
  readonly kind: Uint8Array;
  /** Index into `Timeline.names`. */
  readonly name: Uint32Array;
  /**
   * Index into `Timeline.streams`, as a synchronisation record tells: the stream a stream or event
   * synchronise waits for, the stream that a stream wait holds up, or the stream an event is recorded
   * on. -1: the trace does not tell.
   */
  readonly stream: Int32Array;
  /**
   * For an event synchronise, an event query or a stream wait whose record tells: the event-record call it
   * refers to, an index into the calls; -1 otherwise.
   */
  readonly recordCall: Int32Array;
}

/** GPU work: kernels, copies, memsets. */
export interface WorkColumns {
  readonly count: number;
  readonly startNs: Float64Array;
  /** At least 0. Work of one stream may overlap: real traces do. */
  readonly durationNs: Float64Array;
  /** Index into `Timeline.streams`. */
  readonly stream: Uint32Array;
  /** `WorkKind`. */
  readonly kind: Uint8Array;
  /** `WORK_FLAG` bits. */
  readonly flags: Uint8Array;
  /** Of a copy or memset; 0 where the trace does not tell. */
  readonly bytes: Float64Array;
  /** Index into `Timeline.names`. */
  readonly name: Uint32Array;
  /** The call that launched it, an index into the calls; -1: not in the trace. */
  readonly call: Int32Array;
  /**
   * Number of the submission it belongs to, 0 to `Timeline.submissions` - 1. A submission is the GPU
   * work of one launch call: all of a graph launch, or one kernel, copy or memset. Work whose call is
   * not in the trace is grouped by its correlation id; work without one is a submission each.
   */
  readonly submission: Uint32Array;
}

export interface ThreadInfo {
  readonly pid: string;
  readonly tid: string;
  readonly name?: string;
}

export interface StreamInfo {
  /** The trace's own number of the GPU; 0 where it tells none. */
  readonly device: number;
  /** The trace's own name of the stream. */
  readonly stream: string;
}

/** An iteration the trace marks, such as `ProfilerStep#12`: half-open, by the host's clock. */
export interface Iteration {
  readonly label: string;
  readonly startNs: number;
  readonly endNs: number;
}

/** Something about the trace a reader of the answer has to know. */
export interface TraceWarning {
  /** Stable, for machines: `truncated`, `dropped-negative-duration`, … */
  readonly code: string;
  /** How many events or places it is about, at least 1. */
  readonly count: number;
  /** For people, with the count in it and the first place where that helps. */
  readonly message: string;
}

export interface Timeline {
  readonly format: TraceFormat;
  readonly calls: CallColumns;
  readonly work: WorkColumns;
  /** Submissions there are; see `WorkColumns.submission`. */
  readonly submissions: number;
  readonly threads: readonly ThreadInfo[];
  readonly streams: readonly StreamInfo[];
  /** Names of calls and work, each once. */
  readonly names: readonly string[];
  /** In order of time; none where the trace marks none. */
  readonly iterations: readonly Iteration[];
  /** What the profile says of itself, where it does: GPU names by device number. */
  readonly gpus: ReadonlyMap<number, string>;
  /** Whether stacks or shapes were recorded, which inflates the gaps between calls. */
  readonly recordedStacks: boolean;
  readonly recordedShapes: boolean;
  /** Absolute time of 0, ns since 1970, where the trace tells one that is plausible. */
  readonly originUnixNs: bigint | undefined;
  readonly warnings: readonly TraceWarning[];
  /** First to last event of host calls or GPU work, ns: the end of the last one, as the first is at 0. */
  readonly spanNs: number;
}

/**
 * Calls in which the host waits, one flag a call: a device, context, stream or event synchronise, a
 * blocking copy, and an asynchronous DtoH copy into pageable memory. A query is not a wait.
 */
export function hostWaits(timeline: Timeline): Uint8Array {
  const { calls, work } = timeline;
  const waits = new Uint8Array(calls.count);
  for (let call = 0; call < calls.count; call += 1) {
    if (waitsByName(calls.kind[call] as CallKind)) waits[call] = 1;
  }
  for (let row = 0; row < work.count; row += 1) {
    const call = work.call[row] ?? -1;
    if (call < 0 || calls.kind[call] !== CALL_KIND.copyAsync) continue;
    const isPageable = ((work.flags[row] ?? 0) & WORK_FLAG.pageable) !== 0;
    if (work.kind[row] === WORK_KIND.dtoh && isPageable) waits[call] = 1;
  }
  return waits;
}

export function endOfCall({ calls }: Timeline, call: number): number {
  return (calls.startNs[call] ?? 0) + (calls.durationNs[call] ?? 0);
}

export function endOfWork({ work }: Timeline, row: number): number {
  return (work.startNs[row] ?? 0) + (work.durationNs[row] ?? 0);
}
