import * as path from 'node:path';
import type { Database } from 'better-sqlite3';
import { assert } from '#base/assert';
import { DxpuError } from '#base/errors';
import type { Batch, Snapshot } from '../domain/batch.ts';
import {
  RECORD_KINDS,
  type RecordKind,
  type RecordLists,
  recordLists,
} from '../domain/record-tables.ts';
import type { LogRecord } from '../domain/records.ts';
import { storeError } from './sqlite-errors.ts';
import { openFile } from './sqlite-file.ts';
import { forgetOwner, noteOwner } from './sqlite-owner.ts';
import { prepareStatements, type Statements } from './sqlite-statements.ts';
import type { Store } from './store.ts';

export interface SqliteStoreOptions {
  /** Of this program; noted in the file, so that an older one can say what it needs. */
  readonly version: string;
  /** The file grows to so many pages of 4 KiB and no further; no limit by default. */
  readonly maxPages?: number;
}

/**
 * A store in `pool.db` of a folder: SQLite with a write-ahead log, flushed at each commit. The file is
 * locked from `open` to `close`, or to the end of the process.
 */
export class SqliteStore implements Store {
  readonly #db: Database;
  readonly #file: string;
  readonly #statements: Statements;

  private constructor(db: Database, file: string) {
    this.#db = db;
    this.#file = file;
    this.#statements = prepareStatements(db);
  }

  /**
   * Opens the store of `folder`, which must be there; a folder without one gets an empty one. Fails
   * with a `DxpuError` that names the file and the way out: `already_exists` while another process has
   * it open, `failed_precondition` for a newer version's or another program's file, `data_loss` for a
   * damaged one, `not_found` and `permission_denied` for the folder, `resource_exhausted` for a full
   * disk.
   */
  static async open(folder: string, options: SqliteStoreOptions): Promise<SqliteStore> {
    const file = path.resolve(folder, 'pool.db');
    const db = await openFile(file, options.version);
    if (options.maxPages !== undefined) db.pragma(`max_page_count = ${options.maxPages}`);
    noteOwner(file);
    return new SqliteStore(db, file);
  }

  load(): Snapshot {
    const from = this.#statements;
    return this.#reading(() => {
      const counted = from.counters.get();
      assert(counted !== undefined, 'the row of the counters cannot be deleted');
      const [generation, binding, position] = counted;
      return {
        ...recordLists((kind) => from.tables[kind].all()),
        counters: { generation, binding, position },
      };
    });
  }

  commit(batch: Batch): void {
    const { begin, commit, rollback } = this.#statements;
    try {
      begin.run();
      this.#write(batch);
      commit.run();
    } catch (error) {
      // SQLite has ended the transaction by itself after some errors of the disk.
      if (this.#db.inTransaction) rollback.run();
      throw storeError(this.#file, error);
    }
  }

  /** In an order in which each row finds those it refers to; the counters last, as the schema asks. */
  #write(batch: Batch): void {
    const to = this.#statements;
    for (const id of batch.removedBindings) to.removeBinding.run(id);
    if (batch.forgetRequestsBeforeMs !== undefined) {
      to.forgetRequests.run(batch.forgetRequestsBeforeMs);
    }
    for (const kind of RECORD_KINDS) this.#put(kind, batch);
    for (const one of batch.log) to.addLog(one);
    const { generation, binding, position } = batch.counters;
    to.setCounters.run(generation, binding, position);
  }

  #put<K extends RecordKind>(kind: K, batch: RecordLists): void {
    const { put } = this.#statements.tables[kind];
    for (const one of batch[kind]) put(one);
  }

  log(after: number, limit: number, binding?: string): LogRecord[] {
    const { log, logOfBinding } = this.#statements;
    return this.#reading(() => {
      const found =
        binding === undefined ? log.all(after, limit) : logOfBinding.all(binding, after, limit);
      return found.map((text) => JSON.parse(text) as LogRecord);
    });
  }

  #reading<T>(read: () => T): T {
    try {
      return read();
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw storeError(this.#file, error);
      throw new DxpuError(
        'data_loss',
        `${this.#file} is damaged: a record is not JSON (${error.message}). Restore its folder from a copy.`,
        { details: { file: this.#file }, cause: error },
      );
    }
  }

  close(): void {
    if (!this.#db.open) return;
    forgetOwner(this.#file);
    this.#db.close();
  }
}
