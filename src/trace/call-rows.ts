/** Host calls as they come, and the columns they become. */
import { CALL_KIND, callKind } from './call-kind.ts';
import { float64Column, uint32Column } from './column.ts';
import { CorrelationTable } from './correlation-table.ts';
import { keepOutermost } from './nested-calls.ts';
import type { CallColumns } from './timeline.ts';
import type { WarningCounts } from './warning-counts.ts';

/** A synchronisation record: what the call with this correlation id waited for. */
export interface SyncRecord {
  readonly correlation: number;
  /** The stream synchronised, or held up by a stream wait; -1 if not told. */
  readonly stream: number;
  /** Correlation id of the event-record call; 0 if not told. */
  readonly recordCorrelation: number;
  /** The stream on which the event was recorded; left out or -1 if not told. */
  readonly recordStream?: number;
}

export interface JoinedCalls {
  readonly calls: CallColumns;
  /** The call of a correlation id. */
  readonly callOf: CorrelationTable;
}

export class CallRows {
  readonly start = float64Column();
  readonly duration = float64Column();
  readonly thread = uint32Column();
  readonly #name = uint32Column();
  readonly #correlation = float64Column();

  add(
    thread: number,
    name: number,
    startNs: number,
    durationNs: number,
    correlation: number,
  ): void {
    this.start.push(startNs);
    this.duration.push(durationNs);
    this.thread.push(thread);
    this.#name.push(name);
    this.#correlation.push(correlation);
  }

  /**
   * The outermost of `rows`, which are ordered by (thread, start, longest first), against `originNs`;
   * the rows are empty afterwards.
   */
  take(
    rows: Uint32Array,
    originNs: number,
    names: readonly string[],
    syncs: readonly SyncRecord[],
    warnings: WarningCounts,
  ): JoinedCalls {
    const kindOfName = Uint8Array.from(names, callKind);
    const { order, outermost, overlaps } = keepOutermost(
      rows,
      this.thread,
      this.start,
      this.duration,
    );
    if (overlaps > 0) {
      warnings.count(
        'overlapping-calls',
        'calls that overlap another of their thread were shortened',
        { by: overlaps },
      );
    }
    const kind = new Uint8Array(order.length);
    const callOf = CorrelationTable.forRows(rows, this.#correlation);
    for (let position = 0; position < rows.length; position += 1) {
      const row = rows[position] ?? 0;
      const call = outermost[position] ?? 0;
      const own = kindOfName[this.#name.at(row)] ?? CALL_KIND.other;
      // The outer call's kind counts, unless it says nothing.
      if (kind[call] === CALL_KIND.other) kind[call] = own;
      const correlation = this.#correlation.at(row);
      if (correlation === 0) continue;
      const known = callOf.get(correlation);
      if (known < 0) callOf.set(correlation, call);
      else if (known !== call) {
        warnings.count(
          'duplicate-correlation',
          'correlation ids that several calls share were joined to the first of them',
        );
      }
    }
    const startNs = this.start.take(order, originNs);
    const durationNs = this.duration.take(order);
    const thread = this.thread.take(order);
    shorten(startNs, durationNs, thread);
    const waited = waitedFor(order.length, syncs, callOf);
    const name = this.#name.take(order);
    const calls = {
      count: order.length,
      startNs,
      durationNs,
      thread,
      kind,
      name,
      ...waited,
    };
    return { calls, callOf };
  }
}

/** Streams and event-record calls, as far as synchronisation records tell. */
function waitedFor(
  calls: number,
  syncs: readonly SyncRecord[],
  callOf: CorrelationTable,
): Pick<CallColumns, 'stream' | 'recordCall'> {
  const stream = new Int32Array(calls).fill(-1);
  const recordCall = new Int32Array(calls).fill(-1);
  for (const sync of syncs) {
    const call = callOf.get(sync.correlation);
    if (call < 0) continue;
    stream[call] = sync.stream;
    if (sync.recordCorrelation === 0) continue;
    const record = callOf.get(sync.recordCorrelation);
    if (record < 0) continue;
    recordCall[call] = record;
    if ((sync.recordStream ?? -1) >= 0) stream[record] = sync.recordStream ?? -1;
  }
  return { stream, recordCall };
}

/** Calls of one thread that overlap the next end where it begins. */
function shorten(startNs: Float64Array, durationNs: Float64Array, thread: Uint32Array): void {
  for (let call = 0; call + 1 < startNs.length; call += 1) {
    if (thread[call] !== thread[call + 1]) continue;
    const room = (startNs[call + 1] ?? 0) - (startNs[call] ?? 0);
    if ((durationNs[call] ?? 0) > room) durationNs[call] = room;
  }
}
