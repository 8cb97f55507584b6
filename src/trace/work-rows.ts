/** GPU work as it comes, and the columns it becomes. */
import type { JoinedCalls } from './call-rows.ts';
import { float64Column, uint32Column, uint8Column } from './column.ts';
import type { CopyCalls } from './copy-calls.ts';
import { CorrelationTable } from './correlation-table.ts';
import type { WorkColumns, WorkKind } from './timeline.ts';
import type { WarningCounts } from './warning-counts.ts';

export interface JoinedWork {
  readonly work: WorkColumns;
  readonly submissions: number;
}

export class WorkRows {
  readonly start = float64Column();
  readonly duration = float64Column();
  readonly stream = uint32Column();
  readonly #kind = uint8Column();
  readonly #flags = uint8Column();
  readonly #bytes = float64Column();
  readonly #name = uint32Column();
  readonly #correlation = float64Column();

  add(
    stream: number,
    kind: WorkKind,
    name: number,
    startNs: number,
    durationNs: number,
    correlation: number,
    bytes: number,
    flags: number,
  ): void {
    this.start.push(startNs);
    this.duration.push(durationNs);
    this.stream.push(stream);
    this.#kind.push(kind);
    this.#flags.push(flags);
    this.#bytes.push(bytes);
    this.#name.push(name);
    this.#correlation.push(correlation);
  }

  /**
   * `rows`, which are ordered by (stream, start), joined to their calls, against `originNs`; the rows are
   * empty afterwards.
   */
  take(
    rows: Uint32Array,
    originNs: number,
    { calls: { count: calls }, callOf }: JoinedCalls,
    copyCalls: CopyCalls,
    warnings: WarningCounts,
  ): JoinedWork {
    const call = new Int32Array(rows.length).fill(-1);
    const submission = new Uint32Array(rows.length);
    const ofCall = new Int32Array(calls).fill(-1);
    const ofCorrelation = CorrelationTable.forRows(rows, this.#correlation);
    let submissions = 0;
    let unlaunched = 0;
    for (let index = 0; index < rows.length; index += 1) {
      const correlation = this.#correlation.at(rows[index] ?? 0);
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
      warnings.count(
        'no-launch',
        'pieces of GPU work have no launch call in the trace: it came before, or is lost',
        { by: unlaunched },
      );
    }
    const columns = {
      count: rows.length,
      startNs: this.start.take(rows, originNs),
      durationNs: this.duration.take(rows),
      stream: this.stream.take(rows),
      kind: this.#kind.take(rows),
      flags: this.#flags.take(rows),
      bytes: this.#bytes.take(rows),
      name: this.#name.take(rows),
      call,
      submission,
    };
    copyCalls.correct(columns, (index) => this.#correlation.at(rows[index] ?? 0));
    return { work: columns, submissions };
  }
}
