/**
 * The text of a configuration file, before YAML is made of it: what is too large, not text, or nested
 * so deep that a parser would fall over it is refused here, with its place.
 */
import { isUtf8 } from 'node:buffer';
import { closeSync, openSync, readSync } from 'node:fs';
import { type CST, Lexer } from 'yaml';
import { DxpuError } from '#base/errors';

/** A configuration of some thousand slots has a tenth of this. */
const MAX_CONFIG_BYTES = 2 ** 20;
/** The deepest configuration there is has four levels. */
export const MAX_CONFIG_DEPTH = 32;

/** Reads a file that must be text in UTF-8. Fails with a `DxpuError` that names it. */
export function readConfigText(file: string): string {
  let bytes: Buffer;
  try {
    bytes = readAtMost(file, MAX_CONFIG_BYTES + 1);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const reason = READ_FAILURES[code ?? ''] ?? (error as Error).message;
    throw new DxpuError(
      DxpuError.from(error).code,
      `cannot read the configuration ${file}: ${reason}`,
      { cause: error },
    );
  }
  if (bytes.length > MAX_CONFIG_BYTES) {
    throw new DxpuError(
      'invalid_argument',
      `${file}: more than 1 MiB, which no configuration needs: is it the right file?`,
    );
  }
  if ((bytes[0] === 0xff && bytes[1] === 0xfe) || (bytes[0] === 0xfe && bytes[1] === 0xff)) {
    throw new DxpuError('invalid_argument', `${file}:1:1: this is UTF-16; save it as UTF-8`);
  }
  const text = bytes.toString('utf8');
  if (!isUtf8(bytes)) {
    throw notText(file, text, firstBroken(bytes, text), 'a byte that is not UTF-8');
  }
  const control = text.search(FORBIDDEN);
  if (control >= 0) {
    const code = text.charCodeAt(control).toString(16).padStart(2, '0');
    throw notText(file, text, control, `the control character 0x${code}`);
  }
  return text;
}

const READ_FAILURES: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file',
  ENOTDIR: 'a part of its path is not a folder',
  EACCES: 'this user may not read it',
  EISDIR: 'it is a folder',
};

/** Controls but tab and line ends (YAML 1.2.2, 5.1). */
const FORBIDDEN = /[^\P{Cc}\t\n\r\x85]/u;

/** A pipe or a device may never end: no more is read than is wanted. */
function readAtMost(file: string, limit: number): Buffer {
  const handle = openSync(file, 'r');
  try {
    const bytes = Buffer.alloc(limit);
    let length = 0;
    while (length < limit) {
      const count = readSync(handle, bytes, length, limit - length, null);
      if (count === 0) break;
      length += count;
    }
    return bytes.subarray(0, length);
  } finally {
    closeSync(handle);
  }
}

/** Index into the text of the first replacement character that the bytes do not have themselves. */
function firstBroken(bytes: Buffer, text: string): number {
  let at = text.indexOf('\ufffd');
  let offset = Buffer.byteLength(text.slice(0, at));
  while (at >= 0 && bytes.subarray(offset, offset + 3).toString('hex') === 'efbfbd') {
    const next = text.indexOf('\ufffd', at + 1);
    offset += Buffer.byteLength(text.slice(at, next));
    at = next;
  }
  return Math.max(0, at);
}

function notText(file: string, text: string, at: number, what: string): DxpuError {
  const before = text.slice(0, at).split('\n');
  const line = before.length;
  const column = (before.at(-1)?.length ?? 0) + 1;
  return new DxpuError(
    'invalid_argument',
    `${file}:${line}:${column}: ${what}: a configuration is text in UTF-8`,
    { details: { file, line, column } },
  );
}

/**
 * Offset of the first bracket or dash that opens more than `MAX_CONFIG_DEPTH` levels, or −1. Of the
 * text alone, so that no parser has to survive it.
 */
export function tooDeepInText(text: string): number {
  const dashes = TOO_MANY_DASHES.exec(text);
  if (dashes !== null) return dashes.index;
  let depth = 0;
  let offset = 0;
  for (const lexeme of new Lexer().lex(text)) {
    if (lexeme === '[' || lexeme === '{') depth++;
    else if (lexeme === ']' || lexeme === '}') depth--;
    if (depth > MAX_CONFIG_DEPTH) return offset;
    // The lexer's own marks (document start, scalar) are not in the text.
    if (!LEXER_MARKS.has(lexeme)) offset += lexeme.length;
  }
  return -1;
}

const TOO_MANY_DASHES = new RegExp(`^[ ]*(?:[-?] +){${MAX_CONFIG_DEPTH + 1}}`, 'm');
const LEXER_MARKS = new Set(['\u0002', '\u0018', '\u001f']);

/** As `tooDeepInText`, of what the parser has made of it: levels by indentation count too. */
export function tooDeepInTokens(tokens: readonly CST.Token[]): number {
  const open: { token: CST.Token; depth: number }[] = tokens.map((token) => ({ token, depth: 0 }));
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const { token, depth } = next;
    if (depth > MAX_CONFIG_DEPTH) return 'offset' in token ? token.offset : 0;
    if ('items' in token) {
      for (const { key, value } of token.items) {
        if (key) open.push({ token: key, depth: depth + 1 });
        if (value) open.push({ token: value, depth: depth + 1 });
      }
    } else if (token.type === 'document' && token.value !== undefined) {
      open.push({ token: token.value, depth });
    }
  }
  return -1;
}
