/**
 * Numbers from their digits, for times that a double cannot hold: microseconds since 1970 with three
 * decimals have 19 digits.
 */
import { QUOTE } from './json-bytes.ts';

const ZERO = 0x30;
const NINE = 0x39;
const MINUS = 0x2d;
const PLUS = 0x2b;
const POINT = 0x2e;

/** The number between `start` and `end`, with or without quotes around; NaN if it is none. */
export function decimal(bytes: Uint8Array, start: number, end: number): number {
  let i = start;
  let value = 0;
  while (i < end) {
    const digit = (bytes[i] as number) - ZERO;
    if (digit < 0 || digit > 9) return number(bytes, start, end);
    value = value * 10 + digit;
    i += 1;
  }
  // Up to 15 digits no step has rounded.
  return i === start || i - start > 15 ? number(bytes, start, end) : value;
}

function number(bytes: Uint8Array, start: number, end: number): number {
  const text = textOf(bytes, start, end);
  return text === '' ? Number.NaN : Number(text);
}

function textOf(bytes: Uint8Array, start: number, end: number): string {
  const isQuoted = end - start >= 2 && bytes[start] === QUOTE;
  return Buffer.from(isQuoted ? bytes.subarray(start + 1, end - 1) : bytes.subarray(start, end))
    .toString('latin1')
    .trim();
}

/**
 * Microseconds as nanoseconds since an origin, which is set once. Exact for up to 3 decimals, numbers up
 * to 9e15 (the year 2255), within 104 days of the origin; beyond, rounded as a double is.
 */
export class Microseconds {
  /** Whole microseconds that count as 0. */
  #origin = 0;
  #whole = 0;
  #nanos = 0;

  /** An origin that is no number is 0. */
  setOrigin(bytes: Uint8Array, start: number, end: number): void {
    this.#origin = 0;
    if (this.#read(bytes, start, end)) this.#origin = this.#whole;
  }

  get origin(): number {
    return this.#origin;
  }

  /** NaN where it is no number. */
  sinceOrigin(bytes: Uint8Array, start: number, end: number): number {
    if (!this.#read(bytes, start, end)) return Number.NaN;
    return (this.#whole - this.#origin) * 1000 + this.#nanos;
  }

  /** A length, in nanoseconds. */
  length(bytes: Uint8Array, start: number, end: number): number {
    if (!this.#read(bytes, start, end)) return Number.NaN;
    return this.#whole * 1000 + this.#nanos;
  }

  #read(bytes: Uint8Array, start: number, end: number): boolean {
    let i = start;
    let stop = end;
    if (bytes[i] === QUOTE) {
      i += 1;
      stop -= 1;
    }
    const isNegative = bytes[i] === MINUS;
    if (isNegative || bytes[i] === PLUS) i += 1;
    let whole = 0;
    const digits = i;
    while (i < stop) {
      const byte = bytes[i] as number;
      if (byte < ZERO || byte > NINE) break;
      whole = whole * 10 + (byte - ZERO);
      i += 1;
    }
    if (i === digits) return this.#readOther(bytes, start, end);
    let nanos = 0;
    if (i < stop) {
      if (bytes[i] !== POINT) return this.#readOther(bytes, start, end);
      let unit = 1000;
      for (i += 1; i < stop; i += 1) {
        const byte = bytes[i] as number;
        if (byte < ZERO || byte > NINE) return this.#readOther(bytes, start, end);
        unit /= 10;
        nanos += (byte - ZERO) * unit;
      }
      // The first three are whole; the rest came as parts of one.
      if (unit < 1) nanos = Math.round(nanos * 1e6) / 1e6;
    }
    this.#whole = isNegative ? -whole : whole;
    this.#nanos = isNegative ? -nanos : nanos;
    return true;
  }

  /** With an exponent, or no number at all. */
  #readOther(bytes: Uint8Array, start: number, end: number): boolean {
    const text = textOf(bytes, start, end);
    const value = text === '' ? Number.NaN : Number(text);
    if (!Number.isFinite(value)) return false;
    this.#whole = Math.floor(value);
    this.#nanos = (value - this.#whole) * 1000;
    return true;
  }
}
