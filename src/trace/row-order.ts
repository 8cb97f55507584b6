/** Puts rows in the order of a timeline, fast where they nearly are in it, as recorded ones are. */
import type { Values } from './column.ts';

/**
 * `rows` by group, then by start, then longest first where durations are given; rows that are equal in
 * all keep their order. Groups are numbered from 0 to `groups` - 1. Takes `n` steps where each group is
 * in order already, and `n log k` where it consists of k parts that are.
 */
export function orderRows(
  rows: Uint32Array,
  groups: number,
  group: Values,
  start: Values,
  duration?: Values,
): Uint32Array {
  const ends = new Uint32Array(groups + 1);
  for (let i = 0; i < rows.length; i += 1) {
    const next = group.at(rows[i] as number) + 1;
    ends[next] = (ends[next] as number) + 1;
  }
  for (let g = 1; g <= groups; g += 1) ends[g] = (ends[g] as number) + (ends[g - 1] as number);
  const starts = ends.slice();
  const order = new Uint32Array(rows.length);
  for (let i = 0; i < rows.length; i += 1) {
    const row = rows[i] as number;
    const g = group.at(row);
    const at = starts[g] as number;
    order[at] = row;
    starts[g] = at + 1;
  }
  const isBefore = (a: number, b: number): boolean => {
    const difference = start.at(a) - start.at(b);
    if (difference !== 0 || duration === undefined) return difference < 0;
    return duration.at(a) > duration.at(b);
  };
  for (let g = 0; g < groups; g += 1) {
    sortRuns(order.subarray(ends[g] as number, ends[g + 1] as number), isBefore);
  }
  return order;
}

/** Merges neighbouring runs that are in order until one is left. */
function sortRuns(rows: Uint32Array, isBefore: (a: number, b: number) => boolean): void {
  let bounds = [0];
  for (let i = 1; i < rows.length; i += 1) {
    if (isBefore(rows[i] as number, rows[i - 1] as number)) bounds.push(i);
  }
  if (bounds.length === 1) return;
  bounds.push(rows.length);
  const spare = new Uint32Array(rows.length);
  while (bounds.length > 2) {
    const merged = [0];
    for (let run = 0; run + 2 < bounds.length; run += 2) {
      const [from, middle, end] = [bounds[run], bounds[run + 1], bounds[run + 2]];
      merge(rows, spare, from as number, middle as number, end as number, isBefore);
      merged.push(end as number);
    }
    if (merged[merged.length - 1] !== rows.length) merged.push(rows.length);
    bounds = merged;
  }
}

function merge(
  rows: Uint32Array,
  spare: Uint32Array,
  from: number,
  middle: number,
  end: number,
  isBefore: (a: number, b: number) => boolean,
): void {
  // Of the left run only the part that the right one reaches into moves.
  let left = from;
  while (left < middle && !isBefore(rows[middle] as number, rows[left] as number)) left += 1;
  spare.set(rows.subarray(left, middle), left);
  let at = left;
  let right = middle;
  while (left < middle && right < end) {
    const isRight = isBefore(rows[right] as number, spare[left] as number);
    rows[at] = (isRight ? rows[right] : spare[left]) as number;
    if (isRight) right += 1;
    else left += 1;
    at += 1;
  }
  while (left < middle) {
    rows[at] = spare[left] as number;
    left += 1;
    at += 1;
  }
}
