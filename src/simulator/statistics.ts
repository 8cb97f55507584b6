/** Mean and spread over seeds. */

export interface Spread {
  readonly mean: number;
  /** Of the sample (n − 1); 0 for a single value. */
  readonly stdev: number;
  readonly count: number;
}

export function spreadOf(values: readonly number[]): Spread {
  const count = values.length;
  if (count === 0) return { mean: NaN, stdev: NaN, count };
  const mean = values.reduce((sum, value) => sum + value, 0) / count;
  const squares = values.reduce((sum, value) => sum + (value - mean) ** 2, 0);
  return { mean, stdev: count === 1 ? 0 : Math.sqrt(squares / (count - 1)), count };
}

/** Three standard errors of the difference of two means. */
export function threeStandardErrors(a: Spread, b: Spread): number {
  return 3 * Math.sqrt(a.stdev ** 2 / a.count + b.stdev ** 2 / b.count);
}
