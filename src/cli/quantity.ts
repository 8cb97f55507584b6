/** Numbers with units as people write them: `2s`, `50us`, `64MiB`, `1%`, `0x1000`. */
import { DxpuError } from '#base/errors';

const TIME_UNITS_NS: Readonly<Record<string, number>> = {
  ns: 1,
  us: 1e3,
  µs: 1e3,
  ms: 1e6,
  s: 1e9,
};

const SIZE_UNITS: Readonly<Record<string, number>> = {
  '': 1,
  B: 1,
  KiB: 2 ** 10,
  MiB: 2 ** 20,
  GiB: 2 ** 30,
  kB: 1e3,
  MB: 1e6,
  GB: 1e9,
};

const RATE_UNITS: Readonly<Record<string, number>> = {
  'Gbit/s': 1e9,
  Gbps: 1e9,
  'Mbit/s': 1e6,
  Mbps: 1e6,
  'GB/s': 8e9,
  'MB/s': 8e6,
};

const QUANTITY = /^\s*(\d+(?:\.\d+)?)\s*([A-Za-zµ%/]*)\s*$/;

/** Nanoseconds of a duration such as `2s`, `1.5ms` or `50us`. The unit is needed. */
export function parseDuration(text: string): number {
  const match = QUANTITY.exec(text);
  const factor = TIME_UNITS_NS[match?.[2] ?? ''];
  if (match === null || factor === undefined) {
    throw new DxpuError(
      'invalid_argument',
      `${JSON.stringify(text)} is not a duration: write a number and ns, us, ms or s, as in 50us`,
    );
  }
  return Number(match[1]) * factor;
}

/** Bytes of a size such as `4096`, `0x1000`, `64KiB` or `16GiB`. Whole bytes only. */
export function parseSize(text: string): number {
  if (/^0x[0-9a-f]+$/i.test(text)) return Number(text);
  const match = QUANTITY.exec(text);
  const factor = SIZE_UNITS[match?.[2] ?? ''];
  const bytes = Number(match?.[1]) * (factor ?? Number.NaN);
  if (match === null || !Number.isSafeInteger(bytes)) {
    throw new DxpuError(
      'invalid_argument',
      `${JSON.stringify(text)} is not a size: write bytes, or a number and KiB, MiB or GiB, as in 64MiB`,
    );
  }
  return bytes;
}

/** Bits a second of a rate such as `100Gbit/s` or `12.5GB/s`. */
export function parseRate(text: string): number {
  const match = QUANTITY.exec(text);
  const factor = RATE_UNITS[match?.[2] ?? ''];
  if (match === null || factor === undefined) {
    throw new DxpuError(
      'invalid_argument',
      `${JSON.stringify(text)} is not a rate: write a number and Gbit/s or GB/s, as in 100Gbit/s`,
    );
  }
  return Number(match[1]) * factor;
}

/** A share from 0 to 1 of `1%` or `0.01`. */
export function parseShare(text: string): number {
  const match = QUANTITY.exec(text);
  const unit = match?.[2];
  const share = Number(match?.[1]) * (unit === '%' ? 0.01 : unit === '' ? 1 : Number.NaN);
  if (!(share >= 0 && share <= 1)) {
    throw new DxpuError(
      'invalid_argument',
      `${JSON.stringify(text)} is not a share: write 0% to 100%, as in 1%, or a number from 0 to 1`,
    );
  }
  return share;
}

/** A whole number in [low, high]. Decimal or 0x hexadecimal. */
export function parseWhole(text: string, low: number, high: number): number {
  const value = /^(?:\d+|0x[0-9a-f]+)$/i.test(text) ? Number(text) : Number.NaN;
  if (!Number.isSafeInteger(value) || value < low || value > high) {
    throw new DxpuError(
      'invalid_argument',
      `${JSON.stringify(text)} is not a whole number from ${low} to ${high}`,
    );
  }
  return value;
}

/** `8.53 us`, `1.2 s`: three significant digits in the unit that suits. */
export function formatDuration(ns: number): string {
  if (ns >= 1e9) return `${significant(ns / 1e9)} s`;
  if (ns >= 1e6) return `${significant(ns / 1e6)} ms`;
  if (ns >= 1e3) return `${significant(ns / 1e3)} us`;
  return `${significant(ns)} ns`;
}

/** `64 MiB`, `1.5 GiB`. */
export function formatSize(bytes: number): string {
  for (const [unit, factor] of [
    ['GiB', 2 ** 30],
    ['MiB', 2 ** 20],
    ['KiB', 2 ** 10],
  ] as const) {
    if (bytes >= factor) return `${significant(bytes / factor)} ${unit}`;
  }
  return `${bytes} B`;
}

/** `100 Gbit/s`; nothing for 0, which stands for unknown. */
export function formatRate(bitsPerSecond: number): string {
  if (bitsPerSecond === 0) return '';
  return bitsPerSecond >= 1e9
    ? `${significant(bitsPerSecond / 1e9)} Gbit/s`
    : `${significant(bitsPerSecond / 1e6)} Mbit/s`;
}

function significant(value: number): string {
  return Number(value.toPrecision(3)).toString();
}
