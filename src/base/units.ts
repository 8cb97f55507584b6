/** Branded numbers: what crosses a module and would hurt if mixed up, built by a checking constructor. */
import { AssertionError } from './assert.ts';

declare const brand: unique symbol;
type Branded<T, B extends string> = T & { readonly [brand]: B };

/** A time or a duration in whole or fractional nanoseconds, finite and not negative. */
export type Nanos = Branded<number, 'Nanos'>;

/** Asserts that `value` is a time. The text is made only on failure: this is called for every event. */
export function nanos(value: number): Nanos {
  if (!(value >= 0 && value < Infinity)) {
    throw new AssertionError(`not a time in nanoseconds: ${value}`);
  }
  return value as Nanos;
}

/** A bus, device and function (bus << 8 | device << 3 | function) as `bb:dd.f`, as lspci writes it. */
export function formatBdf(value: number): string {
  const bus = (value >>> 8).toString(16).padStart(2, '0');
  const device = ((value >>> 3) & 31).toString(16).padStart(2, '0');
  return `${bus}:${device}.${value & 7}`;
}
