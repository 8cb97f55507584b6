/**
 * Makes folders, and says what is wrong where it cannot. Not by Node's recursive `mkdir`, which never
 * returns on file systems that answer ENOENT to the making of a folder (procfs).
 */
import { mkdirSync, rmdirSync, statSync } from 'node:fs';
import * as path from 'node:path';
import { DxpuError } from './errors.ts';

const REASONS: Readonly<Record<string, string>> = {
  EACCES: 'this user may not',
  EPERM: 'this user may not',
  EROFS: 'the file system is read-only',
  ENOSPC: 'no space is left on the device',
  EDQUOT: "the user's quota is used up",
  ENOTDIR: 'a part of the path is not a folder',
  EISDIR: 'it is a folder',
  ENAMETOOLONG: 'the name is too long',
  ELOOP: 'its symbolic links lead in a circle',
};

/** Why a system call on a file failed, in words. */
export function errnoReason(error: unknown): string {
  const { code = '' } = error as NodeJS.ErrnoException;
  return REASONS[code] ?? (error instanceof Error ? error.message : String(error));
}

/**
 * Makes `folder` and what is missing above it, for this user alone. Returns those it made, the
 * outermost first. Fails with a `DxpuError` that names the level that could not be made.
 */
export function makeFolder(folder: string): string[] {
  const missing: string[] = [];
  let level = path.resolve(folder);
  while (!isFolder(level)) {
    missing.unshift(level);
    level = path.dirname(level);
  }
  const made: string[] = [];
  for (const next of missing) {
    try {
      mkdirSync(next, { mode: 0o700 });
      made.push(next);
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      // Somebody else was faster.
      if (code === 'EEXIST' && isFolder(next)) continue;
      removeFolders(made);
      const reason =
        code === 'ENOENT' ? `${path.dirname(next)} takes no folders` : errnoReason(error);
      throw new DxpuError(
        code === 'ENOENT' ? 'failed_precondition' : DxpuError.from(error).code,
        `cannot make the folder ${next}: ${reason}`,
        { details: { folder: next }, cause: error },
      );
    }
  }
  return made;
}

/** Removes those of `folders` that are empty, innermost first. Never fails. */
export function removeFolders(folders: readonly string[]): void {
  for (const folder of [...folders].reverse()) {
    try {
      rmdirSync(folder);
    } catch {
      return;
    }
  }
}

/** False where there is nothing. Fails where something else is. */
function isFolder(name: string): boolean {
  let isThere: boolean;
  try {
    const stat = statSync(name, { throwIfNoEntry: false });
    if (stat === undefined) return false;
    isThere = stat.isDirectory();
  } catch (error) {
    // A file above it: the loop finds that one next and names it.
    if ((error as NodeJS.ErrnoException).code === 'ENOTDIR') return false;
    throw new DxpuError(
      DxpuError.from(error).code,
      `cannot look at ${name}: ${errnoReason(error)}`,
      { details: { folder: name }, cause: error },
    );
  }
  if (isThere) return true;
  throw new DxpuError('already_exists', `${name} is there and is not a folder`, {
    details: { folder: name },
  });
}
