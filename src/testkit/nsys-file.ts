/** Small Nsight Systems exports: SQLite files with the tables a test asks for. */
import { writeFileSync } from 'node:fs';
import Sqlite from 'better-sqlite3';

export type NsysCell = number | bigint | string | null | Uint8Array;

/** Tables by name; a table has the columns that its first row has. */
export type NsysTables = Readonly<Record<string, readonly Readonly<Record<string, NsysCell>>[]>>;

/** Columns have no declared type, so that a cell keeps the type given. */
export function writeNsysFile(path: string, tables: NsysTables): void {
  // In memory first: SQLite would wait for the disk at every step.
  const db = new Sqlite(':memory:');
  try {
    for (const [table, rows] of Object.entries(tables)) {
      const columns = Object.keys(rows[0] ?? { unused: 0 });
      const list = columns.map((column) => `"${column}"`).join(', ');
      db.exec(`CREATE TABLE "${table}" (${list})`);
      const insert = db.prepare(
        `INSERT INTO "${table}" (${list}) VALUES (${columns.map(() => '?').join(', ')})`,
      );
      db.transaction(() => {
        for (const row of rows) {
          insert.run(columns.map((column) => exact(row[column] ?? null)));
        }
      })();
    }
    writeFileSync(path, db.serialize());
  } finally {
    db.close();
  }
}

/** Whole numbers go in as integers, not as floating point. */
function exact(cell: NsysCell): NsysCell {
  return typeof cell === 'number' && Number.isSafeInteger(cell) ? BigInt(cell) : cell;
}

/** A `globalTid` as Nsight Systems packs it; with thread 0 a `globalPid`. */
export function globalTid(pid: number, tid: number): number {
  return 2 ** 48 + pid * 2 ** 24 + tid;
}
