/** What the observers of a world report to: the first violation, the trace, and what happened how often. */
import type { Nanos } from '#base/units';
import type { VirtualClock } from '#base/virtual-clock';
import { TraceHash } from './trace-hash.ts';

/** Of every kind of world. */
export const COMMON_INVARIANTS = {
  REPEATABLE: '8 same seed, same trace',
  /** An assertion failed, or something was thrown that nobody handles. */
  BUG: 'no bug shows',
} as const;
export type CommonInvariant = (typeof COMMON_INVARIANTS)[keyof typeof COMMON_INVARIANTS];

export interface Violation<I extends string> {
  readonly invariant: I | CommonInvariant;
  readonly atNs: number;
  readonly message: string;
}

/** What came of the world of one seed. */
export interface WorldResult<I extends string, C> {
  readonly seed: number;
  readonly violation: Violation<I> | undefined;
  readonly trace: string;
  readonly counts: C;
  readonly virtualNs: number;
}

/** `I` are the invariants of this kind of world, `C` what it counts. */
export class Oracle<I extends string, C> {
  readonly trace = new TraceHash();
  readonly counts: C;
  violation: Violation<I> | undefined;
  /** Told of every event, to follow a world that fails. */
  onEvent: ((nowNs: number, text: string) => void) | undefined;
  readonly #clock: VirtualClock;

  constructor(clock: VirtualClock, counts: C) {
    this.#clock = clock;
    this.counts = counts;
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
  fail(invariant: I | CommonInvariant, message: string): void {
    this.violation ??= { invariant, atNs: this.nowNs, message };
    this.onEvent?.(this.nowNs, `VIOLATION of ${invariant}: ${message}`);
  }

  /** The world threw. */
  threw(error: unknown): void {
    const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
    this.fail(COMMON_INVARIANTS.BUG, text);
  }

  /** Once the world has come to its end. */
  result(seed: number): WorldResult<I, C> {
    const { nowNs, violation, counts, trace } = this;
    trace.number(nowNs);
    return { seed, violation, trace: trace.digest, counts, virtualNs: nowNs };
  }
}
