import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import * as net from 'node:net';
import * as os from 'node:os';
import * as path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { VirtualClock } from '#base/virtual-clock';
import { QmpConnection } from './qmp-connection.ts';

let folder = '';
let server: net.Server | undefined;
let connection: QmpConnection | undefined;
const clock = new VirtualClock();
const heard: string[] = [];

const until = async (condition: () => boolean): Promise<void> => {
  while (!condition()) await new Promise(setImmediate);
};
const has = (text: string) => (): boolean => heard.includes(text);

/** A QEMU that answers `ping` alone; its connections, to be closed. */
async function startQemu(): Promise<net.Socket[]> {
  const sockets: net.Socket[] = [];
  server = net.createServer((socket) => {
    sockets.push(socket);
    socket.on('error', () => {});
    socket.write('{"QMP": {}}\n');
    socket.on('data', (chunk) => {
      for (const line of chunk.toString().trim().split('\n')) {
        const { execute, id } = JSON.parse(line) as { execute: string; id: number };
        if (execute !== 'hang') socket.write(`{"return": "${execute}", "id": ${id}}\n`);
      }
    });
  });
  await new Promise<void>((resolve) => server?.listen(path.join(folder, 'qmp'), resolve));
  return sockets;
}

function connect(name = 'qmp'): QmpConnection {
  return new QmpConnection({
    path: path.join(folder, name),
    clock,
    user: {
      connected: () => heard.push('connected'),
      event: (_now, name) => heard.push(name),
      disconnected: (_now, reason) => heard.push(reason.replace(folder, '')),
      turnEnd: () => heard.push('end'),
    },
  });
}

const ask = (command: string): void =>
  connection?.execute(command, {}, (_now, answer) =>
    heard.push(answer.ok ? `answer ${String(answer.value)}` : `${answer.kind}: ${answer.message}`),
  );
const ends = (): number => heard.filter((one) => one === 'end').length;

beforeEach(() => {
  folder = mkdtempSync(path.join(os.tmpdir(), 'dxpu-qmp-'));
  heard.length = 0;
});
afterEach(() => {
  connection?.stop();
  server?.close();
  rmSync(folder, { recursive: true });
});

describe('a connection to QEMU', () => {
  it('takes commands, and tells of events', async () => {
    const sockets = await startQemu();
    connection = connect();
    ask('early');
    expect(heard).toEqual(['gone: QMP early: QEMU is not connected']);
    await until(has('connected'));
    ask('ping');
    await until(has('answer ping'));
    sockets[0]?.write('{"event": "RESET"}\n');
    await until(has('RESET'));
    await until(() => heard.at(-1) === 'end');
  });

  it('ends what is pending when it is lost, and is made again', async () => {
    const sockets = await startQemu();
    connection = connect();
    await until(has('connected'));
    ask('hang');
    sockets[0]?.end();
    await until(has('QEMU has closed its QMP socket'));
    expect(heard).toContain('gone: QMP hang: QEMU has closed its QMP socket');
    ask('ping');
    expect(heard).toContain('gone: QMP ping: QEMU is not connected');
    heard.length = 0;
    clock.runUntil(clock.now() + 100e6);
    await until(has('connected'));
  });

  it.each([
    ['file', 'nobody listens there: start QEMU'],
    ['file/qmp', 'a part of its path is no folder'],
  ])('says of %s what is wrong with it', async (name, words) => {
    writeFileSync(path.join(folder, 'file'), '');
    connection = connect(name);
    await until(() => ends() === 1);
    expect(heard[0]).toContain(`/${name}: ${words}`);
  });

  it('is tried for with longer and longer pauses, and says once why it is not there', async () => {
    connection = connect();
    await until(() => ends() === 1);
    // 0.1 s, doubled each time, 2 s at most.
    for (const [tries, pauseNs] of [100e6, 200e6, 400e6, 800e6, 1600e6, 2e9, 2e9].entries()) {
      clock.runUntil(clock.now() + pauseNs - 1);
      expect(ends()).toBe(tries + 1);
      clock.runUntil(clock.now() + 1);
      await until(() => ends() === tries + 2);
    }
    expect(heard.filter((one) => one !== 'end')).toEqual([
      '/qmp: there is no such socket: start QEMU with it, as -qmp unix:PATH,server=on,wait=off',
    ]);
    await startQemu();
    clock.runUntil(clock.now() + 2e9);
    await until(has('connected'));
  });

  it('is not made again once it is stopped', async () => {
    const sockets = await startQemu();
    connection = connect();
    await until(has('connected'));
    let isClosed = false;
    sockets[0]?.on('close', () => {
      isClosed = true;
    });
    connection.stop();
    await until(() => isClosed);
    clock.runUntil(clock.now() + 60e9);
    expect(sockets).toHaveLength(1);
    expect(heard.filter((one) => one !== 'end')).toEqual(['connected']);
  });
});
