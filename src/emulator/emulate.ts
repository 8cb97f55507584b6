/** A recorded workload emulated: natively, then pooled, and what the difference is. */
import type { Nanos } from '#base/units';
import type { LinkTap } from '#fabric/link-options';
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
  type SystemWatch,
} from './emulated-system.ts';
import { CopySpace } from './queue-builder.ts';
import { runWorkload, type WorkloadRun } from './run-workload.ts';
import { steadyBulk } from './steady-copies.ts';
import {
  checkEmulated,
  type PlacedWork,
  type TraceWorkload,
  traceWorkload,
  usedStreams,
} from './trace-workload.ts';

export interface EmulateOptions {
  readonly device?: EmulatedDevice;
  readonly seed?: number;
  /** Every copy goes TLP by TLP to its end; by default long ones advance in bulk once steady. */
  readonly wholeCopies?: boolean;
  /** Told of what happens in the pooled run. */
  readonly watch?: EmulationWatch;
  /**
   * Told what is done and the share of it that is, 0 to 1, now and then. `expectedPct`: the overhead
   * to expect, for the share of the pooled run.
   */
  readonly progress?: {
    readonly tell: (step: string, share: number) => void;
    readonly expectedPct?: number;
  };
}

export interface EmulationWatch extends SystemWatch {
  /** Told where each piece of recorded work is among the commands. */
  readonly placed?: (work: PlacedWork) => void;
  /** Called when setting up is over: nothing is under way. */
  readonly begun?: (now: Nanos) => void;
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
/** What is under way when a run is over has come after this. */
const DRAIN_NS = 1e9;
/** How often progress is told in an expected span. */
const TELLINGS = 100;

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
    const { seed = 1, watch, progress } = options;
    const system: SystemOptions = {
      seed,
      profile,
      hostBytes: COPY_BYTES,
      device: { channels: this.#channels, ...options.device },
      deviceBytes: DEVICE_BYTES,
    };
    checkEmulated(this.#graph);
    // Natively nothing depends on the network.
    const { device, wholeCopies } = options;
    const alone = { ...profile, name: '', addedRttNs: 0, networkGbps: 0 };
    const key = JSON.stringify({ alone, seed, device, wholeCopies });
    const { spanNs: recordedSpanNs } = this.#timeline;
    const tell = progress?.tell;
    const native =
      this.#natives.get(key) ??
      this.#runOn(nativeSystem, system, options, {}, (ns) =>
        tell?.('emulating natively', ns / recordedSpanNs),
      ).run;
    this.#natives.set(key, native);
    const expectedNs = native.spanNs * (1 + (progress?.expectedPct ?? 0) / 100);
    const { run: pooled, workload } = this.#runOn(pooledSystem, system, options, watch, (ns) =>
      tell?.('emulating', ns / expectedNs),
    );
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
    { wholeCopies = false, progress }: EmulateOptions,
    watch: EmulationWatch = {},
    tell: (sinceNs: number) => void,
  ): { run: WorkloadRun; workload: TraceWorkload } {
    const { profile } = options;
    let tapped = 0;
    const { onTlp } = watch;
    const tap: LinkTap | undefined =
      onTlp &&
      ((...tlp) => {
        tapped += 1;
        onTlp(...tlp);
      });
    const isInBulk = !wholeCopies && this.#hasLongCopies(profile);
    const bulk = isInBulk
      ? steadyBulk(profile, (bytes) => make({ ...options, hostBytes: bytes, deviceBytes: bytes }))
      : undefined;
    const system = make({
      ...options,
      watch: tap === undefined ? watch : { ...watch, onTlp: tap },
    });
    const space = new CopySpace(system.soft.memory, COPY_BYTES);
    const workload = traceWorkload(this.#graph, profile, space, bulk, watch.placed);
    const begun = (now: Nanos): void => {
      tapped = 0;
      watch.begun?.(now);
      if (progress !== undefined) this.#tellEach(system, now, tell);
    };
    const run = runWorkload(system, workload, { profile, begun });
    if (tap === undefined) return { run, workload };
    // The interrupt behind the last fence may be under way: what is counted is tapped, all of it.
    const { up, down } = run.counts;
    const { clock } = system;
    clock.runWhile(() => tapped < up.total + down.total, clock.now() + DRAIN_NS);
    return { run, workload };
  }

  /** A hundred times in the recorded span, and as often beyond as it takes. */
  #tellEach({ clock }: EmulatedSystem, originNs: Nanos, tell: (sinceNs: number) => void): void {
    const eachNs = Math.max(1, this.#timeline.spanNs / TELLINGS);
    const again = (now: Nanos): void => {
      tell(now - originNs);
      clock.at((now + eachNs) as Nanos, again);
    };
    again(originNs);
  }

  /** Whether any copy is long enough to be worth the measuring. */
  #hasLongCopies({ tags, mrrsBytes }: LinkProfile): boolean {
    const { bytes } = this.#timeline.work;
    return bytes.some((copied) => copied > LONG_WINDOWS * tags * mrrsBytes);
  }
}
