import { createHash } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import Sqlite from 'better-sqlite3';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { DxpuError } from '#base/errors';
import {
  batchOf,
  bindingRecord,
  boxRecord,
  boxSlotRecord,
  inventoryBatch,
  logRecord,
} from '#testkit/store-records';
import { MIGRATIONS } from './migrations/list.ts';
import { SqliteStore, type SqliteStoreOptions } from './sqlite-store.ts';

let folder: string;
let file: string;
const stores: SqliteStore[] = [];

beforeEach(() => {
  folder = mkdtempSync(path.join(os.tmpdir(), 'dxpu-store-'));
  file = path.join(folder, 'pool.db');
});
afterEach(() => {
  for (const store of stores.splice(0)) store.close();
  rmSync(folder, { recursive: true, force: true });
});

async function open(options: Partial<SqliteStoreOptions> = {}): Promise<SqliteStore> {
  const store = await SqliteStore.open(folder, { version: '0.1.0', ...options });
  stores.push(store);
  return store;
}

async function refusal(where = folder, version = '0.1.0'): Promise<DxpuError> {
  return SqliteStore.open(where, { version }).then(
    () => expect.fail('it was opened'),
    (error: DxpuError) => error,
  );
}

/** Changes the file behind the store's back. */
function edit(sql: string): void {
  const db = new Sqlite(file);
  try {
    db.exec(sql);
  } finally {
    db.close();
  }
}

const digest = (): string => createHash('sha256').update(readFileSync(file)).digest('hex');

const BINDING = batchOf({
  bindings: [bindingRecord(1)],
  log: [logRecord(1, bindingRecord(1))],
  counters: { generation: 1, binding: 1, position: 1 },
});

describe('open', () => {
  it('keeps others out, says who has it, and lets go', async () => {
    const first = await open();
    const error = await refusal();
    expect(error.code).toBe('already_exists');
    expect(error.message).toContain(`another manager has ${file} open (process ${process.pid})`);
    expect(error.message).toContain('Stop it first');
    // The one that was refused has changed nothing of the lock.
    expect((await refusal()).code).toBe('already_exists');
    first.commit(inventoryBatch(1));
    first.close();
    expect(readdirSync(folder)).toEqual(['pool.db']);
    expect((await open()).load().boxes).toHaveLength(1);
  });

  it('says no process where the note of it is lost or stale', async () => {
    await open();
    // Above the largest process id of Linux (PID_MAX_LIMIT, 4194304).
    writeFileSync(`${file}.pid`, '4194305\n');
    expect((await refusal()).message).toContain(`has ${file} open. Stop`);
    rmSync(`${file}.pid`);
    expect((await refusal()).message).toContain(`has ${file} open. Stop`);
  });

  it('two at once on a new folder: one gets it', async () => {
    const opened = await Promise.allSettled([open(), open(), open()]);
    expect(opened.filter((one) => one.status === 'fulfilled')).toHaveLength(1);
    const refused = opened.filter((one) => one.status === 'rejected');
    expect(refused.map((one) => (one.reason as DxpuError).code)).toEqual([
      'already_exists',
      'already_exists',
    ]);
    expect(readdirSync(folder).filter((name) => !name.startsWith('pool.db'))).toEqual([]);
  });

  it('is durable: write-ahead log, full flushes, foreign keys, strict tables', async () => {
    (await open()).close();
    const db = new Sqlite(file, { readonly: true });
    expect(db.pragma('journal_mode', { simple: true })).toBe('wal');
    const tables = db
      .prepare<[], { name: string; strict: number }>('PRAGMA table_list')
      .all()
      .filter((one) => !one.name.startsWith('sqlite_') && !one.name.startsWith('migration'));
    db.close();
    expect(tables.filter((one) => one.strict !== 1)).toEqual([]);
    expect(tables).toHaveLength(10);
  });

  it('the file is for its user alone', async () => {
    (await open()).close();
    expect(statSync(file).mode & 0o777).toBe(0o600);
  });

  it('a newer version: says which wrote it and what to do, and changes nothing', async () => {
    (await open()).close();
    edit(`INSERT INTO migration VALUES ('0999-future', '2030-01-01');
          UPDATE about SET value = '7.8.9'`);
    const before = digest();
    const error = await refusal();
    expect(error.code).toBe('failed_precondition');
    expect(error.message).toContain(`${file} was written by dxpu 7.8.9`);
    expect(error.message).toContain('newer than this one (0.1.0)');
    expect(error.message).toContain('0999-future');
    expect(error.message).toContain('Run dxpu 7.8.9 or newer with it');
    expect(digest()).toBe(before);
    expect(readdirSync(folder)).toEqual(['pool.db']);
  });

  it('notes the last version that wrote it', async () => {
    (await open({ version: '0.1.0' })).close();
    (await open({ version: '0.2.0' })).close();
    const db = new Sqlite(file, { readonly: true });
    expect(db.prepare(`SELECT value FROM about WHERE name = 'written-by'`).pluck().get()).toBe(
      '0.2.0',
    );
    expect(db.prepare('SELECT count(*) FROM migration').pluck().get()).toBe(
      Object.keys(MIGRATIONS).length,
    );
    db.close();
  });

  it('an older file is brought up to date with everything in it', async () => {
    // What the first migration left is brought up by those that came since.
    const store = await open();
    store.commit(inventoryBatch(2));
    store.close();
    expect((await open()).load().boxSlots).toEqual([
      boxSlotRecord('b1', 0),
      boxSlotRecord('b1', 1),
    ]);
  });

  it('another program’s database', async () => {
    edit('CREATE TABLE cats (name TEXT)');
    const before = digest();
    const error = await refusal();
    expect(error.code).toBe('failed_precondition');
    expect(error.message).toContain(`${file} is a database of another program`);
    expect(digest()).toBe(before);
  });

  it.each([
    ['text', Buffer.from('dear diary, '.repeat(1000))],
    ['a short text', Buffer.from('x')],
    ['zeros', Buffer.alloc(8192)],
  ])('no database: %s', async (_, bytes) => {
    writeFileSync(file, bytes);
    const error = await refusal();
    expect(error.code).toBe('data_loss');
    expect(error.message).toContain(`${file} is not a database`);
    expect(readFileSync(file)).toEqual(bytes);
  });

  it('an empty file is what was left of a pool, not a new one', async () => {
    writeFileSync(file, '');
    const error = await refusal();
    expect(error.code).toBe('data_loss');
    expect(error.message).toContain(`${file} is damaged: it is empty`);
    expect(statSync(file).size).toBe(0);
  });

  it('a write-ahead log without its file is no new pool', async () => {
    writeFileSync(`${file}-wal`, 'left');
    const error = await refusal();
    expect(error.code).toBe('data_loss');
    expect(error.message).toContain(`${file} is gone`);
    expect(existsSync(file)).toBe(false);
  });

  it('a truncated file, wherever it was cut', async () => {
    const store = await open();
    store.commit(inventoryBatch(400));
    store.close();
    const whole = readFileSync(file);
    for (const bytes of [whole.length - 1, whole.length - 4096, 4096 * 3, 4096, 5000, 512, 99]) {
      writeFileSync(file, whole);
      truncateSync(file, bytes);
      const error = await refusal();
      expect(error.code, `cut to ${bytes} bytes`).toBe('data_loss');
      expect(error.message).toContain(file);
    }
    writeFileSync(file, whole);
    expect((await open()).load().boxSlots).toHaveLength(400);
  });

  it('a damaged page of any table but the log', async () => {
    const store = await open();
    store.commit(inventoryBatch(400));
    store.commit(BINDING);
    store.close();
    const whole = readFileSync(file);
    const db = new Sqlite(file, { readonly: true });
    const pages = db
      .prepare<[], { name: string; pageno: number }>(
        `SELECT name, pageno FROM dbstat WHERE name IN ('binding', 'box_slot', 'counters', 'request')
           OR name LIKE 'sqlite_autoindex_binding%'`,
      )
      .all();
    db.close();
    expect(pages.length).toBeGreaterThan(10);
    for (const page of pages) {
      const hurt = Buffer.from(whole);
      hurt.fill(0xa5, (page.pageno - 1) * 4096, page.pageno * 4096);
      writeFileSync(file, hurt);
      const error = await refusal();
      expect(error.code, `page ${page.pageno} of ${page.name}`).toBe('data_loss');
      expect(error.message).toContain(`${file} is damaged`);
    }
  });

  it('a log that is shorter than it was', async () => {
    const store = await open();
    store.commit(inventoryBatch(2));
    store.commit(BINDING);
    store.close();
    edit('DROP TRIGGER log_without_delete; DELETE FROM log');
    const error = await refusal();
    expect(error.code).toBe('data_loss');
    expect(error.message).toContain('its log ends at 0, not at 1');
  });

  it('a record that is no JSON', async () => {
    const store = await open();
    store.commit(inventoryBatch(2));
    store.close();
    edit(`UPDATE box SET record = '{"insta'`);
    const again = await open();
    expect(() => again.load()).toThrow(
      expect.objectContaining({
        code: 'data_loss',
        message: expect.stringContaining(`${file} is damaged`) as string,
      }),
    );
  });

  it('a folder that is not there, or no folder', async () => {
    const missing = await refusal(path.join(folder, 'none'));
    expect(missing.code).toBe('not_found');
    expect(missing.message).toContain(path.join(folder, 'none'));
    expect(missing.message).toContain('Make it, or name another one');
    const plain = path.join(folder, 'plain');
    writeFileSync(plain, '');
    expect((await refusal(plain)).message).toContain('not a folder');
    mkdirSync(file);
    const taken = await refusal();
    expect(taken.code).toBe('failed_precondition');
    expect(taken.message).toContain(`${file} is there and is not a file`);
  });

  it.skipIf(process.getuid?.() === 0)('a folder or file that may not be written', async () => {
    // Root may write everywhere; test/manager/store-process.test.ts does this as another user.
    (await open()).close();
    chmodSync(file, 0o400);
    expect((await refusal()).code).toBe('permission_denied');
    chmodSync(folder, 0o500);
    const error = await refusal();
    expect(error.code).toBe('permission_denied');
    expect(error.message).toContain(`the manager's folder ${folder} cannot be written`);
    chmodSync(folder, 0o700);
  });
});

describe('the schema by itself', () => {
  beforeEach(async () => {
    const store = await open();
    store.commit(inventoryBatch(4));
    store.commit(BINDING);
    store.close();
  });

  const columns = 'id, generation, host, host_slot, box, box_slot, record';

  it.each([
    ['a second binding of a box slot', `'b2',2,'h1',2,'b1',1,'{}'`],
    ['a second binding of a virtual slot', `'b2',2,'h1',1,'b1',2,'{}'`],
    ['a second binding of a generation', `'b2',1,'h1',2,'b1',2,'{}'`],
    ['a binding of a slot that is not there', `'b2',2,'h1',2,'b1',9,'{}'`],
  ])('refuses %s', (_, values) => {
    expect(() => {
      edit(`PRAGMA foreign_keys = ON; INSERT INTO binding (${columns}) VALUES (${values})`);
    }).toThrow(/constraint|once/i);
  });

  it.each([
    ['changing the log', `UPDATE log SET record = '{}'`],
    ['deleting from the log', 'DELETE FROM log WHERE position = 1'],
    ['writing over the log', `INSERT OR REPLACE INTO log SELECT position, NULL, '{}' FROM log`],
    ['emptying the log', 'DELETE FROM log'],
    ['lowering a counter', 'UPDATE counters SET generation = 0'],
    ['deleting the counters', 'DELETE FROM counters'],
    ['a second row of counters', 'INSERT INTO counters VALUES (2, 9, 9, 9)'],
  ])('refuses %s', async (_, sql) => {
    expect(() => edit(sql)).toThrow(Sqlite.SqliteError);
    const store = await open();
    expect(store.log(0, 9)).toEqual([logRecord(1, bindingRecord(1))]);
    expect(store.load().counters).toEqual(BINDING.counters);
  });
});

describe('a full disk', () => {
  const big = (box: string, slots: number, kib: number) =>
    batchOf({
      boxes: [boxRecord(box)],
      boxSlots: Array.from({ length: slots }, (_, slot) => ({
        ...boxSlotRecord(box, slot),
        quarantine: 'x'.repeat(kib * 1024),
      })),
      counters: BINDING.counters,
    });

  it('nothing of the batch is there, and the store goes on', async () => {
    // 100 pages of 4 KiB: an empty store takes some 30 of them.
    const store = await open({ maxPages: 100 });
    store.commit(inventoryBatch(4));
    store.commit(BINDING);
    const before = store.load();
    const commit = (): void => store.commit(big('b2', 100, 10));
    expect(commit).toThrow(expect.objectContaining({ code: 'resource_exhausted' }));
    expect(commit).toThrow(`${file} could not be written: the disk is full`);
    expect(store.load()).toEqual(before);
    expect(store.log(0, 9)).toHaveLength(1);
    // What fits is taken: 10 slots of 10 KiB in the 70 pages that are left.
    store.commit(big('b3', 10, 10));
    store.close();
    const again = (await open({ maxPages: 10_000 })).load();
    expect(again.bindings).toEqual(before.bindings);
    expect(again.boxSlots).toHaveLength(14);
  });

  it('with room again, the same batch succeeds', async () => {
    const small = await open({ maxPages: 100 });
    small.commit(inventoryBatch(4));
    small.commit(BINDING);
    expect(() => small.commit(big('b2', 100, 10))).toThrow('the disk is full');
    small.close();
    const store = await open();
    store.commit(big('b2', 100, 10));
    expect(store.load().boxSlots).toHaveLength(104);
  });
});
