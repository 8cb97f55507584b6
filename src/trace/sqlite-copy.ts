/**
 * Reading an SQLite file can write beside it: with a write-ahead log SQLite makes `-wal` and `-shm`, and
 * a journal that a writer left behind is rolled back into the file first. Such a file is read as a copy
 * in a temporary folder, with what lies beside it, so that the folder of the trace stays as it is.
 */
import { chmodSync, constants, copyFileSync, mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import * as path from 'node:path';
import { DxpuError } from '#base/errors';

/** What a writer that did not finish leaves: changes that the file does not have yet, or has in part. */
const BESIDE = ['-wal', '-journal'] as const;
/** In the header: the format version for reading. */
const READ_VERSION_AT = 19;
const READ_VERSION_WAL = 2;

export interface SqliteCopy {
  readonly file: string;
  /** Of the copy and what was copied with it. */
  readonly bytes: number;
  /** Once SQLite has all open, or at the end; may be called again. */
  remove(): void;
}

/**
 * The copy to read in place of `file`, whose first bytes are `header`; undefined where reading `file`
 * itself writes nothing. Throws a `DxpuError` where there is no room for one.
 */
export function sqliteCopy(file: string, header: Uint8Array): SqliteCopy | undefined {
  const beside = BESIDE.filter((ending) => sizeOf(`${file}${ending}`) > 0);
  if (header[READ_VERSION_AT] !== READ_VERSION_WAL && beside.length === 0) return undefined;
  let folder: string | undefined;
  const remove = (): void => {
    if (folder !== undefined) rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
  };
  try {
    folder = mkdtempSync(path.join(tmpdir(), 'dxpu-sqlite-'));
    const copy = path.join(folder, 'trace.sqlite');
    let bytes = 0;
    for (const ending of ['', ...beside]) {
      copyFileSync(`${file}${ending}`, `${copy}${ending}`, constants.COPYFILE_FICLONE);
      // The mode is copied too, and the trace may be read-only.
      chmodSync(`${copy}${ending}`, 0o600);
      bytes += sizeOf(`${copy}${ending}`);
    }
    return { file: copy, bytes, remove };
  } catch (error) {
    remove();
    const { code, message } = DxpuError.from(error);
    throw new DxpuError(
      code,
      `${file}: has a write-ahead log or a journal, so that a copy of it is read, and making one in ${tmpdir()} failed: ${message}. ` +
        'Set TMPDIR to a folder with room for it, or export the report again: nsys export --type sqlite REPORT.nsys-rep',
      { details: { file }, cause: error },
    );
  }
}

/** 0 where there is none. */
function sizeOf(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.size ?? 0;
}
