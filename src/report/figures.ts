/**
 * Numbers as people read them, in tables, plots and pages alike: about three digits, a space before
 * the unit, groups of three. Every function takes finite numbers alone.
 */

/** `850 ns`, `6.8 µs`, `13.2 ms`, `41.7 s`. */
export function duration(ns: number): string {
  const size = Math.abs(ns);
  // The limits are where three digits round up to the next unit.
  if (size >= 999.5e6) return `${threeDigits(ns / 1e9)} s`;
  if (size >= 999.5e3) return `${threeDigits(ns / 1e6)} ms`;
  if (size >= 999.5) return `${threeDigits(ns / 1e3)} µs`;
  return `${threeDigits(ns)} ns`;
}

/** Powers of 1000, as rates have them: `512 B`, `4.1 kB`, `116 MB`, `2.6 GB`. */
export function bytes(count: number): string {
  const size = Math.abs(count);
  if (size >= 999.5e9) return `${threeDigits(count / 1e12)} TB`;
  if (size >= 999.5e6) return `${threeDigits(count / 1e9)} GB`;
  if (size >= 999.5e3) return `${threeDigits(count / 1e6)} MB`;
  if (size >= 999.5) return `${threeDigits(count / 1e3)} kB`;
  return `${threeDigits(count)} B`;
}

/** `0 %`, `0.42 %`, `13.2 %`, `1,240 %`; what would round to nothing is `<0.01 %`. */
export function percent(value: number): string {
  const size = Math.abs(value);
  if (size === 0) return '0 %';
  if (size < 0.01) return value < 0 ? '>-0.01 %' : '<0.01 %';
  if (size < 0.995) return `${trimmed(value.toFixed(2))} %`;
  if (size < 99.95) return `${trimmed(value.toFixed(1))} %`;
  return `${count(Math.round(value))} %`;
}

/** A dash where there is none. */
export function percentOr(value: number | null | undefined): string {
  return value === null || value === undefined ? '-' : percent(value);
}

/** `2.64 GB/s`. */
export function gbytesPerS(value: number): string {
  return `${threeDigits(value)} GB/s`;
}

/** A whole number in groups of three: `9,012`. */
export function count(value: number): string {
  const [whole = '', part] = String(value).split('.');
  const grouped = whole.includes('e') ? whole : whole.replaceAll(/\B(?=(?:\d{3})+$)/g, ',');
  return part === undefined ? grouped : `${grouped}.${part}`;
}

/** About three digits, never as a power of ten: `0.042`, `4.2`, `12,700`. */
export function threeDigits(value: number): string {
  const size = Math.abs(value);
  if (size === 0) return '0';
  if (size >= 99.95) return count(Math.round(Number(value.toPrecision(3))));
  if (size < 1e-6) return value.toExponential(1);
  return trimmed(Number(value.toPrecision(3)).toFixed(9));
}

/** Without zeros at the end of a fraction. */
function trimmed(digits: string): string {
  return digits.includes('.') ? digits.replace(/\.?0+$/, '') : digits;
}
