/**
 * A workload from a trace: what the trace's threads issued, when they issued it, and what the GPU was
 * busy with, by the dependency graph of the trace.
 *
 * The record is of a native run, and so has the native costs of the command path in it. They are taken
 * out, so that they are paid once, by the emulated path:
 * - A launch has a recorded latency, from the start of its call to the start of its work on an idle
 *   stream. The doorbell is rung that much later than the call begins, less what doorbell and fetch take
 *   natively. Where the record shows less than these take, it is rung at once.
 * - A wait's own part has the native arrival of its fence in it (`HostProgram` takes it out).
 * - A recorded HtoD copy has one native round trip in it (`QueueBuilder.htod`).
 * What work was later than all that explains it is a pause before it, in the device.
 */
import { appendTo } from '#base/append-to';
import { DxpuError } from '#base/errors';
import { MAX_CHANNELS } from '#devices/accel-registers';
import { readGbytesPerS, writeGbytesPerS } from '#pcie/bandwidth';
import type { LinkProfile } from '#pcie/link-profile';
import { launchNs, type DependencyGraph } from '#trace/dependency-graph';
import { EDGE } from '#trace/edge-list';
import type { Lanes } from '#trace/lanes';
import { WORK_KIND } from '#trace/timeline';
import { nativeReadNs } from './device-link.ts';
import { type Bulk, type CopySpace, QueueBuilder } from './queue-builder.ts';
import { marksOf, type Dependency, type Marks } from './trace-marks.ts';
import type { Batch, Workload, WorkloadCall } from './workload.ts';

export interface TraceWorkload extends Workload {
  /** Launches whose recorded latency is less than doorbell and fetch take natively. */
  readonly quickLaunches: number;
  /** Copies that were recorded shorter than they take natively on the emulated link. */
  readonly quickCopies: number;
  /** Bytes of copies that advance in bulk. */
  readonly skippedHtod: number;
  readonly skippedDtoh: number;
}

/** Which commands of its queue a piece of recorded work became. */
export interface PlacedWork {
  /** Row of the timeline. */
  readonly row: number;
  readonly queue: number;
  /** Numbers of commands, from 1. */
  readonly first: number;
  readonly last: number;
  /** The pause that the first of them begins with. */
  readonly lagNs: number;
}

/** Of a trace that `checkEmulated` has found nothing against. `placed` is told of every row, if there. */
export function traceWorkload(
  graph: DependencyGraph,
  profile: LinkProfile,
  space: CopySpace,
  bulk?: Bulk,
  placed?: (work: PlacedWork) => void,
): TraceWorkload {
  return new TraceWorkloadBuilder(graph, profile, space, bulk, placed).build();
}

/** Streams that have work. Each gets a queue, and so a channel and an event, of its own. */
export function usedStreams(lanes: Lanes): number[] {
  return [...lanes.workFrom.keys()].filter(
    (lane) => (lanes.workTo[lane] ?? 0) > (lanes.workFrom[lane] ?? 0),
  );
}

/** `failed_precondition` for a trace that cannot be emulated, with what to use instead. */
export function checkEmulated({ timeline, lanes }: DependencyGraph): void {
  const { calls, work, streams } = timeline;
  const instead = '; use `dxpu predict`, which does not need it';
  if (calls.count === 0) {
    throw refusal(`the trace has no host calls (CUDA or HIP API), so nothing to issue${instead}`);
  }
  if (timeline.spanNs === 0) {
    throw refusal('the trace lasts no time, so there is nothing to set an overhead against');
  }
  let isLaunched = false;
  for (let row = 0; row < work.count && !isLaunched; row += 1) {
    isLaunched = (work.call[row] ?? -1) >= 0;
  }
  if (!isLaunched) {
    throw refusal(
      'no GPU work of the trace is joined to the call that launched it ' +
        `(no correlation ids in common)${instead}`,
    );
  }
  const used = usedStreams(lanes);
  const devices = new Set(used.map((stream) => streams[stream]?.device));
  if (devices.size > 1) {
    throw refusal(
      `the trace has work of ${devices.size} GPUs; one is emulated at a time: trace one process ` +
        'and GPU, or use `dxpu predict`',
    );
  }
  if (used.length > MAX_CHANNELS) {
    throw refusal(
      `the trace has ${used.length} streams; the reference accelerator has ${MAX_CHANNELS} ` +
        'channels: use `dxpu predict`',
    );
  }
}

function refusal(message: string): DxpuError {
  return new DxpuError('failed_precondition', message);
}

class TraceWorkloadBuilder {
  readonly #graph: DependencyGraph;
  readonly #profile: LinkProfile;
  readonly #space: CopySpace;
  readonly #marks: Marks;
  /** By lane of work: its queue, and so its event. */
  readonly #queueOf: ReadonlyMap<number, number>;
  #quickLaunches = 0;
  #quickCopies = 0;
  /** Native rates of long copies, as of arithmetic: only for the count of those recorded faster. */
  readonly #htodBytesPerNs: number;
  readonly #dtohBytesPerNs: number;
  readonly #bulk: Bulk | undefined;
  readonly #placed: ((work: PlacedWork) => void) | undefined;
  #skippedHtod = 0;
  #skippedDtoh = 0;

  constructor(
    graph: DependencyGraph,
    profile: LinkProfile,
    space: CopySpace,
    bulk: Bulk | undefined,
    placed: ((work: PlacedWork) => void) | undefined,
  ) {
    this.#graph = graph;
    this.#profile = profile;
    this.#space = space;
    this.#bulk = bulk;
    this.#placed = placed;
    this.#htodBytesPerNs = Math.min(
      readGbytesPerS(profile, profile.mrrsBytes),
      (profile.tags * profile.mrrsBytes) / profile.nativeRttNs,
    );
    this.#dtohBytesPerNs = writeGbytesPerS(profile, profile.mpsBytes);
    this.#marks = marksOf(graph);
    this.#queueOf = new Map(usedStreams(graph.lanes).map((lane, queue) => [lane, queue]));
  }

  build(): TraceWorkload {
    const queues = [...this.#queueOf].map(([lane, queue]) => this.#queue(lane, queue));
    const { lanes } = this.#graph;
    const threads: number[][] = [];
    for (let thread = 0; thread < lanes.callFrom.length; thread += 1) {
      const from = lanes.callFrom[thread] ?? 0;
      const count = (lanes.callTo[thread] ?? 0) - from;
      threads.push(Array.from({ length: count }, (_, index) => from + index));
    }
    return {
      queues,
      threads,
      calls: this.#calls(),
      quickLaunches: this.#quickLaunches,
      quickCopies: this.#quickCopies,
      skippedHtod: this.#skippedHtod,
      skippedDtoh: this.#skippedDtoh,
    };
  }

  #queue(lane: number, queue: number): Batch[] {
    const { lanes, timeline } = this.#graph;
    const { work, calls } = timeline;
    const builder = new QueueBuilder(queue, this.#profile, this.#space, this.#bulk);
    const batches: Batch[] = [];
    const to = lanes.workTo[lane] ?? 0;
    let row = lanes.workFrom[lane] ?? 0;
    let endNs = 0;
    while (row < to) {
      const call = this.#launchOf(row);
      let last = row;
      while (last + 1 < to && this.#launchOf(last + 1) === call) last += 1;
      const { delayNs, readyNs } = this.#doorbell(row, last, call);
      const launchedNs = call < 0 ? 0 : (calls.startNs[call] ?? 0) + readyNs;
      for (; row <= last; row += 1) {
        // Where work of a stream overlaps, the first is cut short and the second lasts as long as both.
        const startNs = work.startNs[row] ?? 0;
        const nextNs = row + 1 < to ? (work.startNs[row + 1] ?? 0) : Infinity;
        const ownEndNs = startNs + (work.durationNs[row] ?? 0);
        const untilNs = Math.max(ownEndNs, endNs);
        const before = this.#marks.before.get(row) ?? [];
        for (const { row: source, mark } of before) {
          builder.waitFor(this.#queueOf.get(work.stream[source] ?? 0) ?? 0, mark.event);
        }
        const readyAtNs = Math.max(Math.min(endNs, startNs), launchedNs, this.#latest(before));
        const lagNs = Math.max(0, startNs - readyAtNs);
        const first = builder.made + 1;
        this.#row(builder, row, lagNs, Math.min(untilNs, nextNs) - startNs);
        this.#placed?.({ row, queue, first, last: builder.made, lagNs });
        endNs = untilNs;
      }
      if (row === to) builder.fenceLast();
      batches.push({ call, delayNs, commands: builder.take() });
    }
    this.#skippedHtod += builder.skippedHtod;
    this.#skippedDtoh += builder.skippedDtoh;
    return batches;
  }

  /** The call that launches the row; -1 where the graph has no such edge. */
  #launchOf(row: number): number {
    return launchNs(this.#graph, row) < 0 ? -1 : (this.#graph.timeline.work.call[row] ?? -1);
  }

  /** When the doorbell of a batch is rung, and when its commands are there natively, after the call. */
  #doorbell(first: number, last: number, call: number): { delayNs: number; readyNs: number } {
    if (call < 0) return { delayNs: 0, readyNs: 0 };
    const pathNs = this.#profile.nativeRttNs / 2 + nativeReadNs(this.#profile, 64);
    let latencyNs = Infinity;
    for (let row = first; row <= last; row += 1) {
      latencyNs = Math.min(latencyNs, launchNs(this.#graph, row));
    }
    if (latencyNs < pathNs) this.#quickLaunches += 1;
    const delayNs = Math.max(0, latencyNs - pathNs);
    return { delayNs, readyNs: delayNs + pathNs };
  }

  #row(builder: QueueBuilder, row: number, lagNs: number, lastsNs: number): void {
    const { work } = this.#graph.timeline;
    const marks = (this.#marks.ofRow.get(row) ?? []).toSorted((a, b) => a.atNs - b.atNs);
    const bytes = work.bytes[row] ?? 0;
    if (bytes > 0 && work.kind[row] === WORK_KIND.htod) {
      if (lastsNs < Math.max(nativeReadNs(this.#profile, 64), bytes / this.#htodBytesPerNs)) {
        this.#quickCopies += 1;
      }
      builder.htod(lagNs, lastsNs, bytes, marks);
    } else if (bytes > 0 && work.kind[row] === WORK_KIND.dtoh) {
      if (lastsNs < bytes / this.#dtohBytesPerNs) this.#quickCopies += 1;
      builder.dtoh(lagNs, lastsNs, bytes, marks);
    } else {
      builder.busy(lagNs, lastsNs, marks);
    }
  }

  /** When the last of the dependencies is recorded to have been. */
  #latest(dependencies: readonly Dependency[]): number {
    const { startNs } = this.#graph.timeline.work;
    let latestNs = 0;
    for (const { row, mark } of dependencies) {
      latestNs = Math.max(latestNs, (startNs[row] ?? 0) + mark.atNs);
    }
    return latestNs;
  }

  #calls(): WorkloadCall[] {
    const { timeline, lanes, handOvers } = this.#graph;
    const { calls } = timeline;
    const after = new Map<number, { call: number; gapNs: number }[]>();
    const endOf = (call: number): number =>
      (calls.startNs[call] ?? 0) + (calls.durationNs[call] ?? 0);
    for (let edge = 0; edge < handOvers.count; edge += 1) {
      if (((handOvers.flags[edge] ?? 0) & EDGE.dropped) !== 0) continue;
      const target = handOvers.target[edge] ?? 0;
      const call = handOvers.source[edge] ?? 0;
      appendTo(after, target, { call, gapNs: (calls.startNs[target] ?? 0) - endOf(call) });
    }
    return Array.from({ length: calls.count }, (_, call) => {
      const startNs = calls.startNs[call] ?? 0;
      const isFirst = lanes.callFrom[calls.thread[call] ?? 0] === call;
      const waits = this.#marks.waits.get(call) ?? [];
      const releasedNs = Math.max(startNs, this.#latest(waits));
      return {
        gapNs: startNs - (isFirst ? 0 : endOf(call - 1)),
        ownNs: Math.max(0, endOf(call) - releasedNs),
        fences: waits.map(({ row, mark }) => ({
          queue: this.#queueOf.get(timeline.work.stream[row] ?? 0) ?? 0,
          command: mark.command,
        })),
        after: after.get(call) ?? [],
      };
    });
  }
}
