/**
 * Collects what a format's reader finds, in any order, and makes the timeline of it: drops what
 * cannot be true (counted in warnings), merges calls inside calls, joins work to the calls that
 * launched it, and sets time 0 at the earliest event.
 *
 * Times given are ns against an origin of the reader's choice, near the first event, so that they
 * keep whole nanoseconds. At most 64 bytes are held for each call or piece of work.
 */
import type { SyncRecord } from './call-rows.ts';
import { CallRows } from './call-rows.ts';
import type { Values } from './column.ts';
import { CopyCalls } from './copy-calls.ts';
import { Dictionary } from './dictionary.ts';
import { withoutEndless } from './endless-work.ts';
import { plausibleWindow } from './plausible-window.ts';
import { orderRows } from './row-order.ts';
import type {
  Iteration,
  StreamInfo,
  ThreadInfo,
  Timeline,
  TraceFormat,
  WorkKind,
} from './timeline.ts';
import { WarningCounts } from './warning-counts.ts';
import { WorkRows } from './work-rows.ts';

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

  readonly #calls = new CallRows();
  readonly #work = new WorkRows();

  constructor(format: TraceFormat) {
    this.#format = format;
  }

  /** Calls and pieces of work taken so far. */
  get count(): number {
    return this.#calls.start.count + this.#work.start.count;
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
    this.#calls.add(thread, name, startNs, durationNs, this.#correlation(correlation));
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
    this.#work.add(
      stream,
      kind,
      name,
      startNs,
      durationNs,
      this.#correlation(correlation),
      this.#bytes(bytes),
      flags,
    );
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
    const window = plausibleWindow([this.#calls.start, this.#work.start]);
    const inWindow = (startNs: number, durationNs: number): boolean =>
      startNs >= window.startNs && startNs + durationNs <= window.endNs;
    const callRows = orderRows(
      this.#rows(this.#calls.start, this.#calls.duration, inWindow),
      this.#threads.values.length,
      this.#calls.thread,
      this.#calls.start,
      this.#calls.duration,
    );
    const windowRows = orderRows(
      this.#rows(this.#work.start, this.#work.duration, inWindow),
      this.#streams.values.length,
      this.#work.stream,
      this.#work.start,
    );
    const workRows = this.#withoutEndless(callRows, windowRows);
    let originNs = Infinity;
    for (const row of callRows) originNs = Math.min(originNs, this.#calls.start.at(row));
    for (const row of workRows) originNs = Math.min(originNs, this.#work.start.at(row));
    if (originNs === Infinity) originNs = 0;

    const { warnings } = this;
    const names = this.#names.values;
    const joined = this.#calls.take(callRows, originNs, names, this.#syncs, warnings);
    const { calls } = joined;
    const { work, submissions } = this.#work.take(
      workRows,
      originNs,
      joined,
      this.#copyCalls,
      warnings,
    );
    const spanNs = Math.max(lastEnd(calls), lastEnd(work));
    return {
      format: this.#format,
      calls,
      work,
      submissions,
      threads: this.#threads.values,
      streams: this.#streams.values,
      names,
      iterations: this.#marked(inWindow, originNs),
      gpus: this.#gpus,
      recordedStacks: this.recordedStacks,
      recordedShapes: this.recordedShapes,
      originUnixNs:
        this.originUnixNs === undefined
          ? undefined
          : this.originUnixNs + BigInt(Math.round(originNs)),
      warnings: warnings.list(),
      spanNs,
    };
  }

  #rows(
    start: Values & { readonly count: number },
    duration: Values,
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
    const calls = { rows: callRows, start: this.#calls.start, duration: this.#calls.duration };
    const work = { rows: workRows, start: this.#work.start, duration: this.#work.duration };
    const kept = withoutEndless(calls, work, this.#work.stream);
    if (kept.length < workRows.length) {
      this.warnings.count(
        'dropped-endless',
        'pieces of GPU work were dropped: they outlast all others, while later work of their stream runs',
        { by: workRows.length - kept.length },
      );
    }
    return kept;
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
