/**
 * What the observers of a fault world report to: the first violation, the trace, and when something
 * was last wrong on purpose, so that deadlines count from when nothing is any more.
 */
import type { Nanos } from '#base/units';
import type { VirtualClock } from '#base/virtual-clock';
import { TraceHash } from './trace-hash.ts';

/** By their numbers in the list of invariants of the design. */
export const Invariant = {
  FENCED: '2 fenced',
  CONTAINED: '3 contained',
  EXACT: '6b exactly once and in order',
  LOUD: '6c a session never ends in silence',
  PROGRESS: '7 progress and order',
  REPEATABLE: '8 same seed, same trace',
  /** An assertion failed, or something was thrown that nobody handles. */
  BUG: 'no bug shows',
} as const;
export type Invariant = (typeof Invariant)[keyof typeof Invariant];

export interface Violation {
  readonly invariant: Invariant;
  readonly atNs: number;
  readonly message: string;
}

/** How often things happened; for the report, and to show that a campaign reaches what it is about. */
export class WorldCounts {
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
}

export class Oracle {
  readonly trace = new TraceHash();
  readonly counts = new WorldCounts();
  violation: Violation | undefined;
  /** Told of every event, to follow a world that fails. */
  onEvent: ((nowNs: number, text: string) => void) | undefined;
  /** Since when nothing has been wrong with network and processes, as far as this world did it. */
  #calmSinceNs = 0;
  #trouble = 0;
  /** The same without receivers that are full: those must not hold up what may pass. */
  #networkCalmSinceNs = 0;
  #networkTrouble = 0;
  readonly #clock: VirtualClock;

  constructor(clock: VirtualClock) {
    this.#clock = clock;
  }

  get nowNs(): Nanos {
    return this.#clock.now();
  }

  /** Something worth a line happened. */
  event(text: string): void {
    this.trace.number(this.nowNs);
    this.trace.text(text);
    this.onEvent?.(this.nowNs, text);
  }

  /** Keeps the first violation. */
  fail(invariant: Invariant, message: string): void {
    this.violation ??= { invariant, atNs: this.nowNs, message };
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
