/** GPU work whose recorded end cannot be true. */
import type { Values } from './column.ts';

/** Below that nothing is called endless, ns. */
const LONG_NS = 10e9;

interface Events {
  readonly rows: Uint32Array;
  readonly start: Values;
  readonly duration: Values;
}

/**
 * The rows of work but those that last over 10 s, run on while later work of their stream begins, and
 * end more than twice as late as everything of which that is not so. `work.rows` are ordered by (stream,
 * start).
 */
export function withoutEndless(calls: Events, work: Events, stream: Values): Uint32Array {
  const isSuspect = (index: number): boolean => {
    const row = work.rows[index] ?? 0;
    const next = work.rows[index + 1];
    if (next === undefined || work.duration.at(row) <= LONG_NS) return false;
    return (
      stream.at(row) === stream.at(next) &&
      work.start.at(next) < work.start.at(row) + work.duration.at(row)
    );
  };
  const suspects: number[] = [];
  for (let index = 0; index < work.rows.length; index += 1) {
    if (isSuspect(index)) suspects.push(index);
  }
  if (suspects.length === 0) return work.rows;
  const isSuspected = new Set(suspects);
  let originNs = Infinity;
  let endNs = -Infinity;
  const extend = (
    { rows, start, duration }: Events,
    isLeftOut: (index: number) => boolean,
  ): void => {
    for (const [index, row] of rows.entries()) {
      originNs = Math.min(originNs, start.at(row));
      if (!isLeftOut(index)) endNs = Math.max(endNs, start.at(row) + duration.at(row));
    }
  };
  extend(calls, () => false);
  extend(work, (index) => isSuspected.has(index));
  const latestNs = originNs + 2 * (endNs - originNs);
  return work.rows.filter(
    (row, index) =>
      !isSuspected.has(index) || work.start.at(row) + work.duration.at(row) <= latestNs,
  );
}
