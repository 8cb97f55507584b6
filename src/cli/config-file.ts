/**
 * A YAML configuration file with its positions, so that every complaint names file, line and column,
 * the field, and what would be right.
 */
import * as nodePath from 'node:path';
import {
  Composer,
  isAlias,
  isMap,
  isNode,
  isScalar,
  LineCounter,
  Parser,
  visit,
  type Document,
  type YAMLError,
} from 'yaml';
import type { z } from 'zod';
import { DxpuError } from '#base/errors';
import type { CredentialFiles } from '#identity/tls-identity';
import { MAX_CONFIG_DEPTH, readConfigText, tooDeepInText, tooDeepInTokens } from './config-text.ts';

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
    const text = readConfigText(file);
    this.#lines = new LineCounter();
    this.#document = this.#compose(text);
    for (const problem of [...this.#document.errors, ...this.#document.warnings]) {
      throw this.#errorAt(problem.pos[0], yamlMessage(problem, text));
    }
    visit(this.#document, {
      Pair: (_key, pair) => {
        if (isScalar(pair.key) || isAlias(pair.key)) return;
        const at = isNode(pair.key) ? (pair.key.range?.[0] ?? 0) : 0;
        throw this.#errorAt(at, 'the name of a field must be plain text, not a list or a group');
      },
      // Those that YAML knows by itself; of others the parser has complained.
      Node: (_key, { tag, range }) => {
        if (tag === undefined) return;
        const before = /(!\S*)\s*$/.exec(text.slice(0, range?.[0]));
        const at = before?.index ?? range?.[0] ?? 0;
        throw this.#errorAt(at, `${shortened(before?.[1] ?? tag)}: ${NO_TAGS}`);
      },
    });
  }

  #compose(text: string): Document.Parsed {
    const textDepth = tooDeepInText(text);
    // The parser tells the counter where lines begin; without it there are none yet.
    if (textDepth >= 0) {
      for (let end = -1; ; ) {
        this.#lines.addNewLine(end + 1);
        end = text.indexOf('\n', end + 1);
        if (end < 0) break;
      }
      throw this.#errorAt(textDepth, TOO_DEEP);
    }
    const tokens = [...new Parser(this.#lines.addNewLine).parse(text)];
    const tokenDepth = tooDeepInTokens(tokens);
    if (tokenDepth >= 0) throw this.#errorAt(tokenDepth, TOO_DEEP);
    const composer = new Composer<never>({
      lineCounter: this.#lines,
      prettyErrors: false,
      uniqueKeys: true,
      version: '1.2',
    });
    const [first, second] = composer.compose(tokens, true, text.length);
    if (second !== undefined) {
      throw this.#errorAt(second.range[0], 'a second document begins here: one file is one');
    }
    // With `forceDoc` there is always one.
    return first as Document.Parsed;
  }

  #errorAt(offset: number, message: string): DxpuError {
    const { line, col } = this.#lines.linePos(offset);
    const at = { line: Math.max(1, line), column: Math.max(1, col) };
    return new DxpuError('invalid_argument', `${this.file}:${at.line}:${at.column}: ${message}`, {
      details: { file: this.file, ...at },
    });
  }

  /** Where a file named in it is: names are from the folder of the configuration. */
  pathOf(name: string): string {
    return nodePath.resolve(nodePath.dirname(this.file), name);
  }

  credentialFiles({ ca, cert, key }: CredentialFiles): CredentialFiles {
    return { ca: this.pathOf(ca), cert: this.pathOf(cert), key: this.pathOf(key) };
  }

  /** Whether the file has something at `path`. */
  has(path: FieldPath): boolean {
    return this.#document.hasIn(path);
  }

  /** The line a field is in. */
  line(path: FieldPath): number {
    return this.#position({ path, message: '' }).line;
  }

  /** The configuration as `schema` has it. Fails with every problem found, one a line. */
  parse<T>(schema: z.ZodType<T>): T {
    let value: unknown;
    try {
      value = this.#document.toJS({ maxAliasCount: 100 });
    } catch (error) {
      // What is left to fail: aliases that unfold to more than anybody meant.
      throw new DxpuError(
        'invalid_argument',
        `${this.file}: its aliases (*name) unfold to too much: write it out instead`,
        { cause: error },
      );
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
    const shown = placed
      .slice(0, MAX_SHOWN_PROBLEMS)
      .map((p) => `${p.file}:${p.line}:${p.column}: ${p.message}`);
    if (placed.length > shown.length) shown.push(`and ${placed.length - shown.length} more`);
    return new DxpuError('invalid_argument', shown.join('\n'), {
      details: { problems: placed },
    });
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

const MAX_SHOWN_PROBLEMS = 20;
const NO_TAGS = 'a configuration has no tags';
const TOO_DEEP = `more than ${MAX_CONFIG_DEPTH} levels of lists and groups: no configuration needs them`;

/** The library's words where they serve, ours where they are for its programmers. */
function yamlMessage(problem: YAMLError, text: string): string {
  const source = shortened(text.slice(...problem.pos).trim());
  switch (problem.code) {
    case 'TAG_RESOLVE_FAILED':
      return `${source}: ${NO_TAGS}`;
    case 'BAD_DIRECTIVE':
      return `${source}: a configuration has no directives`;
    default:
      return shortened(problem.message, 200);
  }
}

const MAX_QUOTED = 60;

/** `text`, or its beginning where it is long. */
export function shortened(text: string, limit = MAX_QUOTED): string {
  return text.length <= limit ? text : `${text.slice(0, limit)}…`;
}

/** `slots[0].prefetchable.base` */
function formatPath(path: FieldPath): string {
  let text = '';
  for (const part of path) {
    if (typeof part === 'number') text += `[${part}]`;
    else text += text === '' ? shortened(part) : `.${shortened(part)}`;
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
    case 'too_small':
    case 'too_big':
      return [{ path, message: ownWords(issue) }];
    default:
      return [{ path, message: issue.message }];
  }
}

/** Of a bound: the message its field has for it, or ours where it has none. */
function ownWords(issue: z.core.$ZodIssueTooSmall | z.core.$ZodIssueTooBig): string {
  if (issue.origin !== 'string' || !/^Too (?:small|big): /.test(issue.message)) {
    return issue.message;
  }
  if (issue.code === 'too_big') return `must have at most ${issue.maximum} characters`;
  return issue.minimum === 1
    ? 'must not be empty'
    : `must have at least ${issue.minimum} characters`;
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
  return shortened(JSON.stringify(value));
}
