/** Calls inside calls. */
import type { Values } from './column.ts';

export interface Outermost {
  /** The rows kept, in order. */
  readonly order: Uint32Array;
  /** For each row given, by position: the index into `order` of the call it is part of. */
  readonly outermost: Uint32Array;
  /** Rows that begin inside a call of their thread and end after it: kept as calls of their own. */
  readonly overlaps: number;
}

/** `rows` are ordered by (thread, start, longest first). */
export function keepOutermost(
  rows: Uint32Array,
  thread: Values,
  start: Values,
  duration: Values,
): Outermost {
  const order = new Uint32Array(rows.length);
  const outermost = new Uint32Array(rows.length);
  let kept = 0;
  let overlaps = 0;
  let currentThread = -1;
  let currentStart = 0;
  let currentEnd = -Infinity;
  for (let position = 0; position < rows.length; position += 1) {
    const row = rows[position] ?? 0;
    const startNs = start.at(row);
    const endNs = startNs + duration.at(row);
    const isSameThread = thread.at(row) === currentThread;
    // Two calls of no length at one time are two calls; one at the end of another follows it.
    const isInside =
      isSameThread && endNs <= currentEnd && (startNs < currentEnd || startNs === currentStart);
    if (isInside && !(currentStart === currentEnd)) {
      outermost[position] = kept - 1;
      continue;
    }
    if (isSameThread && startNs < currentEnd) overlaps += 1;
    order[kept] = row;
    outermost[position] = kept;
    kept += 1;
    currentThread = thread.at(row);
    currentStart = startNs;
    currentEnd = endNs;
  }
  return { order: order.slice(0, kept), outermost, overlaps };
}
