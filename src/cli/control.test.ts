import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import * as net from 'node:net';
import * as os from 'node:os';
import * as path from 'node:path';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { DxpuError } from '#base/errors';
import {
  askProcess,
  callProcess,
  findProcess,
  surveyProcesses,
  waitForEnd,
} from './control-client.ts';
import { type ControlHandler, type ControlServer, startControlServer } from './control-server.ts';
import { parseParams } from './daemon-process.ts';
import { type KnownProcess, makeStateFolder, socketPath } from './state-folder.ts';

const folder = mkdtempSync(path.join(os.tmpdir(), 'dxpu-control-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const socket = path.join(folder, 'host-h1.sock');
const target: KnownProcess = { name: 'host-h1', kind: 'host', socket };
let servers: ControlServer[] = [];
afterEach(() => {
  for (const server of servers) server.close();
  servers = [];
});

async function serve(handlers: Record<string, ControlHandler>, at = socket): Promise<void> {
  servers.push(await startControlServer(at, handlers));
}

describe('the control socket', () => {
  it('is its user’s alone, answers, and goes with its server', async () => {
    await serve({ add: (params) => (params as { a: number }).a + 1 });
    expect(statSync(socket).mode & 0o777).toBe(0o600);
    expect(await callProcess(target, 'add', { a: 41 })).toBe(42);
    servers.pop()?.close();
    expect(statSync(socket, { throwIfNoEntry: false })).toBeUndefined();
    await expect(callProcess(target, 'add', { a: 1 })).rejects.toThrow(/host-h1 is not running/);
  });

  it('hands errors on as they were', async () => {
    await serve({
      fail: () => {
        throw new DxpuError('resource_exhausted', 'no room', { details: { bytes: 7 } });
      },
    });
    const error = await callProcess(target, 'fail', {}).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(DxpuError);
    expect(error).toMatchObject({
      code: 'resource_exhausted',
      message: 'no room',
      details: { bytes: 7 },
    });
    await expect(callProcess(target, 'nothing', {})).rejects.toThrow(
      'there is no method nothing here; known: fail',
    );
  });

  it('streams events before the result, and tells the handler when its caller goes', async () => {
    const aborted: string[] = [];
    await serve({
      count: (_params, call) => {
        for (const n of [1, 2, 3]) call.emit({ n });
        return 'done';
      },
      forever: (_params, call) =>
        new Promise(() => {
          call.emit('begun');
          call.signal.addEventListener('abort', () => aborted.push('forever'));
        }),
    });
    const events: unknown[] = [];
    const onEvent = (event: unknown): void => void events.push(event);
    expect(await callProcess(target, 'count', {}, { onEvent })).toBe('done');
    expect(events).toEqual([{ n: 1 }, { n: 2 }, { n: 3 }]);
    const stop = new AbortController();
    const call = callProcess(
      target,
      'forever',
      {},
      {
        signal: stop.signal,
        onEvent: () => stop.abort(),
      },
    );
    await expect(call).rejects.toThrow('given up');
    await expect.poll(() => aborted).toEqual(['forever']);
  });

  it('answers rubbish with an error, and goes on', async () => {
    await serve({ ping: () => 'pong' });
    const answers = await new Promise<string>((resolve) => {
      let text = '';
      const client = net.connect(socket, () => {
        client.write('rubbish\n[1]\n{"id":3}\n{"id":4,"method":"__proto__"}\n');
        client.write('{"id":5,"method":"ping"}\n');
      });
      client.setEncoding('utf8');
      client.on('data', (chunk: string) => {
        text += chunk;
        if (text.includes('pong')) client.end();
      });
      client.on('close', () => resolve(text));
    });
    const lines = answers
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(lines.map((line) => line.error?.code ?? line.result)).toEqual([
      'invalid_argument',
      'invalid_argument',
      'invalid_argument',
      'unimplemented',
      'pong',
    ]);
  });

  it('left by a dead process is replaced; a live one, or a file, is not', async () => {
    // A socket nobody listens on any more: bound by a server that was closed without unlinking.
    const stale = path.join(folder, 'box-stale.sock');
    const server = net.createServer();
    await new Promise<void>((resolve) => server.listen(stale, resolve));
    const copy = path.join(folder, 'box-copy.sock');
    await import('node:fs').then((fs) => fs.linkSync(stale, copy));
    server.close();
    await serve({ ping: () => 'pong' }, copy);
    expect(await callProcess({ name: 'box-copy', kind: 'box', socket: copy }, 'ping', {})).toBe(
      'pong',
    );
    await expect(startControlServer(copy, {})).rejects.toThrow(/another process with this name/);
    const file = path.join(folder, 'box-file.sock');
    writeFileSync(file, 'precious');
    await expect(startControlServer(file, {})).rejects.toThrow(/is not a socket: move it away/);
  });

  it('has a path the system takes', () => {
    expect(socketPath('/run/dxpu', { kind: 'box', id: 'b1' })).toBe('/run/dxpu/box-b1.sock');
    const deep = `/${'x'.repeat(100)}`;
    expect(() => socketPath(deep, { kind: 'box', id: 'b1' })).toThrow(
      /has 113 bytes, the system allows 10[37]: choose a shorter folder with --state/,
    );
  });
});

describe('finding a process', () => {
  it('takes the only one of a kind, or the named one, and says which there are', async () => {
    const own = path.join(folder, 'find');
    mkdirSync(own);
    await expect(findProcess(own, undefined, 'host')).rejects.toThrow(/no dxpu process is running/);
    for (const name of ['host-h1', 'host-h2', 'box-b1']) {
      await serve({}, path.join(own, `${name}.sock`));
    }
    const { running, unreachable } = await surveyProcesses(own);
    expect(unreachable).toEqual([]);
    expect(running.map((one) => one.name)).toEqual(['host-h1', 'host-h2', 'box-b1']);
    expect((await findProcess(own, undefined, 'box')).name).toBe('box-b1');
    expect((await findProcess(own, 'h2', 'host')).name).toBe('host-h2');
    expect((await findProcess(own, 'host-h2', undefined)).name).toBe('host-h2');
    await expect(findProcess(own, undefined, 'host')).rejects.toThrow(
      'several fit (host-h1, host-h2): name one with --process',
    );
    await expect(findProcess(own, 'h3', 'host')).rejects.toThrow(
      'running: host-h1, host-h2, box-b1',
    );
  });

  it('of the wrong kind says so, instead of that it does not run', async () => {
    const own = path.join(folder, 'kinds');
    mkdirSync(own);
    for (const name of ['host-h1', 'box-b1']) await serve({}, path.join(own, `${name}.sock`));
    await expect(findProcess(own, 'box-b1', 'host')).rejects.toThrow(
      'box-b1 is a box; this takes a host; running: host-h1, box-b1',
    );
  });

  it('is not stopped by one that is stopped: it is named with its number, the others are found', async () => {
    const own = path.join(folder, 'mute');
    mkdirSync(own);
    await serve({}, path.join(own, 'host-h1.sock'));
    const at = path.join(own, 'box-b1.sock');
    // As a process that was stopped: the system takes connections for it, nobody reads.
    const mute = net.createServer({ pauseOnConnect: true });
    await new Promise<void>((resolve) => mute.listen(at, resolve));
    writeFileSync(path.join(own, 'box-b1.pid'), '4711\n');
    try {
      const { running, unreachable } = await surveyProcesses(own, 50);
      expect(running.map((one) => one.name)).toEqual(['host-h1']);
      expect(unreachable.map(({ error }) => error.message)).toEqual([
        'box-b1 (pid 4711) does not answer: it is stopped, or stuck; ' +
          'kill -CONT 4711 lets a stopped one go on',
      ]);
      const box: KnownProcess = { name: 'box-b1', kind: 'box', socket: at };
      await expect(askProcess(box, 'status', {}, 50)).rejects.toThrow('does not answer');
      await expect(waitForEnd(box, 4711, 0)).rejects.toThrow(
        'box-b1 was told to stop and is still there: end it with kill -9 4711',
      );
    } finally {
      mute.close();
    }
  });

  it('waits for its end', async () => {
    const own = path.join(folder, 'ending');
    mkdirSync(own);
    const at = path.join(own, 'box-b1.sock');
    await serve({}, at);
    const box: KnownProcess = { name: 'box-b1', kind: 'box', socket: at };
    const end = waitForEnd(box, undefined, 10_000);
    servers.pop()?.close();
    await end;
    expect(readdirSync(own)).toEqual([]);
  });

  it('in what is no folder of this user says which it is', async () => {
    const file = path.join(folder, 'plain-file');
    writeFileSync(file, '');
    await expect(findProcess(file, undefined, 'host')).rejects.toThrow(
      `cannot look for processes in ${file}: it is not a folder; name another folder with --state`,
    );
    expect(() => makeStateFolder(file)).toThrow(
      `no state folder at ${file}: ${file} is there and is not a folder; choose another with --state`,
    );
  });

  it.skipIf(process.getuid?.() === 0)(
    'of another user says that this one may not (skipped: root may)',
    async () => {
      const own = path.join(folder, 'others');
      mkdirSync(own);
      await serve({}, path.join(own, 'host-h1.sock'));
      chmodSync(path.join(own, 'host-h1.sock'), 0);
      await expect(findProcess(own, undefined, 'host')).rejects.toThrow(
        /^host-h1: this user may not open .*host-h1\.sock/,
      );
    },
  );
});

describe('parameters of a request', () => {
  it('that are wrong give one plain sentence', () => {
    const schema = z.strictObject({ slot: z.int(), nested: z.strictObject({ a: z.string() }) });
    const said = (params: unknown): string => {
      try {
        parseParams(schema, params);
      } catch (error) {
        return (error as DxpuError).message;
      }
      return '';
    };
    expect(said({ nested: { a: 'x' } })).toBe(
      'parameter slot: invalid input: expected number, received undefined',
    );
    expect(said({ slot: 1, nested: { a: 2 } })).toBe(
      'parameter nested.a: invalid input: expected string, received number',
    );
    expect(said({ slot: 1, nested: { a: '' }, Extra: 1 })).toBe(
      'the parameters: unrecognized key: "Extra"',
    );
  });
});
