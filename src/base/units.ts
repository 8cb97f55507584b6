/**
 * Branded numbers: what crosses a module and would hurt if mixed up. Each is built by a checking
 * constructor; inside a hot loop plain arithmetic on the numbers is fine.
 */
import { assert } from './assert.ts';

declare const brand: unique symbol;
type Branded<T, B extends string> = T & { readonly [brand]: B };

/** A time or a duration in whole or fractional nanoseconds, finite and not negative. */
export type Nanos = Branded<number, 'Nanos'>;

/** An address on a host's bus, a safe integer of at most 2^53 − 1. */
export type BusAddr = Branded<number, 'BusAddr'>;

/** Bus, device and function as PCIe packs them: bus << 8 | device << 3 | function. */
export type Bdf = Branded<number, 'Bdf'>;

export function nanos(value: number): Nanos {
  assert(value >= 0 && Number.isFinite(value), `not a time in nanoseconds: ${value}`);
  return value as Nanos;
}

export function micros(value: number): Nanos {
  return nanos(value * 1e3);
}

export function millis(value: number): Nanos {
  return nanos(value * 1e6);
}

export function busAddr(value: number): BusAddr {
  assert(Number.isSafeInteger(value) && value >= 0, `not a bus address: ${value}`);
  return value as BusAddr;
}

export function bdf(bus: number, device: number, fn: number): Bdf {
  assert(Number.isInteger(bus) && bus >= 0 && bus <= 255, `bus out of range: ${bus}`);
  assert(Number.isInteger(device) && device >= 0 && device <= 31, `device out of range: ${device}`);
  assert(Number.isInteger(fn) && fn >= 0 && fn <= 7, `function out of range: ${fn}`);
  return ((bus << 8) | (device << 3) | fn) as Bdf;
}

/** `bb:dd.f`, as lspci writes it. */
export function formatBdf(value: number): string {
  const bus = (value >>> 8).toString(16).padStart(2, '0');
  const device = ((value >>> 3) & 31).toString(16).padStart(2, '0');
  return `${bus}:${device}.${value & 7}`;
}
