/** Sequence numbers and credit counters are 32 bits wide and wrap; differences are what counts. */

/** `a − b`, right while the two are less than 2^31 apart. */
export function distance(a: number, b: number): number {
  return (a - b) | 0;
}

export function advance(sequence: number, by = 1): number {
  return (sequence + by) >>> 0;
}
