/** `dxpu manager` as a process: what keeps it from starting, and how it ends. */
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import * as net from 'node:net';
import * as os from 'node:os';
import * as path from 'node:path';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { connectPool } from '#manager/rpc/pool-client';
import { SqliteStore } from '#manager/store/sqlite-store';
import { initAuthorityFiles, issueFiles } from '#identity/certificates';
import { loadCredentials } from '#identity/tls-identity';
import { buildDist, freePort, type Outcome, Running } from './processes.ts';

const folder = mkdtempSync(path.join(os.tmpdir(), 'dxpu-manager-'));
const file = (name: string): string => path.join(folder, name);
const running: Running[] = [];

beforeAll(async () => {
  await buildDist();
  const nowMs = Date.now();
  await initAuthorityFiles(folder, 'end to end', { nowMs });
  await issueFiles(folder, { kind: 'manager', id: 'm1' }, { nowMs });
  await issueFiles(folder, { kind: 'box', id: 'm1' }, { nowMs });
  await issueFiles(folder, { kind: 'user', id: 'alice' }, { nowMs });
  await issueFiles(folder, { kind: 'manager', id: 'late' }, { nowMs, days: -1 });
});
afterEach(async () => {
  await Promise.all(running.splice(0).map((one) => one.stop('SIGKILL')));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function write(port: number, certificate = 'manager-m1', id = 'm1'): void {
  writeFileSync(
    file('manager.yaml'),
    `manager: ${id}
certificates: { ca: ca.pem, cert: ${certificate}.pem, key: ${certificate}-key.pem }
listen: ["127.0.0.1:${port}"]
`,
  );
}

function start(...more: string[]): Running {
  const where = ['--config', file('manager.yaml'), '--state', file('state')];
  const one = new Running(['manager', ...where, '--log-format', 'text', ...more]);
  running.push(one);
  return one;
}

function refusal({ status, stderr }: Outcome): string {
  expect(status).toBe(1);
  expect(stderr).not.toMatch(/\bat .*\.js:/);
  return stderr;
}

it('serves users and control, and ends with SIGTERM leaving store and folder in order', async () => {
  const port = await freePort();
  write(port);
  const manager = start();
  await manager.says(/ready/);
  const files = {
    ca: file('ca.pem'),
    cert: file('user-alice.pem'),
    key: file('user-alice-key.pem'),
  };
  const credentials = loadCredentials(files, { kind: 'user', id: 'alice' }, Date.now());
  const client = connectPool({ host: '127.0.0.1', port, credentials, manager: 'm1' });
  expect(await client.pool.getStatus({})).toMatchObject({ boxes: 0, gpus: 0 });
  const watcher = client.pool.watch({ follow: true })[Symbol.asyncIterator]();
  await watcher.next();

  const status = new Running(['status', '--state', file('state'), '--output', 'json']);
  expect((await status.ended).stdout).toContain('"manager"');
  const reload = new Running(['reload', '--process', 'manager-m1', '--state', file('state')]);
  expect((await reload.ended).stderr).toMatch(/reads its configuration at its start alone|takes a/);

  // In a call, so that the manager has something to end.
  const cut = expect(watcher.next()).rejects.toMatchObject({ code: 'unavailable' });
  const { status: exit, signal } = await manager.stop('SIGTERM');
  expect([exit, signal]).toEqual([0, null]);
  await cut;
  client.close();
  expect(existsSync(file('state/manager-m1.sock'))).toBe(false);
  (await SqliteStore.open(file('store'), { version: '0.1.0' })).close();
});

it('two of one name cannot run', async () => {
  write(0);
  await start().says(/ready/);
  expect(refusal(await start().ended)).toContain('another process with this name is running');
});

it('a port in use is named', async () => {
  const other = net.createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => other.once('listening', resolve));
  const { port } = other.address() as net.AddressInfo;
  write(port);
  expect(refusal(await start().ended)).toContain(
    `cannot listen on 127.0.0.1:${port}: another process listens there`,
  );
  other.close();
  // It let go of its store.
  (await SqliteStore.open(file('store'), { version: '0.1.0' })).close();
});

it.each([
  [
    'of a box',
    'box-m1',
    'm1',
    'names spiffe://pool/box/m1, this process is spiffe://pool/manager/m1',
  ],
  ['expired', 'manager-late', 'late', 'expired on'],
  ['that is not there', 'manager-m2', 'm2', 'there is no such file'],
])('a certificate %s is refused before anything is done', async (_what, certificate, id, says) => {
  write(0, certificate, id);
  expect(refusal(await start('--check').ended)).toContain(says);
  expect(refusal(await start().ended)).toContain(says);
  expect(existsSync(file(`state/manager-${id}.sock`))).toBe(false);
});

it('a store that cannot be a folder is named', async () => {
  write(0);
  writeFileSync(file('taken'), '');
  writeFileSync(file('manager.yaml'), `store: taken/store\n`, { flag: 'a' });
  expect(refusal(await start().ended)).toContain(`no store at ${file('taken/store')}: `);
});
