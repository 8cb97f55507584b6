/**
 * Checks of single fields that came over the wire. Each fails with `invalid_argument` and the name of
 * the field, `slots[3].row.generation`. The name is put together on failure alone: a report of a large
 * box has ten thousand fields.
 */
import { DxpuError } from '#base/errors';
import { isIdentityName } from '#identity/identity';

/** Bytes of UTF-8 in any one text. */
export const MAX_TEXT_BYTES = 1024;
export const MAX_SLOT = 65_535;
/** GPU nodes of one chassis, with a wide margin: one report may make work for each. */
export const MAX_BOX_SLOTS = 1024;
/** Each virtual slot has a bus number of its own, 1 to 255. */
export const MAX_HOST_SLOTS = 255;
export const MAX_ENDPOINTS = 64;
export const MAX_PEERS = 100_000;
export const MAX_PATHS = 2 * MAX_PEERS;
export const MAX_ZONES = 4096;
export const MAX_BARS = 6;

// oxlint-disable-next-line no-control-regex -- exactly these are looked for
const CONTROL = /[\u0000-\u001f\u007f-\u009f]/;
// oxlint-disable-next-line no-control-regex
const CONTROL_OF_MESSAGE = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g;
const ADDRESS = /^(?:\[[0-9a-fA-F:.]+\]|[^\s:[\]]+):\d{1,5}$/;

export function wireError(at: string, field: string, problem: string): DxpuError {
  const name = at === '' ? field : field === '' ? at : `${at}.${field}`;
  return new DxpuError('invalid_argument', `${name}: ${problem}`, { details: { field: name } });
}

/** A 64-bit number that is exact as a double. */
export function safeNumber(at: string, field: string, value: bigint, low = 0): number {
  const number = Number(value);
  if (number >= low && number <= Number.MAX_SAFE_INTEGER) return number;
  throw wireError(at, field, `${value} is not from ${low} to 2^53 - 1`);
}

export function wholeNumber(at: string, field: string, value: number, high: number): number {
  if (Number.isInteger(value) && value >= 0 && value <= high) return value;
  throw wireError(at, field, `${value} is not from 0 to ${high}`);
}

/** A double that measures something: finite and not negative. */
export function measure(at: string, field: string, value: number): number {
  if (value >= 0 && value < Infinity) return value;
  throw wireError(at, field, `${value} is not a finite number from 0`);
}

/** A word: one line without control characters. */
export function word(at: string, field: string, value: string): string {
  shortEnough(at, field, value);
  if (!CONTROL.test(value)) return value;
  throw wireError(at, field, `${JSON.stringify(value)} has control characters`);
}

export function filledWord(at: string, field: string, value: string): string {
  if (value === '') throw wireError(at, field, 'is missing');
  return word(at, field, value);
}

/** The id of a host or box, or the name of a path. */
export function name(at: string, field: string, value: string): string {
  if (isIdentityName(value)) return value;
  throw wireError(
    at,
    field,
    value === ''
      ? 'is missing'
      : `${quoted(value)} is not 1 to 63 letters, digits, dots, dashes, underscores`,
  );
}

/** Text for people. */
export function message(at: string, field: string, value: string): string {
  shortEnough(at, field, value);
  CONTROL_OF_MESSAGE.lastIndex = 0;
  if (!CONTROL_OF_MESSAGE.test(value)) return value;
  throw wireError(at, field, `${quoted(value)} has control characters`);
}

/**
 * A text of ours as `message` takes it: what is too long is cut, control characters become spaces. So no
 * report is lost to the words of an error in it.
 */
export function fitMessage(value: string): string {
  // By way of UTF-8, in which half a surrogate pair becomes U+FFFD.
  const clean = Buffer.from(value).toString().replace(CONTROL_OF_MESSAGE, ' ');
  if (Buffer.byteLength(clean) <= MAX_TEXT_BYTES) return clean;
  let cut = Buffer.from(clean)
    .subarray(0, MAX_TEXT_BYTES - 3)
    .toString();
  // A character that was cut through decodes as U+FFFD, which has three bytes itself.
  while (Buffer.byteLength(cut) > MAX_TEXT_BYTES - 3) cut = cut.slice(0, -1);
  return `${cut}…`;
}

/** `address:port`. */
export function address(at: string, field: string, value: string): string {
  shortEnough(at, field, value);
  if (ADDRESS.test(value)) return value;
  throw wireError(at, field, `${quoted(value)} is not an address and port, as in 127.0.0.1:7001`);
}

export function part<T>(at: string, field: string, value: T | undefined): T {
  if (value !== undefined) return value;
  throw wireError(at, field, 'is missing');
}

/** An enum value as its name; 0 stands for a field that was not set. */
export function enumName<T extends string>(
  at: string,
  field: string,
  value: number,
  names: readonly T[],
): T {
  const found = names[value - 1];
  if (found !== undefined) return found;
  throw wireError(
    at,
    field,
    value === 0
      ? 'is missing'
      : `${value} is none of ${names.map((n, i) => `${i + 1} (${n})`).join(', ')}`,
  );
}

/** The reverse of `enumName`: our enums number their names from 1. */
export function enumNumber<T extends string>(name: T, names: readonly T[]): number {
  return names.indexOf(name) + 1;
}

export function list<T, U>(
  at: string,
  field: string,
  values: readonly T[],
  limit: number,
  map: (value: T, at: string) => U,
): U[] {
  if (values.length > limit) {
    throw wireError(at, field, `has ${values.length} entries, at most ${limit} can be`);
  }
  const path = at === '' ? field : `${at}.${field}`;
  return values.map((value, index) => map(value, `${path}[${index}]`));
}

/** Fails when two of `values` have the same key. */
export function distinct<T>(
  at: string,
  field: string,
  values: readonly T[],
  key: (value: T) => string | number,
): void {
  const seen = new Set<string | number>();
  for (const [index, value] of values.entries()) {
    const one = key(value);
    if (seen.has(one)) throw wireError(at, `${field}[${index}]`, `${one} is there twice`);
    seen.add(one);
  }
}

function shortEnough(at: string, field: string, value: string): void {
  // No character of UTF-16 takes more than three bytes.
  if (value.length * 3 <= MAX_TEXT_BYTES) return;
  const bytes = Buffer.byteLength(value);
  if (bytes > MAX_TEXT_BYTES) {
    throw wireError(at, field, `has ${bytes} bytes, at most ${MAX_TEXT_BYTES} can be`);
  }
}

function quoted(value: string): string {
  return JSON.stringify(value.length <= 80 ? value : `${value.slice(0, 80)}…`);
}
