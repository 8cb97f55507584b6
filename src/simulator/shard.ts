/**
 * A study in parts. Part k of n has units k, k + n, k + 2n and so on of the study, so that all have about
 * as much to do; merged they are, byte for byte, what the whole study answers.
 */
import { DxpuError } from '#base/errors';
import { breakEvens } from './break-even.ts';
import {
  type FewestRow,
  type InputRow,
  type Prices,
  RESULT_SCHEMA,
  simulateResult,
  type SimulateResult,
  type SimulateRun,
  summarise,
} from './result.ts';

/** `part` counts from 1. */
export interface ShardOf {
  readonly part: number;
  readonly of: number;
}

export function inShard<T>(units: readonly T[], { part, of }: ShardOf): T[] {
  return units.filter((_, at) => at % of === part - 1);
}

export interface Answers {
  readonly inputs: readonly InputRow[];
  readonly runs: readonly SimulateRun[];
  /** `undefined`: not asked for. */
  readonly fewest: readonly FewestRow[] | undefined;
  readonly prices?: Prices | undefined;
}

/** The answer to a whole study, its fields in the order of the schema. */
export function wholeResult({ inputs, runs, fewest, prices }: Answers): SimulateResult {
  const breakEven = breakEvens(runs, fewest ?? []);
  return simulateResult.parse({
    schema: RESULT_SCHEMA,
    inputs,
    runs,
    summary: summarise(runs),
    ...(fewest === undefined ? {} : { fewest }),
    ...(prices === undefined ? {} : { prices }),
    ...(breakEven.length === 0 ? {} : { breakEven }),
  });
}

/** The answer of a part. `study` tells studies apart; the counts are those of the whole study. */
export function shardResult(
  { inputs, runs, fewest, prices }: Answers,
  shard: NonNullable<SimulateResult['shard']>,
): SimulateResult {
  return simulateResult.parse({
    schema: RESULT_SCHEMA,
    shard,
    inputs,
    runs,
    summary: [],
    ...(fewest === undefined ? {} : { fewest }),
    ...(prices === undefined ? {} : { prices }),
  });
}

export interface ShardFile {
  readonly name: string;
  readonly result: SimulateResult;
}

/** Reads `text`, the content of `name`. Throws `invalid_argument` naming the file. */
export function readShard(name: string, text: string): ShardFile {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw refused(name, 'it is no JSON, or only the beginning of it');
  }
  const read = simulateResult.safeParse(value);
  if (read.success) return { name, result: read.data };
  const [issue] = read.error.issues;
  const where = issue === undefined || issue.path.length === 0 ? '' : ` at ${issue.path.join('.')}`;
  throw refused(name, `it is no ${RESULT_SCHEMA}${where}: ${issue?.message ?? ''}`);
}

/**
 * All parts of one study, in any order, as the answer to the whole. Throws `invalid_argument` naming the
 * files that are no part, of another study, there twice or damaged, and the parts that are missing.
 */
export function mergeShards(files: readonly ShardFile[]): SimulateResult {
  const parts = new Map<number, ShardFile>();
  const [first] = files;
  const head = first && shardOf(first);
  if (first === undefined || head === undefined) {
    throw new DxpuError('invalid_argument', 'no part to merge');
  }
  for (const file of files) {
    const own = shardOf(file);
    if (own.study !== head.study || own.runs !== head.runs || own.fewest !== head.fewest) {
      throw refused(
        file.name,
        `it is of another study than ${first.name}: lists, options or versions of dxpu differ`,
      );
    }
    if (own.of !== head.of) {
      throw refused(
        file.name,
        `it is part ${own.part}/${own.of}, ${first.name} is one of ${head.of}`,
      );
    }
    const twin = parts.get(own.part);
    if (twin !== undefined) {
      throw refused(file.name, `it is part ${own.part}/${own.of}, as ${twin.name} is`);
    }
    checkCounts(file, own);
    parts.set(own.part, file);
  }
  const missing = Array.from({ length: head.of }, (_, at) => at + 1).filter((k) => !parts.has(k));
  if (missing.length > 0) {
    const shown = missing.slice(0, 10).map((part) => `${part}/${head.of}`);
    const more = missing.length > shown.length ? ` and ${missing.length - shown.length} more` : '';
    const verb = missing.length === 1 ? 'is' : 'are';
    throw new DxpuError('invalid_argument', `${shown.join(', ')}${more} ${verb} missing`, {
      details: { missing },
    });
  }
  return wholeResult({
    inputs: parts.get(1)?.result.inputs ?? [],
    prices: parts.get(1)?.result.prices,
    runs: dealt(parts, head.of, 0, head.runs, ({ runs }) => runs),
    fewest:
      head.fewest === null
        ? undefined
        : dealt(parts, head.of, head.runs, head.fewest, ({ fewest = [] }) => fewest),
  });
}

/** Units `from` to `from + count` of the study, each taken of the part that has it. */
function dealt<T>(
  parts: ReadonlyMap<number, ShardFile>,
  of: number,
  from: number,
  count: number,
  rowsOf: (result: SimulateResult) => readonly T[],
): T[] {
  const taken = new Map<number, number>();
  return Array.from({ length: count }, (_, i) => {
    const part = ((from + i) % of) + 1;
    const at = taken.get(part) ?? 0;
    taken.set(part, at + 1);
    const file = parts.get(part);
    return (file === undefined ? [] : rowsOf(file.result))[at] as T;
  });
}

function shardOf({ name, result }: ShardFile): NonNullable<SimulateResult['shard']> {
  const { shard } = result;
  if (shard === undefined) throw refused(name, 'it is a whole answer, not a part of one');
  if (shard.part > shard.of) throw refused(name, `there is no part ${shard.part}/${shard.of}`);
  return shard;
}

function checkCounts(
  { name, result }: ShardFile,
  { part, of, runs, fewest }: NonNullable<SimulateResult['shard']>,
): void {
  const units = [
    ...Array.from({ length: runs }, () => 'run'),
    ...Array(fewest ?? 0).fill('fewest'),
  ];
  const mine = inShard(units, { part, of });
  const want = mine.filter((kind) => kind === 'run').length;
  const rest = mine.length - want;
  const has = result.runs.length;
  if (has !== want) throw refused(name, `it is damaged: ${has} runs, of a part of ${want}`);
  const found = result.fewest?.length ?? 0;
  if (found !== rest) throw refused(name, `it is damaged: ${found} fewest, of a part of ${rest}`);
}

function refused(name: string, what: string): DxpuError {
  return new DxpuError('invalid_argument', `${name} cannot be merged: ${what}`, {
    details: { file: name },
  });
}
