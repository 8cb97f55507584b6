/**
 * Collects what a format's reader finds, in any order, and makes the timeline of it: drops what
 * cannot be true (counted in warnings), merges calls inside calls, joins work to the calls that
 * launched it, and sets time 0 at the earliest event.
 *
 * Times given are ns against an origin of the reader's choice, near the first event, so that they
 * keep whole nanoseconds. At most 64 bytes are held for each call or piece of work.
 */
import { CALL_KIND, callKind } from './call-kind.ts';
import { float64Column, uint32Column, uint8Column } from './column.ts';
import { CopyCalls } from './copy-calls.ts';
import { CorrelationTable } from './correlation-table.ts';
import { Dictionary } from './dictionary.ts';
import { withoutEndless } from './endless-work.ts';
import { keepOutermost } from './nested-calls.ts';
import { plausibleWindow } from './plausible-window.ts';
import { orderRows } from './row-order.ts';
import type { Iteration, StreamInfo, ThreadInfo, Timeline, TraceFormat } from './timeline.ts';
import type { CallColumns, WorkColumns, WorkKind } from './timeline.ts';
import { WarningCounts } from './warning-counts.ts';

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

export class TimelineBuilder {
  readonly #format: TraceFormat;
  readonly #threads = new Dictionary<ThreadInfo>();
  readonly #streams = new Dictionary<StreamInfo>();
  readonly #names = new Dictionary<string>();
  readonly #gpus = new Map<number, string>();
  readonly #iterations: Iteration[] = [];
  readonly #syncs: SyncRecord[] = [];
  readonly #copyCalls = new CopyCalls();
  /** Warnings of the reader go here too: `warnings.count(code, message, place)`. */
  readonly warnings = new WarningCounts();
  recordedStacks = false;
  recordedShapes = false;
  /** Absolute time of the reader's origin, ns since 1970. */
  originUnixNs: bigint | undefined;

  readonly #callStart = float64Column();
  readonly #callDuration = float64Column();
  readonly #callThread = uint32Column();
  readonly #callName = uint32Column();
  readonly #callCorrelation = float64Column();
  readonly #workStart = float64Column();
  readonly #workDuration = float64Column();
  readonly #workStream = uint32Column();
  readonly #workKind = uint8Column();
  readonly #workFlags = uint8Column();
  readonly #workBytes = float64Column();
  readonly #workName = uint32Column();
  readonly #workCorrelation = float64Column();

  constructor(format: TraceFormat) {
    this.#format = format;
  }

  /** Calls and pieces of work taken so far. */
  get count(): number {
    return this.#callStart.count + this.#workStart.count;
  }

  thread(pid: string, tid: string): number {
    return this.#threads.index(`${pid}\n${tid}`, () => ({ pid, tid }));
  }

  nameThread(pid: string, tid: string, name: string): void {
    this.#threads.replace(this.thread(pid, tid), { pid, tid, name });
  }

  stream(device: number, stream: string): number {
    return this.#streams.index(`${device}\n${stream}`, () => ({ device, stream }));
  }

  name(text: string): number {
    return this.#names.index(text, () => text);
  }

  gpu(device: number, name: string): void {
    this.#gpus.set(device, name);
  }

  /** `thread` and `name` are indexes given out above; `correlation` 0 means none. */
  addCall(
    thread: number,
    name: number,
    startNs: number,
    durationNs: number,
    correlation: number,
  ): void {
    if (!this.#isTime(startNs, durationNs)) return;
    this.#callStart.push(startNs);
    this.#callDuration.push(durationNs);
    this.#callThread.push(thread);
    this.#callName.push(name);
    this.#callCorrelation.push(this.#correlation(correlation));
  }

  /** `bytes` 0 where the trace does not tell; `flags` are `WORK_FLAG` bits. */
  addWork(
    stream: number,
    kind: WorkKind,
    name: number,
    startNs: number,
    durationNs: number,
    correlation: number,
    bytes: number,
    flags: number,
  ): void {
    if (!this.#isTime(startNs, durationNs)) return;
    this.#workStart.push(startNs);
    this.#workDuration.push(durationNs);
    this.#workStream.push(stream);
    this.#workKind.push(kind);
    this.#workFlags.push(flags);
    this.#workBytes.push(this.#bytes(bytes));
    this.#workName.push(name);
    this.#workCorrelation.push(this.#correlation(correlation));
  }

  addSync(record: SyncRecord): void {
    this.#syncs.push(record);
  }

  /** What the arguments of a copy call say, for work that says less; `bytes` 0 where they do not tell. */
  addCopyCall(correlation: number, kind: WorkKind, bytes: number): void {
    this.#copyCalls.add(this.#correlation(correlation), kind, this.#bytes(bytes));
  }

  addIteration(label: string, startNs: number, endNs: number): void {
    if (this.#isTime(startNs, endNs - startNs)) this.#iterations.push({ label, startNs, endNs });
  }

  #isTime(startNs: number, durationNs: number): boolean {
    if (!Number.isFinite(startNs) || !Number.isFinite(durationNs)) {
      this.warnings.count('dropped-no-time', 'events without a usable time were dropped');
      return false;
    }
    if (durationNs < 0) {
      this.warnings.count('dropped-negative-duration', 'events of negative duration were dropped');
      return false;
    }
    return true;
  }

  #correlation(value: number): number {
    if (Number.isSafeInteger(value) && value >= 0) return value;
    this.warnings.count('no-correlation', 'correlation ids that are no whole numbers were ignored');
    return 0;
  }

  #bytes(value: number): number {
    if (value >= 0 && value <= Number.MAX_SAFE_INTEGER) return value;
    this.warnings.count('no-bytes', 'copies whose byte count is not a number count as 0 bytes');
    return 0;
  }

  /** The builder is empty afterwards. */
  finish(): Timeline {
    const window = plausibleWindow([this.#callStart, this.#workStart]);
    const inWindow = (startNs: number, durationNs: number): boolean =>
      startNs >= window.startNs && startNs + durationNs <= window.endNs;
    const callRows = orderRows(
      this.#rows(this.#callStart, this.#callDuration, inWindow),
      this.#threads.values.length,
      this.#callThread,
      this.#callStart,
      this.#callDuration,
    );
    const windowRows = orderRows(
      this.#rows(this.#workStart, this.#workDuration, inWindow),
      this.#streams.values.length,
      this.#workStream,
      this.#workStart,
    );
    const workRows = this.#withoutEndless(callRows, windowRows);
    let originNs = Infinity;
    for (const row of callRows) originNs = Math.min(originNs, this.#callStart.at(row));
    for (const row of workRows) originNs = Math.min(originNs, this.#workStart.at(row));
    if (originNs === Infinity) originNs = 0;

    const joined = this.#calls(callRows, originNs);
    const work = this.#work(workRows, originNs, joined.callOf, joined.calls.count);
    const spanNs = Math.max(lastEnd(joined.calls), lastEnd(work.columns));
    return {
      format: this.#format,
      calls: joined.calls,
      work: work.columns,
      submissions: work.submissions,
      threads: this.#threads.values,
      streams: this.#streams.values,
      names: this.#names.values,
      iterations: this.#marked(inWindow, originNs),
      gpus: this.#gpus,
      recordedStacks: this.recordedStacks,
      recordedShapes: this.recordedShapes,
      originUnixNs:
        this.originUnixNs === undefined
          ? undefined
          : this.originUnixNs + BigInt(Math.round(originNs)),
      warnings: this.warnings.list(),
      spanNs,
    };
  }

  #rows(
    start: { readonly count: number; at(row: number): number },
    duration: { at(row: number): number },
    isKept: (startNs: number, durationNs: number) => boolean,
  ): Uint32Array {
    const rows = new Uint32Array(start.count);
    let kept = 0;
    for (let row = 0; row < start.count; row += 1) {
      if (isKept(start.at(row), duration.at(row))) {
        rows[kept] = row;
        kept += 1;
      } else {
        this.warnings.count(
          'dropped-far-away',
          'events more than a day away from all others were dropped',
        );
      }
    }
    return rows.subarray(0, kept);
  }

  #withoutEndless(callRows: Uint32Array, workRows: Uint32Array): Uint32Array {
    const calls = { rows: callRows, start: this.#callStart, duration: this.#callDuration };
    const work = { rows: workRows, start: this.#workStart, duration: this.#workDuration };
    const kept = withoutEndless(calls, work, this.#workStream);
    if (kept.length < workRows.length) {
      this.warnings.count(
        'dropped-endless',
        'pieces of GPU work were dropped: they outlast all others, while later work of their stream runs',
        { by: workRows.length - kept.length },
      );
    }
    return kept;
  }

  #calls(
    rows: Uint32Array,
    originNs: number,
  ): { readonly calls: CallColumns; readonly callOf: CorrelationTable } {
    const kindOfName = Uint8Array.from(this.#names.values, callKind);
    const { order, outermost, overlaps } = keepOutermost(
      rows,
      this.#callThread,
      this.#callStart,
      this.#callDuration,
    );
    if (overlaps > 0) {
      this.warnings.count(
        'overlapping-calls',
        'calls that overlap another of their thread were shortened',
        { by: overlaps },
      );
    }
    const kind = new Uint8Array(order.length);
    const callOf = tableFor(rows, this.#callCorrelation);
    for (let position = 0; position < rows.length; position += 1) {
      const row = rows[position] ?? 0;
      const call = outermost[position] ?? 0;
      const own = kindOfName[this.#callName.at(row)] ?? CALL_KIND.other;
      // The outer call's kind counts, unless it says nothing.
      if (kind[call] === CALL_KIND.other) kind[call] = own;
      const correlation = this.#callCorrelation.at(row);
      if (correlation === 0) continue;
      const known = callOf.get(correlation);
      if (known < 0) callOf.set(correlation, call);
      else if (known !== call) {
        this.warnings.count(
          'duplicate-correlation',
          'correlation ids that several calls share were joined to the first of them',
        );
      }
    }
    const startNs = this.#callStart.take(order);
    const durationNs = this.#callDuration.take(order);
    for (let call = 0; call < order.length; call += 1)
      startNs[call] = (startNs[call] ?? 0) - originNs;
    const thread = this.#callThread.take(order);
    shorten(startNs, durationNs, thread);
    const stream = new Int32Array(order.length).fill(-1);
    const recordCall = new Int32Array(order.length).fill(-1);
    for (const sync of this.#syncs) {
      const call = callOf.get(sync.correlation);
      if (call < 0) continue;
      stream[call] = sync.stream;
      if (sync.recordCorrelation === 0) continue;
      const record = callOf.get(sync.recordCorrelation);
      if (record < 0) continue;
      recordCall[call] = record;
      if ((sync.recordStream ?? -1) >= 0) stream[record] = sync.recordStream ?? -1;
    }
    const name = this.#callName.take(order);
    const calls = {
      count: order.length,
      startNs,
      durationNs,
      thread,
      kind,
      name,
      stream,
      recordCall,
    };
    return { calls, callOf };
  }

  #work(
    rows: Uint32Array,
    originNs: number,
    callOf: CorrelationTable,
    calls: number,
  ): { readonly columns: WorkColumns; readonly submissions: number } {
    const call = new Int32Array(rows.length).fill(-1);
    const submission = new Uint32Array(rows.length);
    const ofCall = new Int32Array(calls).fill(-1);
    const ofCorrelation = tableFor(rows, this.#workCorrelation);
    let submissions = 0;
    let unlaunched = 0;
    for (let index = 0; index < rows.length; index += 1) {
      const correlation = this.#workCorrelation.at(rows[index] ?? 0);
      const launchedBy = correlation === 0 ? -1 : callOf.get(correlation);
      let number = -1;
      if (launchedBy >= 0) number = ofCall[launchedBy] ?? -1;
      else if (correlation !== 0) number = ofCorrelation.get(correlation);
      if (number < 0) {
        number = submissions;
        submissions += 1;
        if (launchedBy >= 0) ofCall[launchedBy] = number;
        else if (correlation !== 0) ofCorrelation.set(correlation, number);
      }
      call[index] = launchedBy;
      if (launchedBy < 0) unlaunched += 1;
      submission[index] = number;
    }
    // Without any calls that goes without saying.
    if (unlaunched > 0 && calls > 0) {
      this.warnings.count(
        'no-launch',
        'pieces of GPU work have no launch call in the trace: it came before, or is lost',
        { by: unlaunched },
      );
    }
    const startNs = this.#workStart.take(rows);
    for (let row = 0; row < rows.length; row += 1) startNs[row] = (startNs[row] ?? 0) - originNs;
    const columns = {
      count: rows.length,
      startNs,
      durationNs: this.#workDuration.take(rows),
      stream: this.#workStream.take(rows),
      kind: this.#workKind.take(rows),
      flags: this.#workFlags.take(rows),
      bytes: this.#workBytes.take(rows),
      name: this.#workName.take(rows),
      call,
      submission,
    };
    this.#copyCalls.correct(columns, (index) => this.#workCorrelation.at(rows[index] ?? 0));
    return { columns, submissions };
  }

  #marked(
    inWindow: (startNs: number, durationNs: number) => boolean,
    originNs: number,
  ): Iteration[] {
    return this.#iterations
      .filter(({ startNs, endNs }) => inWindow(startNs, endNs - startNs))
      .map(({ label, startNs, endNs }) => ({
        label,
        startNs: startNs - originNs,
        endNs: endNs - originNs,
      }))
      .toSorted((a, b) => a.startNs - b.startNs);
  }
}

/** Calls of one thread that overlap the next end where it begins. */
function shorten(startNs: Float64Array, durationNs: Float64Array, thread: Uint32Array): void {
  for (let call = 0; call + 1 < startNs.length; call += 1) {
    if (thread[call] !== thread[call + 1]) continue;
    const room = (startNs[call + 1] ?? 0) - (startNs[call] ?? 0);
    if ((durationNs[call] ?? 0) > room) durationNs[call] = room;
  }
}

function lastEnd(columns: {
  readonly count: number;
  readonly startNs: Float64Array;
  readonly durationNs: Float64Array;
}): number {
  let end = 0;
  for (let row = 0; row < columns.count; row += 1) {
    end = Math.max(end, (columns.startNs[row] ?? 0) + (columns.durationNs[row] ?? 0));
  }
  return end;
}

/** For the correlation ids of these rows; 0 is none of them. */
function tableFor(rows: Uint32Array, correlation: { at(row: number): number }): CorrelationTable {
  let first = Infinity;
  let last = 0;
  for (const row of rows) {
    const id = correlation.at(row);
    if (id === 0) continue;
    first = Math.min(first, id);
    last = Math.max(last, id);
  }
  return new CorrelationTable(Math.min(first, last), last, rows.length);
}
