/**
 * A YAML configuration file with its positions, so that every complaint names file, line and column,
 * the field, and what would be right.
 */
import { readFileSync } from 'node:fs';
import { isMap, isNode, isScalar, LineCounter, parseDocument, type Document } from 'yaml';
import type { z } from 'zod';
import { DxpuError } from '#base/errors';

export type FieldPath = readonly (string | number)[];

/** One thing wrong with a configuration. */
export interface ConfigProblem {
  readonly path: FieldPath;
  readonly message: string;
  /** The position is that of the key itself, not of its value. */
  readonly atKey?: boolean;
}

export class ConfigFile {
  readonly file: string;
  readonly #document: Document.Parsed;
  readonly #lines: LineCounter;

  /** Reads and parses. Fails with a `DxpuError` for a missing file or broken YAML. */
  constructor(file: string) {
    this.file = file;
    let text: string;
    try {
      text = readFileSync(file, 'utf8');
    } catch (error) {
      const code = (error as NodeJS.ErrnoException).code;
      const reason =
        code === 'ENOENT'
          ? 'there is no such file'
          : code === 'EACCES'
            ? 'this user may not read it'
            : code === 'EISDIR'
              ? 'it is a folder'
              : (error as Error).message;
      throw new DxpuError(
        DxpuError.from(error).code,
        `cannot read the configuration ${file}: ${reason}`,
        { cause: error },
      );
    }
    this.#lines = new LineCounter();
    this.#document = parseDocument(text, {
      lineCounter: this.#lines,
      prettyErrors: false,
      uniqueKeys: true,
      version: '1.2',
    });
    const [broken] = this.#document.errors;
    if (broken !== undefined) {
      const { line, col } = this.#lines.linePos(broken.pos[0]);
      throw new DxpuError('invalid_argument', `${file}:${line}:${col}: ${broken.message}`, {
        details: { file, line, column: col },
      });
    }
  }

  /** The configuration as `schema` has it. Fails with every problem found, one a line. */
  parse<T>(schema: z.ZodType<T>): T {
    let value: unknown;
    try {
      value = this.#document.toJS({ maxAliasCount: 100 });
    } catch (error) {
      throw new DxpuError('invalid_argument', `${this.file}: ${(error as Error).message}`);
    }
    const result = schema.safeParse(value ?? {}, { reportInput: true });
    if (result.success) return result.data;
    throw this.error(result.error.issues.flatMap((issue) => problemsOf(issue)));
  }

  /** An error that shows `problems` where they are in the file. */
  error(problems: readonly ConfigProblem[]): DxpuError {
    const placed = problems.map((problem) => {
      const { line, column } = this.#position(problem);
      const field = formatPath(problem.path);
      const message = `${field === '' ? '' : `${field}: `}${problem.message}`;
      return { file: this.file, line, column, field, message };
    });
    placed.sort((a, b) => a.line - b.line || a.column - b.column);
    return new DxpuError(
      'invalid_argument',
      placed.map((p) => `${p.file}:${p.line}:${p.column}: ${p.message}`).join('\n'),
      { details: { problems: placed } },
    );
  }

  /** Where a field is; where it is missing, the nearest thing around it. */
  #position(problem: ConfigProblem): { line: number; column: number } {
    let offset = 0;
    for (let depth = problem.path.length; depth >= 0; depth--) {
      const path = problem.path.slice(0, depth);
      const found =
        problem.atKey === true && depth === problem.path.length
          ? this.#keyOffset(path)
          : this.#valueOffset(path);
      if (found === undefined) continue;
      offset = found;
      break;
    }
    const { line, col } = this.#lines.linePos(offset);
    return { line: Math.max(1, line), column: Math.max(1, col) };
  }

  #valueOffset(path: FieldPath): number | undefined {
    const node = path.length === 0 ? this.#document.contents : this.#document.getIn(path, true);
    return isNode(node) ? node.range?.[0] : undefined;
  }

  #keyOffset(path: FieldPath): number | undefined {
    const parentPath = path.slice(0, -1);
    const parent =
      parentPath.length === 0 ? this.#document.contents : this.#document.getIn(parentPath, true);
    if (!isMap(parent)) return undefined;
    const key = path.at(-1);
    for (const pair of parent.items) {
      if (isScalar(pair.key) && pair.key.value === key) return pair.key.range?.[0];
    }
    return undefined;
  }
}

/** `slots[0].prefetchable.base` */
function formatPath(path: FieldPath): string {
  let text = '';
  for (const part of path) {
    if (typeof part === 'number') text += `[${part}]`;
    else text += text === '' ? part : `.${part}`;
  }
  return text;
}

function problemsOf(issue: z.core.$ZodIssue): ConfigProblem[] {
  const path = issue.path.map((part) => (typeof part === 'number' ? part : String(part)));
  switch (issue.code) {
    case 'unrecognized_keys':
      return issue.keys.map((key) => ({
        path: [...path, key],
        message: issue.message.replace('%', key),
        atKey: true,
      }));
    case 'invalid_type':
      return [
        {
          path,
          message:
            issue.input === undefined
              ? 'is missing'
              : `must be ${withArticle(issue.expected)}, not ${describe(issue.input)}`,
        },
      ];
    case 'invalid_value':
      return [
        {
          path,
          message:
            issue.input === undefined
              ? `is missing: one of ${issue.values.map(String).join(', ')}`
              : `must be one of ${issue.values.map(String).join(', ')}, not ${describe(issue.input)}`,
        },
      ];
    case 'invalid_union': {
      // The alternative that got furthest says best what is wrong.
      const inner = issue.errors.at(-1)?.[0];
      if (issue.input === undefined) return [{ path, message: 'is missing' }];
      return [{ path, message: inner?.code === 'custom' ? inner.message : issue.message }];
    }
    default:
      return [{ path, message: issue.message }];
  }
}

function withArticle(expected: string): string {
  const words: Readonly<Record<string, string>> = {
    int: 'a whole number',
    number: 'a number',
    string: 'a text',
    boolean: 'true or false',
    array: 'a list',
    object: 'a group of fields',
  };
  return words[expected] ?? expected;
}

function describe(value: unknown): string {
  if (value === null) return 'empty';
  if (Array.isArray(value)) return 'a list';
  if (typeof value === 'object') return 'a group of fields';
  return JSON.stringify(value);
}
