import * as path from 'node:path';
import Sqlite, { type Database } from 'better-sqlite3';

/** Of about the size of a binding's record. */
const ROW = JSON.stringify({ filler: 'x'.repeat(500) });

/** SQLite with the pragmas of the store, one row a transaction: what a manager without turns would do. */
export class RawRows {
  readonly #db: Database;
  #next = 1;

  constructor(folder: string) {
    const db = new Sqlite(path.join(folder, 'raw.db'));
    db.pragma('locking_mode = EXCLUSIVE');
    db.pragma('journal_mode = WAL');
    db.pragma('synchronous = FULL');
    db.exec('CREATE TABLE row (number INTEGER PRIMARY KEY, record TEXT NOT NULL) STRICT');
    this.#db = db;
  }

  /** Transactions a second over `ms`. */
  rate(ms: number): number {
    const insert = this.#db.prepare('INSERT INTO row VALUES (?, ?)');
    const began = performance.now();
    let count = 0;
    let tookMs = 0;
    while (tookMs < ms) {
      insert.run(this.#next++, ROW);
      count++;
      tookMs = performance.now() - began;
    }
    return (count * 1000) / tookMs;
  }

  close(): void {
    this.#db.close();
  }
}
