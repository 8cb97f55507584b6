/** A recorded workload emulated: natively, then pooled, and what the difference is. */
import type { LinkProfile } from '#pcie/link-profile';
import { dependencyGraph } from '#trace/dependency-graph';
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
import { type TraceWorkload, traceWorkload } from './trace-workload.ts';

export interface EmulateOptions {
  readonly device?: EmulatedDevice;
  readonly seed?: number;
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

const COPY_BYTES = 32 * 2 ** 20;
const DEVICE_BYTES = 64 * 2 ** 20;

/** A timeline ready to be emulated on one profile after another. */
export class Emulator {
  readonly #timeline: Timeline;
  readonly #graph;
  readonly #natives = new Map<string, WorkloadRun>();

  constructor(timeline: Timeline) {
    this.#timeline = timeline;
    this.#graph = dependencyGraph(timeline, wholeLanes(timeline));
  }

  /**
   * Errors: `failed_precondition` for a trace that cannot be emulated, `invalid_argument` for a profile
   * the device model cannot be.
   */
  run(profile: LinkProfile, options: EmulateOptions = {}): Emulation {
    const system: SystemOptions = {
      ...options,
      profile,
      hostBytes: COPY_BYTES,
      deviceBytes: DEVICE_BYTES,
    };
    // Natively nothing depends on the network.
    const key = JSON.stringify({ ...profile, name: '', addedRttNs: 0, networkGbps: 0, options });
    const native = this.#natives.get(key) ?? this.#runOn(nativeSystem(system), profile).run;
    this.#natives.set(key, native);
    const { run: pooled, workload } = this.#runOn(pooledSystem(system), profile);
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
    system: EmulatedSystem,
    profile: LinkProfile,
  ): { run: WorkloadRun; workload: TraceWorkload } {
    const { address } = system.soft.memory.alloc(COPY_BYTES, 4096);
    const workload = traceWorkload(this.#graph, profile, new CopySpace(address, COPY_BYTES));
    return { run: runWorkload(system, workload, { profile }), workload };
  }
}
