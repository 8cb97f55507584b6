import { mkdtempSync, rmSync } from 'node:fs';
import * as net from 'node:net';
import * as os from 'node:os';
import * as path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { askMonitor } from './qemu-monitor.ts';

let folder = '';
let server: net.Server;
const heard: string[] = [];
let client: net.Socket | undefined;
let greeting = '';
let answers: string[] = [];

beforeEach(async () => {
  folder = mkdtempSync(path.join(os.tmpdir(), 'dxpu-qmp-'));
  heard.length = 0;
  greeting = '{"QMP": {"version": {}, "capabilities": []}}\n';
  server = net.createServer((socket) => {
    client = socket;
    socket.on('error', () => {});
    socket.write(greeting);
    socket.on('data', (chunk) => {
      heard.push(...chunk.toString().trim().split('\n'));
      const next = answers.shift();
      if (next === undefined) socket.end();
      else socket.write(next);
    });
  });
  await new Promise<void>((resolve) => server.listen(path.join(folder, 'qmp'), resolve));
});
afterEach(() => {
  server.close();
  rmSync(folder, { recursive: true });
});

const ask = (command: string) => askMonitor(path.join(folder, 'qmp'), command, 10_000);

describe('a command for QEMU', () => {
  it('comes behind the negotiation, and its answer is found among events and in pieces', async () => {
    answers = ['{"return": {}, "id": 1}\n', '{"event": "RESUME"}\n{"return": {"status": "run'];
    const answer = ask('query-status');
    while (heard.length < 2 || client === undefined) await new Promise(setImmediate);
    expect(heard).toEqual([
      '{"execute":"qmp_capabilities","arguments":{},"id":1}',
      '{"execute":"query-status","arguments":{},"id":2}',
    ]);
    client.write('ning"}, "id": 2}\n');
    expect(await answer).toEqual({ status: 'running' });
  });

  it('says what QEMU has against it', async () => {
    answers = [
      '{"return": {}, "id": 1}\n',
      '{"error": {"class": "GenericError", "desc": "not so"}, "id": 2}\n',
    ];
    await expect(ask('quit')).rejects.toThrow(/^\/.*\/qmp: QMP quit: not so$/);
  });

  it('fails where the connection ends, or nobody listens', async () => {
    answers = ['{"return": {}, "id": 1}\n'];
    await expect(ask('quit')).rejects.toMatchObject({ code: 'unavailable' });
    const nobody = askMonitor(path.join(folder, 'none'), 'quit', 10_000);
    await expect(nobody).rejects.toMatchObject({ code: 'unavailable' });
  });

  it('fails where something else answers', async () => {
    greeting = 'SSH-2.0-x\n';
    await expect(ask('quit')).rejects.toThrow('what answers at the QMP socket is no QEMU');
  });
});
