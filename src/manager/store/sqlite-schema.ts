import type { Database } from 'better-sqlite3';
import type { Migration } from 'kysely';
import { DxpuError } from '#base/errors';
import { MIGRATIONS } from './migrations/list.ts';

/** 'dxpu' in ASCII, as the first migration sets it. */
const APPLICATION_ID = 0x64787075;
const MIGRATION_TABLE = 'migration';

/**
 * Fails with `failed_precondition` where the file is another program's or a newer version's; reads
 * alone.
 */
export function refuseOthers(db: Database, file: string, version: string): void {
  if (db.pragma('application_id', { simple: true }) !== APPLICATION_ID) {
    throw new DxpuError(
      'failed_precondition',
      `${file} is a database of another program. Name another folder, or move it away.`,
      { details: { file } },
    );
  }
  const unknown = migrationsIn(db).filter((name) => !(name in MIGRATIONS));
  if (unknown.length === 0) return;
  const writer = writerOf(db);
  throw new DxpuError(
    'failed_precondition',
    `${file} was written by dxpu ${writer}, which is newer than this one (${version}) and keeps its state ` +
      `in a form this one does not know (${unknown.join(', ')}). Run dxpu ${writer} or newer with it, or ` +
      'name another folder; the file was not changed.',
    { details: { file, writtenBy: writer, version, unknown } },
  );
}

/**
 * Brings the schema up to date in one transaction, and notes `version` as the last writer. What
 * `refuseOthers` let pass needs no migration back.
 */
export async function migrate(db: Database, version: string): Promise<void> {
  const isCurrent = migrationsIn(db).length === Object.keys(MIGRATIONS).length;
  if (isCurrent && writerOf(db) === version) return;
  db.exec('BEGIN EXCLUSIVE');
  try {
    if (!isCurrent) await bringUpToDate(db);
    db.prepare(
      `INSERT INTO about (name, value) VALUES ('written-by', ?)
       ON CONFLICT (name) DO UPDATE SET value = excluded.value`,
    ).run(version);
    db.exec('COMMIT');
  } catch (error) {
    if (db.inTransaction) db.exec('ROLLBACK');
    throw error;
  }
}

async function bringUpToDate(db: Database): Promise<void> {
  // A fifth of a manager's start, where it is not needed.
  const { Kysely, Migrator, SqliteDialect } = await import('kysely');
  const migrations: Record<string, Migration> = {};
  for (const [name, load] of Object.entries(MIGRATIONS)) migrations[name] = await load();
  // Kysely opens no transaction of its own for SQLite; and it must not close what it was lent.
  const migrator = new Migrator({
    db: new Kysely<unknown>({ dialect: new SqliteDialect({ database: db }) }),
    provider: { getMigrations: () => Promise.resolve(migrations) },
    migrationTableName: MIGRATION_TABLE,
    migrationLockTableName: `${MIGRATION_TABLE}_lock`,
  });
  const { error } = await migrator.migrateToLatest();
  if (error !== undefined) throw error;
}

function migrationsIn(db: Database): string[] {
  const isThere = db.prepare('SELECT 1 FROM sqlite_schema WHERE name = ?').get(MIGRATION_TABLE);
  if (isThere === undefined) return [];
  return db.prepare<[], string>(`SELECT name FROM ${MIGRATION_TABLE} ORDER BY name`).pluck().all();
}

function writerOf(db: Database): string {
  const found = db.prepare(`SELECT value FROM about WHERE name = 'written-by'`).pluck().get();
  return typeof found === 'string' ? found : 'of an unknown version';
}
