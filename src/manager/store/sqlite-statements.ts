import type { Database, Statement } from 'better-sqlite3';
import type {
  BindingRow,
  Cell,
  KeyedRow,
  LogRow,
  PathRow,
  RequestRow,
  SlotRow,
} from './sqlite-rows.ts';

type Write = Statement<Cell[]>;
type Read<Row> = Statement<Cell[], Row>;

/**
 * The statements of the hot path, compiled once. A put is `insert … on conflict do update`, so that a
 * row keeps its place and no trigger against deletion fires.
 */
export interface Statements {
  readonly begin: Write;
  readonly commit: Write;
  readonly rollback: Write;
  readonly putBox: Write;
  readonly putBoxSlot: Write;
  readonly putHost: Write;
  readonly putHostSlot: Write;
  readonly putPath: Write;
  /** A step in a binding's life: touches no index. Changes no row where keys differ. */
  readonly stepBinding: Write;
  readonly putBinding: Write;
  readonly removeBinding: Write;
  readonly putRequest: Write;
  readonly forgetRequests: Write;
  readonly addLog: Write;
  readonly setCounters: Write;
  readonly bindings: Read<BindingRow>;
  readonly boxes: Read<KeyedRow>;
  readonly boxSlots: Read<SlotRow>;
  readonly hosts: Read<KeyedRow>;
  readonly hostSlots: Read<SlotRow>;
  readonly paths: Read<PathRow>;
  readonly requests: Read<RequestRow>;
  readonly counters: Read<[generation: number, binding: number, position: number]>;
  readonly log: Read<LogRow>;
  readonly logOfBinding: Read<LogRow>;
}

/** Lists come in the order in which keys were first put. */
export function prepareStatements(db: Database): Statements {
  const write = (sql: string): Write => db.prepare<Cell[]>(sql);
  const read = <Row>(sql: string): Read<Row> => db.prepare<Cell[], Row>(sql).raw();
  const put = (table: string, keys: readonly string[], values: readonly string[]): Write => {
    const columns = [...keys, ...values];
    return write(
      `INSERT INTO ${table} (${columns.join(', ')}) VALUES (${columns.map(() => '?').join(', ')})
       ON CONFLICT (${keys.join(', ')})
       DO UPDATE SET ${values.map((name) => `${name} = excluded.${name}`).join(', ')}`,
    );
  };
  const list = <Row>(table: string, columns: string): Read<Row> =>
    read<Row>(`SELECT ${columns} FROM ${table} ORDER BY rowid`);
  const log = 'position, at_ms, actor, request_id, subject_kind, subject, action, message, binding';
  const binding = ['state', 'generation', 'host', 'host_slot', 'box', 'box_slot', 'record'];
  return {
    begin: write('BEGIN IMMEDIATE'),
    commit: write('COMMIT'),
    rollback: write('ROLLBACK'),
    putBox: put('box', ['id'], ['record']),
    putBoxSlot: put('box_slot', ['box', 'slot'], ['record']),
    putHost: put('host', ['id'], ['record']),
    putHostSlot: put('host_slot', ['host', 'slot'], ['record']),
    putPath: put('path', ['host', 'box', 'path'], ['rtt_ns', 'bits_per_second']),
    stepBinding: write(
      `UPDATE binding SET state = ?, record = ? WHERE id = ? AND generation = ?
       AND host = ? AND host_slot = ? AND box = ? AND box_slot = ?`,
    ),
    putBinding: put('binding', ['id'], binding),
    removeBinding: write('DELETE FROM binding WHERE id = ?'),
    putRequest: put('request', ['caller', 'request_id'], ['fingerprint', 'bindings', 'at_ms']),
    forgetRequests: write('DELETE FROM request WHERE at_ms < ?'),
    addLog: write(`INSERT INTO log (${log}, binding_id) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`),
    setCounters: write('UPDATE counters SET generation = ?, binding = ?, position = ?'),
    bindings: list('binding', ['id', ...binding].join(', ')),
    boxes: list('box', 'id, record'),
    boxSlots: list('box_slot', 'box, slot, record'),
    hosts: list('host', 'id, record'),
    hostSlots: list('host_slot', 'host, slot, record'),
    paths: list('path', 'host, box, path, rtt_ns, bits_per_second'),
    requests: list('request', 'caller, request_id, fingerprint, bindings, at_ms'),
    counters: read('SELECT generation, binding, position FROM counters'),
    log: read(`SELECT ${log} FROM log WHERE position > ? ORDER BY position LIMIT ?`),
    logOfBinding: read(
      `SELECT ${log} FROM log WHERE binding_id = ? AND position > ? ORDER BY position LIMIT ?`,
    ),
  };
}
