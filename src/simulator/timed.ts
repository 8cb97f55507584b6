/**
 * Jobs in time: they arrive, wait, run and leave, while parts fail and are repaired. Events of one
 * moment are taken together; then what waits is looked at.
 */
import { DxpuError } from '#base/errors';
import { EventQueue } from '#base/event-queue';
import type { Prng } from '#base/prng';
import { askedMilli } from './demand.ts';
import type { Design, Placement, Unit } from './design.ts';
import { type FailureRates, FailureStream, NO_FAILURES } from './failures.ts';
import type { Job } from './job-list.ts';
import { JobQueue } from './job-queue.ts';
import { placeAll, releaseAll } from './running.ts';
import { TimedBook, type TimedResult } from './timed-book.ts';

export interface TimedOptions {
  /** By how much a job of a class takes longer, in percent. */
  readonly overheadPct: (workClass: string) => number;
  /** Jobs behind the first that may be started before it; 0 for none. */
  readonly backfillDepth: number;
  readonly failures: FailureRates;
  /** A job that is stopped goes on from a whole multiple of this much of its work; Infinity: from 0. */
  readonly checkpointMs: number;
  /** What it costs a job to go on with spare GPUs. */
  readonly rebindMs: number;
}

export const DEFAULT_TIMED: TimedOptions = {
  overheadPct: () => 0,
  backfillDepth: 100,
  failures: NO_FAILURES,
  checkpointMs: 1_800_000,
  rebindMs: 60_000,
};

/** So many failures in a row that leave jobs where they were, and none is taken to ever end. */
const MOST_IN_VAIN = 100_000;

type Event =
  | { readonly kind: 'submit'; readonly job: Job }
  | { readonly kind: 'end'; readonly run: Run }
  | { readonly kind: 'repair'; readonly unit: Unit }
  | { readonly kind: 'failure' };

/** A job on hardware. The end event of one that was stopped before is void. */
interface Run {
  readonly job: Job;
  readonly placements: readonly Placement[];
  readonly startMs: number;
  /** After the start, until work goes on. */
  readonly setupMs: number;
  /** Work left at the start. */
  readonly remainingMs: number;
  readonly endMs: number;
}

/**
 * One run of all `jobs`, in order of submission, until the last has ended. Throws `invalid_argument`
 * where failures let none end.
 */
export function runTimed(
  design: Design,
  jobs: readonly Job[],
  options: TimedOptions,
  prng: Prng,
): TimedResult {
  return new Timed(design, jobs, options, prng).run();
}

class Timed {
  readonly #design: Design;
  readonly #options: TimedOptions;
  readonly #events = new EventQueue<Event>();
  readonly #queue: JobQueue;
  readonly #running = new Set<Run>();
  readonly #stream: FailureStream;
  readonly #book: TimedBook;
  /** Submitted or yet to be, and not ended. */
  #open = 0;
  #nowMs = 0;
  /**
   * Since a job ended, or kept work when it was stopped: those stopped with none kept, and failures while
   * all that is there waits.
   */
  #inVain = 0;

  constructor(design: Design, jobs: readonly Job[], options: TimedOptions, prng: Prng) {
    this.#design = design;
    this.#options = options;
    this.#queue = new JobQueue(design, options.backfillDepth);
    this.#stream = new FailureStream(design.units, options.failures, prng);
    const possible = jobs.filter((job) => this.#couldRun(job));
    this.#book = new TimedBook(design.capacityMilli, possible, jobs.length - possible.length);
    this.#open = possible.length;
    for (const job of possible) this.#events.push(job.submitMs, { kind: 'submit', job });
    const first = this.#stream.next(this.#book.firstMs);
    if (first < Infinity) this.#events.push(first, { kind: 'failure' });
  }

  run(): TimedResult {
    while (this.#open > 0) {
      this.#nowMs = this.#events.nextTimeNs;
      this.#book.advance(this.#nowMs, this.#queue.length);
      let changed = false;
      while (this.#events.nextTimeNs === this.#nowMs) {
        const event = this.#events.pop();
        if (event !== undefined) changed = this.#take(event) || changed;
      }
      if (changed) this.#start();
    }
    return this.#book.result(this.#nowMs);
  }

  /** Whether what waits may now find a place. */
  #take(event: Event): boolean {
    switch (event.kind) {
      case 'submit': {
        const { job } = event;
        const remainingMs = job.durationMs * (1 + this.#options.overheadPct(job.workClass) / 100);
        this.#queue.push({ job, remainingMs });
        return true;
      }
      case 'end':
        return this.#end(event.run);
      case 'failure': {
        this.#fail(this.#stream.unit());
        this.#events.push(this.#stream.next(this.#nowMs), event);
        return true;
      }
      case 'repair':
        this.#design.setFailed(event.unit, false);
        this.#queue.breakPromise();
        return true;
    }
  }

  #start(): void {
    for (const { waiting, placements } of this.#queue.start(this.#nowMs, () => this.#running)) {
      this.#book.started(waiting.job, this.#nowMs);
      this.#go(waiting.job, placements, waiting.remainingMs, 0);
    }
  }

  #go(job: Job, placements: readonly Placement[], remainingMs: number, setupMs: number): void {
    const startMs = this.#nowMs;
    const endMs = startMs + setupMs + remainingMs;
    const run = { job, placements, startMs, setupMs, remainingMs, endMs };
    this.#running.add(run);
    this.#book.use(job.tasks * askedMilli(job.demand));
    this.#events.push(endMs, { kind: 'end', run });
  }

  #leave(run: Run): void {
    this.#running.delete(run);
    this.#book.use(-run.job.tasks * askedMilli(run.job.demand));
  }

  #end(run: Run): boolean {
    if (!this.#running.has(run)) return false;
    this.#leave(run);
    releaseAll(this.#design, run.placements);
    this.#open -= 1;
    this.#inVain = 0;
    this.#book.ended(run.job, this.#nowMs);
    return true;
  }

  #fail(unit: Unit): void {
    this.#design.setFailed(unit, true);
    this.#events.push(this.#nowMs + this.#stream.repairMs(), { kind: 'repair', unit });
    this.#queue.breakPromise();
    this.#book.failed();
    if (this.#running.size === 0 && this.#queue.length > 0) this.#countInVain();
    const hit = [...this.#running].filter(({ placements }) =>
      placements.some((placement) => this.#design.hits(unit, placement)),
    );
    // Backwards, so that of those that wait again the first to start is first again.
    for (const run of hit.toReversed()) this.#stop(run, unit);
  }

  #stop(run: Run, unit: Unit): void {
    const { job, startMs, setupMs } = run;
    const { checkpointMs, rebindMs } = this.#options;
    this.#leave(run);
    const doneMs = Math.max(0, this.#nowMs - startMs - setupMs);
    const keptMs = checkpointMs === Infinity ? 0 : doneMs - (doneMs % checkpointMs);
    if (keptMs > 0) this.#inVain = 0;
    else this.#countInVain();
    this.#book.lost((doneMs - keptMs) * job.tasks * askedMilli(job.demand));
    const remainingMs = run.remainingMs - keptMs;
    let whole = true;
    const placements = run.placements.map((placement) => {
      if (!this.#design.hits(unit, placement)) return placement;
      const moved = this.#design.rebind(placement);
      whole &&= moved !== undefined;
      return moved ?? placement;
    });
    if (whole) {
      this.#book.rebound();
      this.#go(job, placements, remainingMs, rebindMs);
    } else {
      releaseAll(this.#design, placements);
      this.#book.restarted();
      this.#queue.unshift({ job, remainingMs });
    }
  }

  #countInVain(): void {
    this.#inVain += 1;
    if (this.#inVain < MOST_IN_VAIN) return;
    throw new DxpuError(
      'invalid_argument',
      `${MOST_IN_VAIN} times in a row a failure left jobs where they were: they would hardly ever ` +
        'end. Let less fail, or be repaired sooner, or checkpoints be closer together',
    );
  }

  #couldRun(job: Job): boolean {
    const placements = placeAll(this.#design, job);
    if (placements !== undefined) releaseAll(this.#design, placements);
    return placements !== undefined;
  }
}
