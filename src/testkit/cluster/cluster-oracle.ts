/**
 * What the observers of a virtual cluster report to: the first violation, the trace, and what happened
 * how often.
 */
import type { Nanos } from '#base/units';
import type { VirtualClock } from '#base/virtual-clock';
import { TraceHash } from '../faults/trace-hash.ts';

/** By their numbers in the list of invariants of the design. */
export const ClusterInvariant = {
  SINGLE_OWNER: '1 single-owner',
  FENCED: '2 fenced',
  USABLE: '4 attached means usable',
  STORE_OWNS: '5 store owns, proxies observe',
  NOTHING_LOST: '6a nothing lost',
  ALL_OR_NOTHING: 'a request is one decision',
  PROGRESS: 'a goal or a stated failure',
  REPEATABLE: '8 same seed, same trace',
  /** An assertion failed, or something was thrown that nobody handles. */
  BUG: 'no bug shows',
} as const;
export type ClusterInvariant = (typeof ClusterInvariant)[keyof typeof ClusterInvariant];

export interface ClusterViolation {
  readonly invariant: ClusterInvariant;
  readonly atNs: number;
  readonly message: string;
}

/** How often things happened: for the report, and to show that a campaign reaches what it is about. */
export class ClusterCounts {
  readonly #counts = new Map<string, number>();

  up(name: string, by = 1): void {
    this.#counts.set(name, (this.#counts.get(name) ?? 0) + by);
  }

  of(name: string): number {
    return this.#counts.get(name) ?? 0;
  }

  add(other: ClusterCounts): void {
    for (const [name, count] of other.#counts) this.up(name, count);
  }

  /** In the order of their names. */
  entries(): [string, number][] {
    return [...this.#counts].sort(([a], [b]) => (a < b ? -1 : 1));
  }
}

export class ClusterOracle {
  readonly trace = new TraceHash();
  readonly counts = new ClusterCounts();
  violation: ClusterViolation | undefined;
  /** Told of every event, to follow a cluster that fails. */
  onEvent: ((nowNs: number, text: string) => void) | undefined;
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
  fail(invariant: ClusterInvariant, message: string): void {
    this.violation ??= { invariant, atNs: this.nowNs, message };
    this.onEvent?.(this.nowNs, `VIOLATION of ${invariant}: ${message}`);
  }
}
