/** What the options of `dxpu simulate` take: lists, ranges, names with a value. */
import { Option } from 'commander';
import { DxpuError } from '#base/errors';
import { checked } from './program-options.ts';

const MOST_SEEDS = 10_000;

function bad(message: string): DxpuError {
  return new DxpuError('invalid_argument', message);
}

/** Values between commas, each once. */
export function listOf<T>(parse: (text: string) => T): (text: string) => readonly T[] {
  return checked((text) => [...new Set(text.split(',').map((word) => parse(word.trim())))]);
}

/** Some of `names`, between commas; the shell completes one. */
export function namesOption(flags: string, text: string, names: readonly string[]): Option {
  return new Option(flags, text).choices(names).argParser(
    listOf((word) => {
      if (names.includes(word)) return word;
      throw bad(`${JSON.stringify(word)} is none of ${names.join(', ')}.`);
    }),
  );
}

/** Numbers between commas, `low` to `high`, whole ones unless told otherwise. */
export function numbersOption(
  flags: string,
  text: string,
  usual: number,
  [low, high]: readonly [number, number],
  isWhole = true,
): Option {
  return new Option(flags, text).default([usual], String(usual)).argParser(
    listOf((word) => {
      const value = plainNumber(word);
      if (value >= low && value <= high && (!isWhole || Number.isSafeInteger(value))) return value;
      const what = isWhole ? 'a whole number' : 'a number';
      throw bad(`${JSON.stringify(word)} is not ${what} from ${low} to ${high}.`);
    }),
  );
}

/** `42`, `42..51`, and several between commas. */
export function parseSeeds(text: string): readonly number[] {
  const seeds = text.split(',').flatMap((word) => {
    const match = /^\s*(\d+)(?:\.\.(\d+))?\s*$/.exec(word);
    const low = Number(match?.[1]);
    const high = Number(match?.[2] ?? match?.[1]);
    if (match === null || !Number.isSafeInteger(high) || low > high) {
      throw bad(`${JSON.stringify(word)} is no seed and no range of seeds: as in 42 or 42..51.`);
    }
    if (high - low >= MOST_SEEDS) throw bad(`More than ${MOST_SEEDS} seeds: split them up.`);
    return Array.from({ length: high - low + 1 }, (_, at) => low + at);
  });
  return [...new Set(seeds)];
}

/** NaN for anything but a plain number. */
function plainNumber(text: string): number {
  return /^\d+(?:\.\d+)?$/.test(text) ? Number(text) : Number.NaN;
}

export function parseShard(text: string): { part: number; of: number } {
  const match = /^(\d+)\/(\d+)$/.exec(text);
  const [part, of] = [Number(match?.[1]), Number(match?.[2])];
  if (part >= 1 && part <= of && of <= 1_000_000) return { part, of };
  throw bad(`${JSON.stringify(text)} is no part of a whole: as in 3/40, from 1/40 to 40/40.`);
}

/** `NAME=VALUE`; a name may have `=` itself. */
export function parsePair(text: string): { name: string; value: string } {
  const at = text.lastIndexOf('=');
  if (at > 0 && at < text.length - 1) return { name: text.slice(0, at), value: text.slice(at + 1) };
  throw bad(`${JSON.stringify(text)} is not NAME=VALUE, as in vgg16=4.5.`);
}

export function parseOverheadOf(text: string): { name: string; pct: number } {
  const { name, value } = parsePair(text);
  const pct = plainNumber(value);
  if (pct <= 10_000) return { name, pct };
  throw bad(`${JSON.stringify(value)} is no overhead in percent, as in 4.5.`);
}

/** `gpu`, `gpu:MODEL`, `server`, `box` or `port`. */
export function parsePrice(text: string): { name: string; amount: number } {
  const { name, value } = parsePair(text);
  if (!/^(?:gpu|gpu:.+|server|box|port)$/.test(name)) {
    throw bad(`${JSON.stringify(name)} has no price: gpu, gpu:MODEL, server, box and port have.`);
  }
  const amount = plainNumber(value);
  if (amount <= 1e12) return { name, amount };
  throw bad(`${JSON.stringify(value)} is no price, as in 9000 or 0.75.`);
}
