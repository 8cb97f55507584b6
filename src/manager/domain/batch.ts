/**
 * What one turn of the manager changes, committed in one transaction or not at all. Records stand for
 * themselves: `put` inserts or replaces by key, `remove` names keys.
 */
import type {
  BindingRecord,
  BoxRecord,
  BoxSlotRecord,
  HostRecord,
  HostSlotRecord,
  LogRecord,
  PathRecord,
  RequestRecord,
} from './records.ts';

/**
 * The last write of a key wins; the order between keys has no meaning. Generations and ids are given
 * out by the core: the batch says how far they got.
 */
export interface Batch {
  readonly bindings: readonly BindingRecord[];
  readonly removedBindings: readonly string[];
  readonly boxes: readonly BoxRecord[];
  readonly boxSlots: readonly BoxSlotRecord[];
  readonly hosts: readonly HostRecord[];
  readonly hostSlots: readonly HostSlotRecord[];
  readonly paths: readonly PathRecord[];
  readonly requests: readonly RequestRecord[];
  /** Requests answered before this are forgotten; `undefined` forgets none. */
  readonly forgetRequestsBeforeMs: number | undefined;
  readonly log: readonly LogRecord[];
  readonly counters: Counters;
}

/** What is counted and never goes back. */
export interface Counters {
  /** The highest generation given out or reported. */
  readonly generation: number;
  /** The number of the newest binding: its id is `b` and this. */
  readonly binding: number;
  /** Position of the newest log entry. */
  readonly position: number;
}

/** Everything but the log, as the last commit left it. */
export interface Snapshot {
  readonly bindings: readonly BindingRecord[];
  readonly boxes: readonly BoxRecord[];
  readonly boxSlots: readonly BoxSlotRecord[];
  readonly hosts: readonly HostRecord[];
  readonly hostSlots: readonly HostSlotRecord[];
  readonly paths: readonly PathRecord[];
  readonly requests: readonly RequestRecord[];
  readonly counters: Counters;
}
