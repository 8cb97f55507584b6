/** What the core of the pool is made with. */
import type { Snapshot } from './batch.ts';
import type { PoolSink } from './pool-sink.ts';

export interface PoolCoreOptions {
  /** Where effects go, none of them before `committed`. */
  readonly sink: PoolSink;
  /** As `Store.load` gives it. */
  readonly snapshot: Snapshot;
  /** Wall clock for records, in ms since 1970. It may jump: nothing is timed by it. */
  readonly wallMs: () => number;
  readonly timeouts?: Partial<PoolTimeouts>;
  /**
   * Called for each step that a turn decides, before its batch is taken: `name` is that of a row of
   * `TRANSITIONS`, or `free>reserved`. For crash points and for counting which rows a test has reached.
   */
  readonly onTransition?: (name: string, binding: string) => void;
  readonly faults?: PoolFaults;
}

/**
 * How long a binding may stay in a step before it fails, and when a failed one is tried again. In ms,
 * by the monotonic clock alone; all begin anew with the core.
 */
export interface PoolTimeouts {
  readonly reservedMs: number;
  readonly programmingMs: number;
  readonly attachingMs: number;
  readonly drainingMs: number;
  readonly detachingMs: number;
  readonly scrubbingMs: number;
  /** Between a first failure and the next attempt; doubles with each failure up to `lastRetryMs`. */
  readonly firstRetryMs: number;
  readonly lastRetryMs: number;
  /** How long an acknowledged request is remembered; the one time that is of the wall clock. */
  readonly keepRequestsMs: number;
}

export const DEFAULT_TIMEOUTS: PoolTimeouts = {
  reservedMs: 30_000,
  programmingMs: 10_000,
  attachingMs: 60_000,
  drainingMs: 30_000,
  detachingMs: 10_000,
  scrubbingMs: 120_000,
  firstRetryMs: 1_000,
  lastRetryMs: 60_000,
  keepRequestsMs: 7 * 24 * 3_600_000,
};

/** Test only: each leaves one check out. Never set outside tests. */
export interface PoolFaults {
  /** A slot is given to the next binding before its box has confirmed that the last one is gone. */
  readonly noConfirmation?: boolean;
  /** A report of a row for another host makes that host the owner. */
  readonly actsOnReports?: boolean;
  /** A slot is free as soon as its row is gone, scrubbed or not. */
  readonly skipsScrub?: boolean;
  /** A binding that is tried again keeps its generation. */
  readonly reusesGeneration?: boolean;
  /** Answers and orders go out at once, not when their batch is durable. */
  readonly answersBeforeCommit?: boolean;
  /** A repeated request acts again. */
  readonly forgetsRequests?: boolean;
  /** A binding counts as attached as soon as the host reports a function, wherever its BARs are. */
  readonly attachedEarly?: boolean;
}
