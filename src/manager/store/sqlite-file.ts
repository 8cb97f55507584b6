/**
 * The file of a `SqliteStore`: made whole or not at all, opened by one process at a time, and refused
 * where it is not what it should be. Nothing here reads the file but SQLite: a file descriptor of this
 * process that is closed would take the lock with it (POSIX advisory locks, fcntl(2)).
 */
import { randomUUID } from 'node:crypto';
import {
  accessSync,
  closeSync,
  constants,
  fsyncSync,
  linkSync,
  openSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs';
import * as path from 'node:path';
import Sqlite, { type Database } from 'better-sqlite3';
import { DxpuError } from '#base/errors';
import { errnoReason } from '#base/make-folder';
import { storeError } from './sqlite-errors.ts';
import { ownerOf } from './sqlite-owner.ts';
import { migrate, refuseOthers } from './sqlite-schema.ts';

/** Long enough for a start that gives up to let go, short enough to count as at once. */
const BUSY_TIMEOUT_MS = 100;
const SMALLEST_PAGE_BYTES = 512;
const CACHE_KIB = 64 * 1024;
const WAL_LIMIT_BYTES = 64 * 2 ** 20;
/** The log is left out: it may be of any size, and a damaged entry shows when it is read. */
const CHECKED_TABLES = [
  'about',
  'counters',
  'box',
  'box_slot',
  'host',
  'host_slot',
  'path',
  'binding',
  'request',
];

/**
 * Opens `file`, which is made where it is not there, and keeps it locked until the connection is
 * closed. `version` is written into it.
 */
export async function openFile(file: string, version: string): Promise<Database> {
  checkAccess(file);
  if (statSync(file, { throwIfNoEntry: false }) === undefined) await createFile(file, version);
  const db = lockedFile(file);
  try {
    refuseOthers(db, file, version);
    db.pragma('journal_mode = WAL');
    db.pragma('synchronous = FULL');
    db.pragma('foreign_keys = ON');
    db.pragma(`cache_size = -${CACHE_KIB}`);
    db.pragma(`journal_size_limit = ${WAL_LIMIT_BYTES}`);
    checkWhole(db, file);
    await migrate(db, version);
    return db;
  } catch (error) {
    db.close();
    throw storeError(file, error);
  }
}

function checkAccess(file: string): void {
  const folder = path.dirname(file);
  const fail = (what: string, error: unknown, wayOut: string): never => {
    throw new DxpuError(DxpuError.from(error).code, `${what}: ${errnoReason(error)}. ${wayOut}`, {
      details: { file },
      cause: error,
    });
  };
  try {
    // By its slash, anything but a folder is ENOTDIR (path_resolution(7)).
    statSync(`${folder}/`);
  } catch (error) {
    fail(`the manager's folder ${folder} cannot be used`, error, 'Make it, or name another one.');
  }
  try {
    accessSync(folder, constants.R_OK | constants.W_OK | constants.X_OK);
  } catch (error) {
    fail(
      `the manager's folder ${folder} cannot be written`,
      error,
      'Give it to the user the manager runs as, or name another one.',
    );
  }
  const stat = statSync(file, { throwIfNoEntry: false });
  if (stat === undefined) {
    const rest = statSync(`${file}-wal`, { throwIfNoEntry: false });
    if (rest === undefined) return;
    throw new DxpuError(
      'data_loss',
      `${file} is gone, and ${file}-wal, which belongs to it, is there. Restore the folder from a copy; ` +
        'to begin a new pool, move it away.',
      { details: { file } },
    );
  }
  if (!stat.isFile()) {
    throw new DxpuError(
      'failed_precondition',
      `${file} is there and is not a file. Move it away, or name another folder.`,
      { details: { file } },
    );
  }
  // Made whole, it is never empty: an empty one is what was left of a pool.
  if (stat.size === 0) throw damaged(file, 'it is empty');
  // SQLite takes a file of less than its smallest page for an empty database.
  if (stat.size < SMALLEST_PAGE_BYTES) throw noDatabase(file, undefined);
  try {
    accessSync(file, constants.R_OK | constants.W_OK);
  } catch (error) {
    fail(`${file} cannot be written`, error, 'Give it to the user the manager runs as.');
  }
}

/** A new pool's file appears in one step, so that an empty or half one is never taken for a new pool. */
async function createFile(file: string, version: string): Promise<void> {
  const image = new Sqlite(':memory:');
  let bytes: Buffer;
  try {
    await migrate(image, version);
    bytes = image.serialize();
  } finally {
    image.close();
  }
  const temporary = `${file}.${randomUUID()}`;
  try {
    const descriptor = openSync(temporary, 'wx', 0o600);
    try {
      let written = 0;
      while (written < bytes.length) written += writeSync(descriptor, bytes, written);
      fsyncSync(descriptor);
    } finally {
      closeSync(descriptor);
    }
    linkSync(temporary, file);
    syncFolder(path.dirname(file));
  } catch (error) {
    // Another manager was faster: its file is as good.
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') {
      throw new DxpuError(
        DxpuError.from(error).code,
        `${file} cannot be made: ${errnoReason(error)}`,
        { details: { file }, cause: error },
      );
    }
  } finally {
    rmSync(temporary, { force: true });
  }
}

function syncFolder(folder: string): void {
  const descriptor = openSync(folder, 'r');
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

function lockedFile(file: string): Database {
  let db: Database | undefined;
  try {
    db = new Sqlite(file, { fileMustExist: true, timeout: BUSY_TIMEOUT_MS });
    db.pragma('locking_mode = EXCLUSIVE');
    db.exec('BEGIN EXCLUSIVE; COMMIT');
    return db;
  } catch (error) {
    db?.close();
    throw lockError(file, error);
  }
}

function lockError(file: string, error: unknown): unknown {
  const code = error instanceof Sqlite.SqliteError ? error.code : '';
  if (code.startsWith('SQLITE_BUSY')) {
    const owner = ownerOf(file);
    const who = owner === undefined ? '' : ` (process ${owner})`;
    return new DxpuError(
      'already_exists',
      `another manager has ${file} open${who}. Stop it first, or name another folder.`,
      { details: owner === undefined ? { file } : { file, process: owner }, cause: error },
    );
  }
  if (code.startsWith('SQLITE_NOTADB')) return noDatabase(file, error);
  return code.startsWith('SQLITE_CORRUPT')
    ? damaged(file, (error as Error).message)
    : storeError(file, error);
}

/** Fails with `data_loss` unless the file has its full length and every table but the log is sound. */
function checkWhole(db: Database, file: string): void {
  try {
    db.pragma('wal_checkpoint(TRUNCATE)');
    const pages = Number(db.pragma('page_count', { simple: true }));
    const pageBytes = Number(db.pragma('page_size', { simple: true }));
    const sizeBytes = statSync(file).size;
    if (sizeBytes < pages * pageBytes) {
      throw damaged(file, `${pages * pageBytes - sizeBytes} bytes are missing at its end`);
    }
    for (const table of CHECKED_TABLES) {
      const found = db.pragma(`integrity_check(${table})`, { simple: true });
      if (found !== 'ok') throw damaged(file, `table ${table}: ${String(found)}`);
    }
    const counted = db.prepare('SELECT position FROM counters').pluck().get();
    const logged = db.prepare('SELECT coalesce(max(position), 0) FROM log').pluck().get();
    if (counted !== logged) {
      throw damaged(file, `its log ends at ${String(logged)}, not at ${String(counted)}`);
    }
  } catch (error) {
    const isDamage = error instanceof Sqlite.SqliteError && error.code.startsWith('SQLITE_CORRUPT');
    throw isDamage ? damaged(file, error.message) : error;
  }
}

function noDatabase(file: string, cause: unknown): DxpuError {
  return new DxpuError(
    'data_loss',
    `${file} is not a database. Move it away to begin a new pool, or restore it from a copy.`,
    { details: { file }, cause },
  );
}

function damaged(file: string, what: string): DxpuError {
  return new DxpuError(
    'data_loss',
    `${file} is damaged: ${what}. Restore its folder from a copy; to begin a new pool, move it away.`,
    { details: { file } },
  );
}
