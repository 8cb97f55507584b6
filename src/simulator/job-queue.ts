/**
 * Jobs that wait, first come first served, with backfill (EASY): the first one that finds no place is
 * promised the earliest time at which enough running jobs will have ended, and the place it would then
 * get. Later ones may start meanwhile if they end by then, or touch no host and no GPU of that place.
 * So no job waits for ever, and no backfilled job delays the first. A failure ends the promise, and a
 * new one is made.
 */
import type { Demand } from './demand.ts';
import type { Design, Placement } from './design.ts';
import type { Job } from './job-list.ts';
import { placeAll, releaseAll, retakeAll, touch } from './running.ts';

/** A job on hardware: until `endMs`, unless it fails. */
export interface Running {
  readonly placements: readonly Placement[];
  readonly endMs: number;
}

export interface Waiting {
  readonly job: Job;
  /** What is left of it, overhead included. */
  readonly remainingMs: number;
}

interface Reservation {
  readonly waiting: Waiting;
  readonly atMs: number;
  readonly place: readonly Placement[];
}

export class JobQueue {
  readonly #design: Design;
  readonly #depth: number;
  #waiting: Waiting[] = [];
  #promise: Reservation | undefined;

  /** `depth`: so many jobs behind the first are looked at; 0 is strictly first come first served. */
  constructor(design: Design, depth: number) {
    this.#design = design;
    this.#depth = depth;
  }

  get length(): number {
    return this.#waiting.length;
  }

  push(waiting: Waiting): void {
    this.#waiting.push(waiting);
  }

  /** Ahead of all others: a job that a failure has stopped. */
  unshift(waiting: Waiting): void {
    this.#waiting.unshift(waiting);
    this.#promise = undefined;
  }

  /** To be told when hardware fails or comes back. */
  breakPromise(): void {
    this.#promise = undefined;
  }

  /**
   * Starts what may start now, and returns it with its places. `running` is every job on hardware;
   * those started here are added by the caller.
   */
  start(
    nowMs: number,
    running: () => Iterable<Running>,
  ): { waiting: Waiting; placements: Placement[] }[] {
    const started: { waiting: Waiting; placements: Placement[] }[] = [];
    while (this.#waiting.length > 0) {
      const [first] = this.#waiting as [Waiting];
      const placements = placeAll(this.#design, first.job);
      if (placements === undefined) break;
      this.#waiting.shift();
      this.#promise = undefined;
      started.push({ waiting: first, placements });
    }
    if (this.#waiting.length > 1 && this.#depth > 0) {
      const now = started.map(({ waiting, placements }) => ({
        placements,
        endMs: nowMs + waiting.remainingMs,
      }));
      this.#backfill(nowMs, () => [...running(), ...now], started);
    }
    return started;
  }

  #backfill(
    nowMs: number,
    running: () => Iterable<Running>,
    started: { waiting: Waiting; placements: Placement[] }[],
  ): void {
    const promise = this.#promiseFor(nowMs, this.#waiting[0] as Waiting, running);
    const refused = new Map<Demand, number>();
    const last = Math.min(this.#waiting.length - 1, this.#depth);
    const rest: Waiting[] = [];
    for (let i = 1; i <= last; i++) {
      const waiting = this.#waiting[i] as Waiting;
      const placements = this.#besidePromise(nowMs, waiting, promise, refused);
      if (placements === undefined) rest.push(waiting);
      else started.push({ waiting, placements });
    }
    if (rest.length < last) this.#waiting.splice(1, last, ...rest);
  }

  #besidePromise(
    nowMs: number,
    { job, remainingMs }: Waiting,
    promise: Reservation | undefined,
    refused: Map<Demand, number>,
  ): Placement[] | undefined {
    // Nothing is given back meanwhile: what found no place once finds none, nor does more of it.
    if (job.tasks >= (refused.get(job.demand) ?? Infinity)) return undefined;
    const placements = placeAll(this.#design, job);
    if (placements === undefined) {
      refused.set(job.demand, job.tasks);
      return undefined;
    }
    if (
      promise === undefined ||
      nowMs + remainingMs <= promise.atMs ||
      !touch(placements, promise.place)
    ) {
      return placements;
    }
    releaseAll(this.#design, placements);
    return undefined;
  }

  /** `undefined` where not even the end of all running jobs would do: until something is repaired. */
  #promiseFor(
    nowMs: number,
    waiting: Waiting,
    running: () => Iterable<Running>,
  ): Reservation | undefined {
    // Tasks put elsewhere than promised may block each other: then the time has passed, and counts anew.
    if (this.#promise?.waiting === waiting && this.#promise.atMs > nowMs) return this.#promise;
    const ending = [...running()].sort((a, b) => a.endMs - b.endMs);
    const released: Running[] = [];
    this.#promise = undefined;
    for (const job of ending) {
      releaseAll(this.#design, job.placements);
      released.push(job);
      const place = placeAll(this.#design, waiting.job);
      if (place === undefined) continue;
      releaseAll(this.#design, place);
      this.#promise = { waiting, atMs: job.endMs, place };
      break;
    }
    for (const job of released.toReversed()) retakeAll(this.#design, job.placements);
    return this.#promise;
  }
}
