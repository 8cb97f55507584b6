import type { Database, Statement } from 'better-sqlite3';
import type { RecordKind, RecordKinds } from '../domain/record-tables.ts';
import type { BindingRecord, LogRecord } from '../domain/records.ts';
import { bindingOf } from './log-subject.ts';

type Cell = string | number | null;
type Write = Statement<Cell[]>;
/** Each row is the JSON of a record. */
type Read = Statement<Cell[], string>;

/** One kind of record in its table. */
export interface Table<R> {
  readonly put: (record: R) => void;
  /** In the order in which keys were first put. */
  readonly all: () => R[];
}

/** The statements of the hot path, compiled once. */
export interface Statements {
  readonly begin: Write;
  readonly commit: Write;
  readonly rollback: Write;
  readonly tables: { readonly [K in RecordKind]: Table<RecordKinds[K]> };
  readonly removeBinding: Write;
  readonly forgetRequests: Write;
  readonly addLog: (entry: LogRecord) => void;
  readonly log: Read;
  readonly logOfBinding: Read;
  readonly counters: Statement<[], [generation: number, binding: number, position: number]>;
  readonly setCounters: Write;
}

export function prepareStatements(db: Database): Statements {
  const write = (sql: string): Write => db.prepare<Cell[]>(sql);
  const read = (sql: string): Read => db.prepare<Cell[], string>(sql).pluck();

  const table = <R>(
    name: string,
    keys: readonly string[],
    others: readonly string[],
    cells: (record: R) => Cell[],
  ): Table<R> => {
    const values = [...others, 'record'];
    const columns = [...keys, ...values];
    // An upsert keeps the row in its place; REPLACE would take it out first.
    const put = write(
      `INSERT INTO ${name} (${columns.join(', ')}) VALUES (${columns.map(() => '?').join(', ')})
       ON CONFLICT (${keys.join(', ')})
       DO UPDATE SET ${values.map((value) => `${value} = excluded.${value}`).join(', ')}`,
    );
    const list = read(`SELECT record FROM ${name} ORDER BY rowid`);
    return {
      put: (record) => {
        put.run(...cells(record), JSON.stringify(record));
      },
      all: () => list.all().map((text) => JSON.parse(text) as R),
    };
  };

  const keys = ['generation', 'host', 'host_slot', 'box', 'box_slot'];
  const inserted = table('binding', ['id'], keys, (one: BindingRecord) => [
    one.id,
    ...bindingKeys(one),
  ]);
  const step = write(
    `UPDATE binding SET record = ? WHERE id = ? AND ${keys.map((key) => `${key} = ?`).join(' AND ')}`,
  );
  const addLog = write('INSERT INTO log (position, binding, record) VALUES (?, ?, ?)');
  return {
    begin: write('BEGIN IMMEDIATE'),
    commit: write('COMMIT'),
    rollback: write('ROLLBACK'),
    tables: {
      boxes: table('box', ['id'], [], (one) => [one.id]),
      boxSlots: table('box_slot', ['box', 'slot'], [], (one) => [one.box, one.slot]),
      hosts: table('host', ['id'], [], (one) => [one.id]),
      hostSlots: table('host_slot', ['host', 'slot'], [], (one) => [one.host, one.slot]),
      paths: table('path', ['host', 'box', 'path'], [], (one) => [one.host, one.box, one.path]),
      bindings: {
        all: inserted.all,
        put: (one) => {
          // Most puts are a step in its life: keys and indexes stay as they are.
          const { changes } = step.run(JSON.stringify(one), one.id, ...bindingKeys(one));
          if (changes === 0) inserted.put(one);
        },
      },
      requests: table('request', ['caller', 'request_id'], ['at_ms'], (one) => [
        one.caller,
        one.requestId,
        one.atMs,
      ]),
    },
    removeBinding: write('DELETE FROM binding WHERE id = ?'),
    forgetRequests: write('DELETE FROM request WHERE at_ms < ?'),
    addLog: (entry) => {
      addLog.run(entry.position, bindingOf(entry) ?? null, JSON.stringify(entry));
    },
    log: read('SELECT record FROM log WHERE position > ? ORDER BY position LIMIT ?'),
    logOfBinding: read(
      'SELECT record FROM log WHERE binding = ? AND position > ? ORDER BY position LIMIT ?',
    ),
    counters: db
      .prepare<[], [number, number, number]>('SELECT generation, binding, position FROM counters')
      .raw(),
    setCounters: write('UPDATE counters SET generation = ?, binding = ?, position = ?'),
  };
}

function bindingKeys(one: BindingRecord): Cell[] {
  return [one.generation, one.host, one.hostSlot, one.box, one.boxSlot];
}
