/**
 * Plays a made-up program against a made-up GPU, call by call: one clock a host thread, one queue a
 * stream. Calls take their own time, work begins when its stream is free and its launch has arrived, and
 * a wait ends a little after what it waits for. The figures are round ones of recent hardware, chosen to
 * be plausible, measured nowhere.
 */
import type { Prng } from '#base/prng';
import { WORK_FLAG, WORK_KIND, type WorkKind } from './timeline.ts';

/** From the end of the launch call to the start of the work on an idle GPU. */
const LAUNCH_LATENCY_NS = 2_400;
/** From the end of the work to the end of the call that waits for it. */
const WAKE_NS = 1_800;
const BETWEEN_KERNELS_NS = 900;
const PINNED_BYTES_PER_NS = 12;
const PAGEABLE_BYTES_PER_NS = 6;
const COPY_SETUP_NS = 1_500;

export interface SyntheticCall {
  readonly thread: number;
  readonly name: string;
  readonly startNs: number;
  readonly durationNs: number;
  readonly correlation: number;
}

export interface SyntheticWork {
  readonly stream: number;
  readonly kind: WorkKind;
  readonly name: string;
  readonly startNs: number;
  readonly durationNs: number;
  readonly correlation: number;
  readonly bytes: number;
  /** `WORK_FLAG` bits. */
  readonly flags: number;
}

/** Takes what happens, roughly in order of time. */
export interface SyntheticSink {
  call(call: SyntheticCall): void;
  work(work: SyntheticWork): void;
  iteration(label: string, startNs: number, endNs: number): void;
  /** An operator of the framework, on the host: around calls, or on its own. */
  operator(thread: number, name: string, startNs: number, durationNs: number): void;
}

export class SyntheticRun {
  readonly #sink: SyntheticSink;
  readonly prng: Prng;
  #thread = 0;
  readonly #nowNs: number[] = [0];
  readonly #freeNs = new Map<number, number>();
  #correlation = 0;

  constructor(sink: SyntheticSink, prng: Prng) {
    this.#sink = sink;
    this.prng = prng;
  }

  /** The clock of the thread that runs. */
  get nowNs(): number {
    return this.#nowNs[this.#thread] ?? 0;
  }

  /** Another thread goes on where this one is. */
  switchTo(thread: number): void {
    const now = this.nowNs;
    this.#thread = thread;
    this.#nowNs[thread] = Math.max(now, this.#nowNs[thread] ?? 0);
  }

  /** The host computes, in steps of the framework. */
  compute(name: string, durationNs: number): void {
    this.#sink.operator(this.#thread, name, this.nowNs, durationNs);
    this.#advance(durationNs);
  }

  /** An operator that launches one kernel. */
  kernel(operator: string, name: string, durationNs: number, stream = 7): void {
    const beginNs = this.nowNs;
    this.#advance(this.prng.between(1_500, 3_000));
    const { correlation, endNs } = this.#call('cudaLaunchKernel', this.prng.between(3_800, 6_500));
    this.#advance(this.prng.between(400, 1_200));
    this.#sink.operator(this.#thread, operator, beginNs, this.nowNs - beginNs);
    this.#queue(stream, endNs, {
      kind: WORK_KIND.kernel,
      name,
      durationNs,
      correlation,
      bytes: 0,
      flags: 0,
    });
  }

  /** One launch of many kernels, which run one after the other. */
  graph(
    kernels: readonly { readonly name: string; readonly durationNs: number }[],
    stream = 7,
  ): void {
    const { correlation, endNs } = this.#call('cudaGraphLaunch', this.prng.between(9_000, 14_000));
    for (const { name, durationNs } of kernels) {
      this.#queue(stream, endNs, {
        kind: WORK_KIND.kernel,
        name,
        durationNs,
        correlation,
        bytes: 0,
        flags: WORK_FLAG.graph,
      });
    }
  }

  /** `cudaMemcpyAsync` with pinned memory goes on at once; all other copies hold the host up. */
  copy(
    direction: 'HtoD' | 'DtoH',
    bytes: number,
    memory: 'Pinned' | 'Pageable',
    call: 'cudaMemcpyAsync' | 'cudaMemcpy' = 'cudaMemcpyAsync',
    stream = 7,
  ): void {
    const rate = memory === 'Pinned' ? PINNED_BYTES_PER_NS : PAGEABLE_BYTES_PER_NS;
    const durationNs = Math.round(COPY_SETUP_NS + bytes / rate);
    const isWaiting = call === 'cudaMemcpy' || (memory === 'Pageable' && direction === 'DtoH');
    const startNs = this.nowNs;
    const ownNs = this.prng.between(4_000, 7_000);
    const correlation = (this.#correlation += 1);
    const work = this.#place(stream, startNs + ownNs, {
      kind: direction === 'HtoD' ? WORK_KIND.htod : WORK_KIND.dtoh,
      name:
        direction === 'HtoD'
          ? `Memcpy HtoD (${memory} -> Device)`
          : `Memcpy DtoH (Device -> ${memory})`,
      durationNs,
      correlation,
      bytes,
      flags: memory === 'Pinned' ? WORK_FLAG.pinned : WORK_FLAG.pageable,
    });
    const endNs = isWaiting ? work.startNs + durationNs + WAKE_NS : startNs + ownNs;
    this.#sink.call({
      thread: this.#thread,
      name: call,
      startNs,
      durationNs: endNs - startNs,
      correlation,
    });
    this.#sink.work(work);
    this.#advance(endNs - startNs);
  }

  memset(bytes: number, stream = 7): void {
    const { correlation, endNs } = this.#call('cudaMemsetAsync', this.prng.between(3_000, 5_000));
    this.#queue(stream, endNs, {
      kind: WORK_KIND.memset,
      name: 'Memset (Device)',
      durationNs: Math.round(1_000 + bytes / 600),
      correlation,
      bytes,
      flags: 0,
    });
  }

  /** Waits until all that is queued on the stream is done. */
  synchronize(call: 'cudaStreamSynchronize' | 'cudaDeviceSynchronize', stream = 7): void {
    const free =
      call === 'cudaDeviceSynchronize'
        ? Math.max(0, ...this.#freeNs.values())
        : (this.#freeNs.get(stream) ?? 0);
    const ownNs = this.prng.between(1_800, 3_200);
    this.#call(call, Math.max(ownNs, free + WAKE_NS - this.nowNs));
  }

  iteration(label: string, body: () => void): void {
    const startNs = this.nowNs;
    body();
    this.#sink.iteration(label, startNs, this.nowNs);
  }

  #advance(durationNs: number): void {
    this.#nowNs[this.#thread] = this.nowNs + durationNs;
  }

  #call(
    name: string,
    durationNs: number,
  ): { readonly correlation: number; readonly endNs: number } {
    const correlation = (this.#correlation += 1);
    const startNs = this.nowNs;
    this.#sink.call({ thread: this.#thread, name, startNs, durationNs, correlation });
    this.#advance(durationNs);
    return { correlation, endNs: startNs + durationNs };
  }

  #queue(
    stream: number,
    launchedNs: number,
    work: Omit<SyntheticWork, 'stream' | 'startNs'>,
  ): void {
    this.#sink.work(this.#place(stream, launchedNs, work));
  }

  #place(
    stream: number,
    launchedNs: number,
    work: Omit<SyntheticWork, 'stream' | 'startNs'>,
  ): SyntheticWork {
    const free = this.#freeNs.get(stream) ?? -BETWEEN_KERNELS_NS;
    const startNs = Math.max(free + BETWEEN_KERNELS_NS, launchedNs + LAUNCH_LATENCY_NS);
    this.#freeNs.set(stream, startNs + work.durationNs);
    return { ...work, stream, startNs };
  }
}
