/** Files that are read whole, and written whole or not at all, never over something that is read. */
import { constants as limits } from 'node:buffer';
import {
  accessSync,
  closeSync,
  constants,
  openSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import * as path from 'node:path';
import { gunzipSync } from 'node:zlib';
import { DxpuError } from '#base/errors';
import { shortPath } from '#base/short-path';
import { fileProblem } from './file-problem.ts';

const BYTES_PER_MIB = 1024 * 1024;

/**
 * Fails where `file` could not be written once the work is done: it is a folder, its folder is missing or
 * closed to us, or it is one of `inputs`, under whatever name.
 */
export function checkTarget(file: string, inputs: readonly string[]): void {
  const folder = path.dirname(path.resolve(file));
  try {
    if (!statSync(folder).isDirectory()) throw Object.assign(new Error(), { code: 'ENOTDIR' });
    accessSync(folder, constants.W_OK | constants.X_OK);
  } catch (error) {
    throw fileProblem('write', file, error);
  }
  const existing = realPath(file);
  if (existing === undefined) return;
  if (inputs.some((input) => realPath(input) === existing)) {
    throw new DxpuError('invalid_argument', `${file} is one of the inputs: give another name`, {
      details: { file },
    });
  }
  const found = statSync(existing);
  if (found.isFile()) return;
  const what = found.isDirectory() ? 'a folder' : 'no regular file';
  throw new DxpuError('invalid_argument', `cannot write ${file}: it is ${what}`, {
    details: { file },
  });
}

function realPath(file: string): string | undefined {
  try {
    return realpathSync(file);
  } catch {
    return undefined;
  }
}

/** The content of `file`. */
export function readWhole(file: string): Buffer {
  try {
    return readFileSync(file);
  } catch (error) {
    throw fileProblem('read', file, error);
  }
}

/** The content of `file`; what a gzip file holds. Throws `DxpuError` for a damaged one. */
export function readUnzipped(file: string): Buffer {
  const bytes = readWhole(file);
  if (bytes[0] !== 0x1f || bytes[1] !== 0x8b) return bytes;
  try {
    return gunzipSync(bytes);
  } catch (error) {
    const what = error instanceof Error ? error.message : String(error);
    throw new DxpuError(
      'invalid_argument',
      `cannot read ${shortPath(file)}: as gzip it is damaged, or too large (${what}): give it unpacked`,
      { details: { file }, cause: error },
    );
  }
}

/** The content of `file` as text. `wayOut` is what to do about a file that is too large for it. */
export function readWholeText(file: string, wayOut: string): string {
  return wholeText(file, readWhole(file), wayOut);
}

/** `bytes` as text, which were read from `file`. */
export function wholeText(file: string, bytes: Buffer, wayOut: string): string {
  try {
    return bytes.toString();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_STRING_TOO_LONG') throw error;
    const [size, most] = [bytes.length, limits.MAX_STRING_LENGTH].map((one) =>
      Math.floor(one / BYTES_PER_MIB),
    );
    throw new DxpuError(
      'resource_exhausted',
      `cannot read ${shortPath(file)}: it has ${size} MiB, of at most ${most}: ${wayOut}`,
      { details: { file }, cause: error },
    );
  }
}

/** Replaces `file` in one step. What was there stays when it fails. */
export function writeWhole(file: string, content: string | Uint8Array): void {
  const temporary = temporaryOf(file);
  try {
    writeFileSync(temporary, content, { flag: 'wx' });
    renameSync(temporary, file);
  } catch (error) {
    rmSync(temporary, { force: true });
    throw fileProblem('write', file, error);
  }
}

/** The same in all threads of a process. */
function temporaryOf(file: string): string {
  return path.join(path.dirname(file), `.${path.basename(file).slice(0, 200)}.${process.pid}.tmp`);
}

/**
 * A file that is written bit by bit, and is not there before `keepPending` is called for it. That may be
 * in another thread, and after this one was ended; so may be `dropPending`, which leaves nothing of it.
 */
export class PendingFile {
  readonly #file: string;
  readonly #fd: number;

  /** Errors: those of the file system, naming the file. */
  constructor(file: string) {
    this.#file = file;
    try {
      const temporary = temporaryOf(file);
      // One of a process of the same number that was killed; nor does what lies there lead elsewhere.
      rmSync(temporary, { force: true });
      this.#fd = openSync(temporary, 'wx');
    } catch (error) {
      throw fileProblem('write', file, error);
    }
  }

  add(content: string | Uint8Array): void {
    try {
      writeFileSync(this.#fd, content);
    } catch (error) {
      this.end();
      dropPending(this.#file);
      throw fileProblem('write', this.#file, error);
    }
  }

  /** As they come: together they may be longer than a string can be. */
  addPieces(pieces: Iterable<string>): void {
    let waiting = '';
    for (const piece of pieces) {
      waiting += piece;
      if (waiting.length < BYTES_PER_MIB) continue;
      this.add(waiting);
      waiting = '';
    }
    this.add(waiting);
  }

  end(): void {
    closeSync(this.#fd);
  }
}

/** Puts a file that was written as a `PendingFile` in its place, in one step. */
export function keepPending(file: string): void {
  try {
    renameSync(temporaryOf(file), file);
  } catch (error) {
    dropPending(file);
    throw fileProblem('write', file, error);
  }
}

export function dropPending(file: string): void {
  rmSync(temporaryOf(file), { force: true });
}
