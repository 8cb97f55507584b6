/** The SQLite store where processes are killed, users differ and disks are full in earnest. */
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
} from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { Prng } from '#base/prng';
import type { LogRecord } from '#manager/domain/records';
import { SqliteStore } from '#manager/store/sqlite-store';
import { buildDist } from '../e2e/processes.ts';

const WRITER = fileURLToPath(new URL('./store-writer.mjs', import.meta.url));
const OPENER = fileURLToPath(new URL('./store-opener.mjs', import.meta.url));
const VERSION = '0.1.0';

let folder: string;
beforeAll(async () => {
  await buildDist();
  folder = mkdtempSync(path.join(os.tmpdir(), 'dxpu-store-'));
}, 120_000);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Lets the writer run for `ms` behind its first commit, kills it, and gives what it printed last. */
async function killAfter(where: string, seed: number, ms: number): Promise<number> {
  const child = spawn(process.execPath, [WRITER, where, String(seed)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let printed = '';
  const ended = new Promise<NodeJS.Signals | null>((resolve) => {
    child.once('close', (_, signal) => resolve(signal));
  });
  await new Promise<void>((resolve) => {
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      printed += text;
      resolve();
    });
    void ended.then(() => resolve());
  });
  setTimeout(() => child.kill('SIGKILL'), ms);
  expect(await ended).toBe('SIGKILL');
  return Number(printed.trimEnd().split('\n').at(-1));
}

/** What the bindings must be, told by the log alone; fails where a batch is there in part. */
function told(log: readonly LogRecord[]): Map<string, LogRecord['binding']> {
  const bindings = new Map<string, LogRecord['binding']>();
  let inBatch = 0;
  for (const [index, entry] of log.entries()) {
    expect(entry.position).toBe(index + 1);
    inBatch++;
    if (entry.message !== '') {
      expect(entry.message).toBe(`all ${inBatch}`);
      inBatch = 0;
    }
    if (entry.action === 'freed') bindings.delete(entry.subject);
    else bindings.set(entry.subject, entry.binding);
  }
  expect(inBatch, 'entries of a batch that was not committed whole').toBe(0);
  return bindings;
}

it('kill -9 at any moment: what was acknowledged is there, nothing is half', async () => {
  const where = path.join(folder, 'killed');
  mkdirSync(where);
  const prng = new Prng(7);
  let last = 0;
  for (let round = 0; round < 12; round++) {
    const printed = await killAfter(where, round, prng.below(200));
    const store = await SqliteStore.open(where, { version: VERSION });
    const { bindings, counters } = store.load();
    const log = store.log(0, 1e6);
    store.close();
    expect(printed).toBeGreaterThanOrEqual(last);
    // One batch may have been committed and not yet printed: at most 12 entries.
    expect(counters.position).toBeGreaterThanOrEqual(printed);
    expect(counters.position).toBeLessThanOrEqual(printed + 12);
    expect(log).toHaveLength(counters.position);
    expect(new Map(bindings.map((one) => [one.id, one]))).toEqual(told(log));
    last = counters.position;
  }
  // It did write in between.
  expect(last).toBeGreaterThan(100);
}, 60_000);

it('a store that was killed says nothing of another manager', async () => {
  const where = path.join(folder, 'killed-once');
  mkdirSync(where);
  await killAfter(where, 1, 0);
  expect(existsSync(path.join(where, 'pool.db.pid'))).toBe(true);
  const store = await SqliteStore.open(where, { version: VERSION });
  store.close();
});

it('another process has it open: refused at once, by its number', async () => {
  const where = path.join(folder, 'shared');
  mkdirSync(where);
  const store = await SqliteStore.open(where, { version: VERSION });
  const { stdout } = spawnSync(process.execPath, [OPENER, where], { encoding: 'utf8' });
  expect(stdout).toContain('already_exists');
  expect(stdout).toContain(`(process ${process.pid})`);
  // And it goes on.
  expect(store.load().boxes).toEqual([]);
  store.close();
  expect(spawnSync(process.execPath, [OPENER, where], { encoding: 'utf8' }).stdout).toBe(
    'opened\n',
  );
});

const isRoot = process.getuid?.() === 0;

// Only root can become somebody else; for anybody else, sqlite-store.test.ts does it.
it.skipIf(!isRoot)('a folder and a file of another user', () => {
  const nobody = 65534;
  const asNobody = (where: string): string =>
    spawnSync(process.execPath, [OPENER, where], { encoding: 'utf8', uid: nobody, gid: nobody })
      .stdout;
  chmodSync(folder, 0o755);
  const mine = path.join(folder, 'mine');
  mkdirSync(mine, { mode: 0o700 });
  expect(asNobody(mine)).toContain(
    `permission_denied the manager's folder ${mine} cannot be written`,
  );
  expect(existsSync(path.join(mine, 'pool.db'))).toBe(false);
  const theirs = path.join(folder, 'theirs');
  mkdirSync(theirs, { mode: 0o700 });
  chownSync(theirs, nobody, nobody);
  expect(asNobody(theirs)).toBe('opened\n');
  chownSync(path.join(theirs, 'pool.db'), 0, 0);
  expect(asNobody(theirs)).toContain(
    `permission_denied ${path.join(theirs, 'pool.db')} cannot be written`,
  );
});

/** Whether this user may mount a file system of its own. */
function canMount(): boolean {
  return spawnSync('unshare', ['-rm', 'true']).status === 0;
}

// Needs a mount namespace of its own (unshare -rm); max_page_count covers the rest elsewhere.
it.skipIf(!canMount())('a disk that is full in earnest loses nothing acknowledged', () => {
  const where = path.join(folder, 'small');
  mkdirSync(where);
  const script = `mount -t tmpfs -o size=1m none "$1" && cd "$1" &&
    "$2" "$3" "$1" 1 > "$4"; cp "$1"/* "$5"`;
  const out = path.join(folder, 'small.out');
  const copy = path.join(folder, 'copy');
  mkdirSync(copy);
  const args = ['sh', where, process.execPath, WRITER, out, copy];
  const { stderr } = spawnSync('unshare', ['-rm', 'sh', '-c', script, ...args], {
    encoding: 'utf8',
  });
  expect(stderr).toContain('pool.db could not be written: the disk is full');
  const printed = Number(readFileSync(out, 'utf8').trimEnd().split('\n').at(-1));
  expect(printed).toBeGreaterThan(10);
  const read = execFileSync(process.execPath, [OPENER, copy, 'positions'], { encoding: 'utf8' });
  expect(read).toBe(`opened\n${printed} ${printed}\n`);
});
