/** Which times can be true, where some events of a file lie years away from the others. */
import type { Values } from './column.ts';

const DAY_NS = 86_400e9;
const MAX_SAMPLES = 1 << 16;

interface Starts extends Values {
  readonly count: number;
}

/** A day around the median start: no profile is longer. */
export function plausibleWindow(columns: readonly Starts[]): {
  readonly startNs: number;
  readonly endNs: number;
} {
  const total = columns.reduce((sum, column) => sum + column.count, 0);
  const stride = Math.max(1, Math.ceil(total / MAX_SAMPLES));
  const samples: number[] = [];
  for (const column of columns) {
    for (let row = 0; row < column.count; row += stride) samples.push(column.at(row));
  }
  samples.sort((a, b) => a - b);
  const median = samples[samples.length >> 1];
  if (median === undefined) return { startNs: 0, endNs: 0 };
  return { startNs: median - DAY_NS, endNs: median + DAY_NS };
}
