import { spawn } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, rmSync } from 'node:fs';
import * as net from 'node:net';
import * as os from 'node:os';
import * as path from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { holdingsOf, mappingCount, socketFiles } from './process-holdings.ts';

const folder = mkdtempSync(path.join(os.tmpdir(), 'dxpu-holdings-'));
afterAll(() => rmSync(folder, { recursive: true }));

describe('what a process holds', () => {
  it('shows a file that stays open, a child, and no more than that', async () => {
    const file = path.join(folder, 'some file');
    const before = holdingsOf(process.pid);
    const fd = openSync(file, 'w');
    expect(holdingsOf(process.pid).files).toEqual({ ...before.files, [file]: 1 });
    closeSync(fd);
    expect(holdingsOf(process.pid)).toEqual(before);
    const child = spawn('sleep', ['60'], { stdio: 'ignore' });
    const ended = new Promise((resolve) => child.once('exit', resolve));
    expect(holdingsOf(process.pid).children).toBe(before.children + 1);
    child.kill();
    await ended;
    expect(holdingsOf(process.pid).children).toBe(before.children);
  });

  it('counts mappings by file, node itself among them', () => {
    const { mappings } = holdingsOf(process.pid);
    expect(mappings[process.execPath]).toBeGreaterThan(0);
    const ofFiles = Object.values(mappings).reduce((sum, count) => sum + count, 0);
    expect(mappingCount(process.pid)).toBeGreaterThan(ofFiles);
  });

  it('finds socket files, and those alone', async () => {
    closeSync(openSync(path.join(folder, 'plain'), 'w'));
    const server = net.createServer();
    await new Promise<void>((resolve) => server.listen(path.join(folder, 'a.sock'), resolve));
    expect(socketFiles(folder)).toEqual(['a.sock']);
    await new Promise((resolve) => server.close(resolve));
    expect(socketFiles(folder)).toEqual([]);
  });
});
