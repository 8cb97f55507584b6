import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import * as path from 'node:path';
import Sqlite from 'better-sqlite3';
import { afterAll, afterEach, beforeEach, expect, it, vi } from 'vitest';
import { globalTid, writeNsysFile } from '#testkit/nsys-file';
import { readNsys } from './nsys.ts';

const KERNEL = 'CUPTI_ACTIVITY_KIND_KERNEL';
const root = mkdtempSync(path.join(tmpdir(), 'dxpu-sqlite-test-'));
afterAll(() => rmSync(root, { recursive: true }));

let count = 0;
let folder = '';
let copies = '';
beforeEach(() => {
  count += 1;
  folder = path.join(root, `${count}`);
  copies = path.join(root, `${count}-copies`);
  for (const one of [folder, copies]) mkdirSync(one);
  vi.stubEnv('TMPDIR', copies);
});
afterEach(() => vi.unstubAllEnvs());

function made(kernels: number): string {
  const file = path.join(folder, 'made.sqlite');
  const kernel = (at: number) => ({
    start: 1000 * at,
    end: 1000 * at + 500,
    deviceId: 0,
    contextId: 1,
    streamId: 7,
    correlationId: at,
    globalPid: globalTid(10, 0),
  });
  writeNsysFile(file, {
    StringIds: [{ id: 0, value: 'saxpy' }],
    [KERNEL]: Array.from({ length: kernels }, (_, at) => kernel(at + 1)),
  });
  return file;
}

/** The work read of the trace, while nothing changes beside it, and nothing is left in the temporary folder. */
async function workOf(trace: string): Promise<number> {
  const before = readdirSync(path.dirname(trace));
  const { work } = await readNsys(trace);
  expect(readdirSync(path.dirname(trace))).toEqual(before);
  expect(readdirSync(copies)).toEqual([]);
  return work.count;
}

// Reading it left -shm and -wal beside the trace.
it('a file with a write-ahead log is read, and nothing is left beside it', async () => {
  const file = made(3);
  const db = new Sqlite(file);
  db.pragma('journal_mode = WAL');
  db.close();
  expect(await workOf(file)).toBe(3);
});

it('what is in the log alone is read too', async () => {
  const file = made(3);
  const trace = path.join(folder, 'trace.sqlite');
  const db = new Sqlite(file);
  db.pragma('journal_mode = WAL');
  db.pragma('wal_autocheckpoint = 0');
  db.exec(`DELETE FROM ${KERNEL} WHERE start > 1000`);
  for (const ending of ['', '-wal']) copyFileSync(`${file}${ending}`, `${trace}${ending}`);
  db.close();
  expect(await workOf(trace)).toBe(1);
});

// "attempt to write a readonly database"
it('a journal left behind is rolled back, in the copy', async () => {
  const file = made(2000);
  const trace = path.join(folder, 'trace.sqlite');
  const db = new Sqlite(file);
  // So small that changes reach the file before they are committed.
  db.pragma('cache_size = 1');
  db.exec(
    `BEGIN; UPDATE ${KERNEL} SET start = start + 1; DELETE FROM ${KERNEL} WHERE start > 9000`,
  );
  for (const ending of ['', '-journal']) copyFileSync(`${file}${ending}`, `${trace}${ending}`);
  db.close();
  expect(await workOf(trace)).toBe(2000);
  expect(existsSync(`${trace}-journal`)).toBe(true);
});

it('where no copy can be made, the way out is told', async () => {
  const file = made(1);
  const db = new Sqlite(file);
  db.pragma('journal_mode = WAL');
  db.close();
  vi.stubEnv('TMPDIR', path.join(root, 'nowhere'));
  await expect(readNsys(file)).rejects.toThrow(/made\.sqlite: .*nowhere failed.*Set TMPDIR/);
});
