import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { lockPool } from './pool-lock.ts';
import { knownProcesses } from './state-folder.ts';

const folder = mkdtempSync(path.join(os.tmpdir(), 'dxpu-lock-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

it('lets one at a time to work, and is no process', async () => {
  const lock = await lockPool(folder);
  await expect(lockPool(folder)).rejects.toMatchObject({
    code: 'already_exists',
    message: expect.stringContaining(`another dxpu up, down or start is at work in ${folder}`),
  });
  expect(knownProcesses(folder)).toEqual([]);
  lock.close();
  (await lockPool(folder)).close();
  expect(readdirSync(folder)).toEqual([]);
});

// It once hung: the system cut the path short, and the socket was not where it was looked for.
it('refuses a folder whose path is too long for sockets', async () => {
  const long = path.join(folder, 'x'.repeat(100));
  await expect(lockPool(long)).rejects.toThrow(
    /has \d+ bytes, the system allows \d+: choose a shorter/,
  );
});
