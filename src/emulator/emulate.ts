/** A recorded workload emulated: natively, then pooled, and what the difference is. */
import type { LinkProfile } from '#pcie/link-profile';
import { type DependencyGraph, dependencyGraph } from '#trace/dependency-graph';
import { wholeLanes } from '#trace/lanes';
import type { Timeline } from '#trace/timeline';
import {
  type EmulatedDevice,
  type EmulatedSystem,
  nativeSystem,
  pooledSystem,
  type SystemOptions,
} from './emulated-system.ts';
import { CopySpace } from './queue-builder.ts';
import { runWorkload, type WorkloadRun } from './run-workload.ts';
import { steadyBulk } from './steady-copies.ts';
import { checkEmulated, type TraceWorkload, traceWorkload, usedStreams } from './trace-workload.ts';

export interface EmulateOptions {
  readonly device?: EmulatedDevice;
  readonly seed?: number;
  /** Every copy goes TLP by TLP to its end; by default long ones advance in bulk once steady. */
  readonly wholeCopies?: boolean;
  /** Told of each command of the pooled run. */
  readonly onCommand?: SystemOptions['onCommand'];
}

export interface Emulation {
  /** As recorded, first event to last, ns. */
  readonly recordedSpanNs: number;
  readonly native: WorkloadRun;
  readonly pooled: WorkloadRun;
  /** Pooled against native span, percent. */
  readonly overheadPct: number;
  /** Native span against the recorded one, percent. */
  readonly nativeErrorPct: number;
  readonly workload: TraceWorkload;
}

/** Copies of so many windows of tags are long. */
const LONG_WINDOWS = 64;
const COPY_BYTES = 32 * 2 ** 20;
const DEVICE_BYTES = 64 * 2 ** 20;

/** A timeline ready to be emulated on one profile after another. */
export class Emulator {
  readonly #timeline: Timeline;
  readonly #graph: DependencyGraph;
  /** As many as there are streams: each one more costs time, and changes nothing. */
  readonly #channels: number;
  readonly #natives = new Map<string, WorkloadRun>();

  constructor(timeline: Timeline) {
    this.#timeline = timeline;
    const lanes = wholeLanes(timeline);
    this.#graph = dependencyGraph(timeline, lanes);
    this.#channels = usedStreams(lanes).length;
  }

  /**
   * Errors: `failed_precondition` for a trace that cannot be emulated, `invalid_argument` for a profile
   * the device model cannot be.
   */
  run(profile: LinkProfile, options: EmulateOptions = {}): Emulation {
    const { seed = 1, onCommand } = options;
    const system: SystemOptions = {
      seed,
      profile,
      hostBytes: COPY_BYTES,
      device: { channels: this.#channels, ...options.device },
      deviceBytes: DEVICE_BYTES,
    };
    checkEmulated(this.#graph);
    // Natively nothing depends on the network.
    const key = JSON.stringify({ ...profile, name: '', addedRttNs: 0, networkGbps: 0, options });
    const native = this.#natives.get(key) ?? this.#runOn(nativeSystem, system, options).run;
    this.#natives.set(key, native);
    const { run: pooled, workload } = this.#runOn(pooledSystem, system, options, onCommand);
    const { spanNs: recordedSpanNs } = this.#timeline;
    return {
      recordedSpanNs,
      native,
      pooled,
      workload,
      overheadPct: (100 * (pooled.spanNs - native.spanNs)) / native.spanNs,
      nativeErrorPct: (100 * (native.spanNs - recordedSpanNs)) / recordedSpanNs,
    };
  }

  #runOn(
    make: (options: SystemOptions) => EmulatedSystem,
    options: SystemOptions,
    { wholeCopies = false }: EmulateOptions,
    onCommand?: SystemOptions['onCommand'],
  ): { run: WorkloadRun; workload: TraceWorkload } {
    const { profile } = options;
    const isInBulk = !wholeCopies && this.#hasLongCopies(profile);
    const bulk = isInBulk
      ? steadyBulk(profile, (bytes) => make({ ...options, hostBytes: bytes, deviceBytes: bytes }))
      : undefined;
    const system = make(onCommand === undefined ? options : { ...options, onCommand });
    const space = new CopySpace(system.soft.memory, COPY_BYTES);
    const workload = traceWorkload(this.#graph, profile, space, bulk);
    return { run: runWorkload(system, workload, { profile }), workload };
  }

  /** Whether any copy is long enough to be worth the measuring. */
  #hasLongCopies({ tags, mrrsBytes }: LinkProfile): boolean {
    const { bytes } = this.#timeline.work;
    return bytes.some((copied) => copied > LONG_WINDOWS * tags * mrrsBytes);
  }
}
