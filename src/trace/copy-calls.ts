/**
 * What copy calls say of their own copies. ROCm labels copies to and from the host "DtoD" on the GPU
 * side and may leave out their bytes, while the call's arguments tell both.
 */
import { float64Column, uint8Column } from './column.ts';
import { WORK_KIND, type WorkColumns, type WorkKind } from './timeline.ts';

export class CopyCalls {
  readonly #rows = new Map<number, number>();
  readonly #kind = uint8Column();
  readonly #bytes = float64Column();

  /** `bytes` 0 where the call does not tell. The first call of a correlation id counts. */
  add(correlation: number, kind: WorkKind, bytes: number): void {
    if (correlation === 0 || this.#rows.has(correlation)) return;
    this.#rows.set(correlation, this.#kind.count);
    this.#kind.push(kind);
    this.#bytes.push(bytes);
  }

  /** Row i of `work` has the correlation id `correlationOf(i)`. */
  correct(work: WorkColumns, correlationOf: (row: number) => number): void {
    if (this.#rows.size === 0) return;
    for (let row = 0; row < work.count; row += 1) {
      const kind = work.kind[row];
      if (kind === WORK_KIND.kernel || kind === WORK_KIND.memset) continue;
      const call = this.#rows.get(correlationOf(row));
      if (call === undefined) continue;
      const told = this.#kind.at(call);
      const isHostCopy = told === WORK_KIND.htod || told === WORK_KIND.dtoh;
      const isDoubtful = kind === WORK_KIND.copy || (kind === WORK_KIND.dtod && isHostCopy);
      if (isDoubtful) work.kind[row] = told;
      if (work.bytes[row] === 0) work.bytes[row] = this.#bytes.at(call);
    }
  }
}
