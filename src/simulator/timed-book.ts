/** What a run of timed jobs comes to. */
import type { Job } from './job-list.ts';

/** Times in milliseconds. */
export interface TimedResult {
  readonly jobs: number;
  /** Jobs that the hardware could not hold even when empty: they are left out. */
  readonly impossible: number;
  /** From submission to the first start: mean, median, 95th percentile, most. */
  readonly waitMeanMs: number;
  readonly waitMedianMs: number;
  readonly wait95Ms: number;
  readonly waitMaxMs: number;
  /** From submission to the end. */
  readonly turnaroundMeanMs: number;
  /** From the first submission to the last end. */
  readonly makespanMs: number;
  /** GPUs allocated, of all, between the first and the last submission. */
  readonly utilisationPct: number;
  readonly overTime: readonly TimedPoint[];
  readonly failures: number;
  /** Jobs that a failure put back into the queue, and jobs that went on with spares. */
  readonly restarts: number;
  readonly rebinds: number;
  /** Work that had to be done again. */
  readonly lostGpuHours: number;
}

/** Means over a span that starts at `atMs` after the first submission. */
export interface TimedPoint {
  readonly atMs: number;
  readonly allocatedPct: number;
  readonly queued: number;
}

const SPANS = 100;
const MOST_SPANS = 400;
const MILLI_MS_PER_GPU_HOUR = 1000 * 3_600_000;

export class TimedBook {
  readonly firstMs: number;
  readonly #lastSubmitMs: number;
  readonly #capacityMilli: number;
  readonly #jobs: number;
  readonly #impossible: number;
  readonly #waits = new Map<Job, number>();
  #turnaroundMs = 0;
  #allocatedMilli = 0;
  #nowMs: number;
  /** Thousandths of GPUs times milliseconds, until the last submission. */
  #used = 0;
  #spanMs: number;
  #usedBySpan: number[] = [];
  #queuedBySpan: number[] = [];
  #failures = 0;
  #restarts = 0;
  #rebinds = 0;
  #lost = 0;

  constructor(capacityMilli: number, jobs: readonly Job[], impossible: number) {
    const submits = jobs.map(({ submitMs }) => submitMs);
    this.firstMs = submits.reduce((least, at) => Math.min(least, at), submits[0] ?? 0);
    this.#lastSubmitMs = submits.reduce((most, at) => Math.max(most, at), this.firstMs);
    this.#capacityMilli = capacityMilli;
    this.#jobs = jobs.length;
    this.#impossible = impossible;
    this.#nowMs = this.firstMs;
    this.#spanMs = Math.max(1, (this.#lastSubmitMs - this.firstMs) / SPANS);
  }

  /** Time goes on to `nowMs` with what is allocated, and so many jobs waiting. */
  advance(nowMs: number, queued: number): void {
    const counted = Math.min(nowMs, this.#lastSubmitMs) - Math.min(this.#nowMs, this.#lastSubmitMs);
    this.#used += counted * this.#allocatedMilli;
    let from = this.#nowMs - this.firstMs;
    const to = nowMs - this.firstMs;
    while (Math.floor(to / this.#spanMs) >= MOST_SPANS) this.#doubleSpans();
    // By number of span: a division may not say that the end of one is the start of the next.
    for (let span = Math.floor(from / this.#spanMs); from < to; span++) {
      const length = Math.max(0, Math.min(to, (span + 1) * this.#spanMs) - from);
      this.#usedBySpan[span] = (this.#usedBySpan[span] ?? 0) + length * this.#allocatedMilli;
      this.#queuedBySpan[span] = (this.#queuedBySpan[span] ?? 0) + length * queued;
      from += length;
    }
    this.#nowMs = nowMs;
  }

  use(milli: number): void {
    this.#allocatedMilli += milli;
  }

  /** Of a job that is restarted the first start counts. */
  started(job: Job, nowMs: number): void {
    if (!this.#waits.has(job)) this.#waits.set(job, nowMs - job.submitMs);
  }

  ended(job: Job, nowMs: number): void {
    this.#turnaroundMs += nowMs - job.submitMs;
  }

  failed(): void {
    this.#failures += 1;
  }

  restarted(): void {
    this.#restarts += 1;
  }

  rebound(): void {
    this.#rebinds += 1;
  }

  /** In thousandths of GPUs times milliseconds. */
  lost(work: number): void {
    this.#lost += work;
  }

  result(endMs: number): TimedResult {
    const waits = [...this.#waits.values()].sort((a, b) => a - b);
    const count = Math.max(1, waits.length);
    const at = (share: number): number => waits[Math.ceil(share * waits.length) - 1] ?? 0;
    const window = (this.#lastSubmitMs - this.firstMs) * this.#capacityMilli;
    return {
      jobs: this.#jobs,
      impossible: this.#impossible,
      waitMeanMs: waits.reduce((sum, wait) => sum + wait, 0) / count,
      waitMedianMs: at(0.5),
      wait95Ms: at(0.95),
      waitMaxMs: at(1),
      turnaroundMeanMs: this.#turnaroundMs / count,
      makespanMs: endMs - this.firstMs,
      utilisationPct: window === 0 ? 0 : (this.#used / window) * 100,
      overTime: this.#usedBySpan.map((used, span) => ({
        atMs: span * this.#spanMs,
        allocatedPct: (used / this.#lengthOf(span) / this.#capacityMilli) * 100,
        queued: (this.#queuedBySpan[span] ?? 0) / this.#lengthOf(span),
      })),
      failures: this.#failures,
      restarts: this.#restarts,
      rebinds: this.#rebinds,
      lostGpuHours: this.#lost / MILLI_MS_PER_GPU_HOUR,
    };
  }

  /** The last span may be cut off by the end. */
  #lengthOf(span: number): number {
    return Math.min(this.#spanMs, this.#nowMs - this.firstMs - span * this.#spanMs);
  }

  #doubleSpans(): void {
    const joined = (spans: readonly number[]): number[] =>
      Array.from(
        { length: Math.ceil(spans.length / 2) },
        (_, i) => (spans[2 * i] ?? 0) + (spans[2 * i + 1] ?? 0),
      );
    this.#usedBySpan = joined(this.#usedBySpan);
    this.#queuedBySpan = joined(this.#queuedBySpan);
    this.#spanMs *= 2;
  }
}
