/**
 * The invariants of a fault world, what is counted in one, and when something was last wrong on
 * purpose, so that deadlines count from when nothing is any more.
 */
import type { Nanos } from '#base/units';
import type { VirtualClock } from '#base/virtual-clock';
import type { Counts } from '../campaign/campaign.ts';
import { COMMON_INVARIANTS, Oracle } from '../campaign/oracle.ts';

/** By their numbers in the list of invariants of the design. */
export const Invariant = {
  FENCED: '2 fenced',
  CONTAINED: '3 contained',
  EXACT: '6b exactly once and in order',
  LOUD: '6c a session never ends in silence',
  PROGRESS: '7 progress and order',
  ...COMMON_INVARIANTS,
} as const;
export type Invariant = (typeof Invariant)[keyof typeof Invariant];

export class WorldCounts implements Counts<WorldCounts> {
  steps = 0;
  tlps = 0;
  sessions = 0;
  sessionsEnded = 0;
  resumes = 0;
  linkDowns = 0;
  cuts = 0;
  kills = 0;
  attacks = 0;
  forgeries = 0;
  stale = 0;
  bindings = 0;
  moves = 0;
  sgemms = 0;
  interrupts = 0;
  dmaReads = 0;
  posted = 0;
  /** Runs of memory writes that were delivered as such. */
  runs = 0;
  cpuReads = 0;
  stalls = 0;
  /** Bindings set while a session was resuming that then ended. */
  spared = 0;

  add(other: WorldCounts): void {
    for (const name of Object.keys(this) as Exclude<keyof WorldCounts, keyof Counts<never>>[]) {
      this[name] += other[name];
    }
  }

  entries(): [string, number][] {
    return Object.entries(this);
  }
}

export class FaultOracle extends Oracle<Invariant, WorldCounts> {
  /** Since when nothing has been wrong with network and processes, as far as this world did it. */
  #calmSinceNs = 0;
  #trouble = 0;
  /** The same without receivers that are full: those must not hold up what may pass. */
  #networkCalmSinceNs = 0;
  #networkTrouble = 0;

  constructor(clock: VirtualClock) {
    super(clock, new WorldCounts());
  }

  /** A TLP has arrived, whose bytes hash so. */
  arrived(now: Nanos, hash: number, generation: number): void {
    this.counts.tlps++;
    this.trace.number(now);
    this.trace.word(hash);
    this.trace.number(generation);
  }

  /** Something passing was done to the world. */
  disturb(): void {
    this.#calmSinceNs = this.nowNs;
    this.#networkCalmSinceNs = this.nowNs;
  }

  /** Something lasting begins; each call needs one of `endTrouble`. */
  beginTrouble(): void {
    this.#trouble++;
    this.#networkTrouble++;
  }

  endTrouble(): void {
    this.#trouble--;
    this.#networkTrouble--;
    this.disturb();
  }

  /** A receiver is full from now on, until `endStall`. */
  beginStall(): void {
    this.#trouble++;
  }

  endStall(): void {
    this.#trouble--;
    this.#calmSinceNs = this.nowNs;
  }

  /** How long all has been well since `sinceNs`; 0 while something is wrong. */
  calmNs(sinceNs = 0): number {
    if (this.#trouble > 0) return 0;
    return Math.max(0, this.nowNs - Math.max(sinceNs, this.#calmSinceNs));
  }

  /** The same, receivers that are full apart. */
  networkCalmNs(sinceNs: number): number {
    if (this.#networkTrouble > 0) return 0;
    return Math.max(0, this.nowNs - Math.max(sinceNs, this.#networkCalmSinceNs));
  }
}
