import { type RecordLists, recordLists } from './record-tables.ts';
import type { LogRecord } from './records.ts';

/**
 * What one turn of the manager changes, committed in one transaction or not at all. Its records replace
 * those of the same key, the last one wins; the order between keys has no meaning. Generations and ids
 * are given out by the core: the batch says how far they got.
 */
export interface Batch extends RecordLists {
  readonly removedBindings: readonly string[];
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
export interface Snapshot extends RecordLists {
  readonly counters: Counters;
}

/** Changes nothing of a store that was never written. */
export const EMPTY_BATCH: Batch = {
  ...recordLists(() => []),
  removedBindings: [],
  forgetRequestsBeforeMs: undefined,
  log: [],
  counters: { generation: 0, binding: 0, position: 0 },
};
