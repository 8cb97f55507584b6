import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  closeSync,
  existsSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import * as net from 'node:net';
import * as path from 'node:path';
import * as tls from 'node:tls';
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { RealClock } from '#base/clock';
import { connectTransport } from '#fabric/socket-endpoint';
import { initAuthorityFiles, issueFiles } from '#identity/certificates';
import { buildDist, dxpu, isAlive, MAIN, Pool, Running, until } from './processes.ts';

let pool: Pool;
beforeAll(buildDist);
beforeEach(async () => {
  pool = new Pool();
  await pool.prepare();
});
afterEach(() => pool.end());

const nowMs = Date.now();
const box = { kind: 'box', id: 'b1' } as const;
const host = { kind: 'host', id: 'h1' } as const;

/** Both processes up, and no slot: neither has let the other in. */
async function refusedBy(refuser: Running, reason: RegExp): Promise<void> {
  await refuser.says(reason);
  const { stdout } = await pool.run('accel', 'run', 'sgemm', '--output', 'json');
  expect(stdout).toBe('');
}

describe('a peer', () => {
  it('with a certificate of another CA is refused by both sides, each with the reason', async () => {
    const other = pool.file('other');
    await initAuthorityFiles(other, 'another pool', { nowMs });
    await issueFiles(other, host, { nowMs });
    const text = `host: h1
certificates: { ca: other/ca.pem, cert: other/host-h1.pem, key: other/host-h1-key.pem }
`;
    const rest = readFileSync(pool.file('host.yaml'), 'utf8').split('\n').slice(2).join('\n');
    writeFileSync(pool.file('host.yaml'), `${text}${rest}`);
    pool.start('box');
    const stranger = pool.start('host');
    await refusedBy(
      stranger,
      /cannot connect to 127\.0\.0\.1:\d+: its certificate is of another CA/,
    );
  });

  // A second host of one name once left a line without its address, at the level of no importance.
  it('of a name that has a session is refused with its address; its own status says so', async () => {
    const box = pool.start('box');
    await box.says(/ready control=/);
    const first = pool.start('host');
    await first.says(/function added slot=1/);
    const other = pool.file('rival');
    const rival = new Running(['host', '--config', pool.file('host.yaml'), '--state', other]);
    try {
      await box.says(
        /warn .*refused: a session of host\/h1 is live peer=host h1 from=127\.0\.0\.1:\d+/,
      );
      await until(async () => {
        const { stdout } = await dxpu(['status', '--state', other]);
        return (
          /link to box b1: .*; refused: a session of host\/h1 is live/.exec(stdout) ?? undefined
        );
      }, 'the refusal in the status of the rival');
    } finally {
      await rival.stop('SIGKILL');
    }
  });

  it('with another CA is refused by the box too, when the host would let it pass', async () => {
    // The host trusts the box's CA, but shows a certificate of its own one.
    const other = pool.file('other');
    await initAuthorityFiles(other, 'another pool', { nowMs });
    const files = await issueFiles(other, host, { nowMs });
    const running = pool.start('box');
    await running.says(/ready control=/);
    const read = (file: string): string => readFileSync(file, 'utf8');
    const transport = await connectTransport({
      host: '127.0.0.1',
      port: pool.port,
      clock: new RealClock(),
      protection: {
        kind: 'tls',
        expected: box,
        credentials: {
          identity: host,
          ca: read(pool.file('ca.pem')),
          cert: read(files.cert),
          key: read(files.key),
        },
      },
    });
    await running.says(
      /connection from 127\.0\.0\.1:\d+ refused: its certificate is of another CA/,
    );
    transport.close();
  });

  it('that is another box than the path leads to is refused', async () => {
    await issueFiles(pool.folder, { kind: 'box', id: 'b2' }, { nowMs });
    pool.write({});
    const text = readFileSync(pool.file('box.yaml'), 'utf8');
    writeFileSync(
      pool.file('box.yaml'),
      text.replace('box: b1', 'box: b2').replaceAll('box-b1', 'box-b2'),
    );
    pool.start('box');
    const refuser = pool.start('host');
    await refusedBy(refuser, /it is spiffe:\/\/pool\/box\/b2, but box b1 is expected here/);
  });

  it('that is a host where a box belongs is refused', async () => {
    const files = await issueFiles(pool.folder, { kind: 'host', id: 'h2' }, { nowMs });
    const impostor = tls.createServer({
      ca: readFileSync(files.ca),
      cert: readFileSync(files.cert),
      key: readFileSync(files.key),
      requestCert: true,
    });
    impostor.on('tlsClientError', () => {});
    await new Promise<void>((resolve) => impostor.listen(pool.port, '127.0.0.1', resolve));
    const refuser = pool.start('host');
    await refusedBy(refuser, /it is spiffe:\/\/pool\/host\/h2, a box is expected here/);
    impostor.close();
  });
});

describe('a process', () => {
  async function refusesToStart(kind: 'box' | 'host', reason: string | RegExp): Promise<void> {
    const { status, stderr, stdout } = await pool.start(kind).ended;
    expect(stderr).toMatch(reason);
    expect(status).toBe(1);
    expect(stderr).not.toMatch(/^ {4}at /m);
    expect(stdout).toBe('');
  }

  it('whose own certificate has expired does not start', async () => {
    await issueFiles(pool.folder, host, { nowMs, days: -1, force: true });
    await refusesToStart('host', /host-h1\.pem: expired on .*dxpu cert issue host h1 --force/);
  });

  it('whose certificate is another’s does not start', async () => {
    await issueFiles(pool.folder, { kind: 'host', id: 'h2' }, { nowMs });
    renameSync(pool.file('host-h2.pem'), pool.file('host-h1.pem'));
    renameSync(pool.file('host-h2-key.pem'), pool.file('host-h1-key.pem'));
    await refusesToStart('host', /names spiffe:\/\/pool\/host\/h2, this process is .*host\/h1/);
  });

  it('without its key does not start', async () => {
    rmSync(pool.file('box-b1-key.pem'));
    await refusesToStart(
      'box',
      /box-b1-key\.pem: cannot read the private key: there is no such file/,
    );
  });

  it('whose port is in use does not start, and leaves no socket behind', async () => {
    const taken = net.createServer();
    await new Promise<void>((resolve) => taken.listen(pool.port, '127.0.0.1', resolve));
    await refusesToStart(
      'box',
      new RegExp(`cannot listen on 127\\.0\\.0\\.1:${pool.port}: the port is in use`),
    );
    taken.close();
    expect(readdirSync(pool.state)).toEqual([]);
  });

  it('with a mistake in its configuration names file, line and column', async () => {
    pool.write({ hostExtra: 'memry: []\n' });
    const file = path.join(pool.folder, 'host.yaml');
    await refusesToStart('host', `${file}:19:1: memry: unknown field; did you mean memory?`);
    const checked = await pool.run('host', '--config', file, '--check', '--output', 'json');
    expect(checked.status).toBe(1);
    expect(JSON.parse(checked.stderr)).toMatchObject({
      error: {
        code: 'invalid_argument',
        details: { problems: [{ line: 19, column: 1, field: 'memry' }] },
      },
    });
  });

  it('of a name that runs already does not start, and leaves the other alone', async () => {
    const first = pool.start('box');
    await first.says(/ready control=/);
    await refusesToStart('box', /another process with this name is running/);
    expect((await pool.run('status')).stdout).toContain('box b1: pid');
    const stop = await pool.run('stop');
    expect(stop.stdout).toBe('box-b1: stopped\n');
    // When the command has returned the process has ended, not before.
    expect(isAlive(first.pid)).toBe(false);
    expect((await first.ended).status).toBe(0);
    expect(readdirSync(pool.state)).toEqual([]);
  });

  // It once stayed for ever, or left its socket: nobody looked at the channel before it served.
  it('whose starter goes while it starts ends too, and leaves nothing', async () => {
    const args = ['box', '--config', pool.file('box.yaml'), '--state', pool.state];
    const child = spawn(process.execPath, [MAIN, ...args], {
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    });
    child.disconnect();
    const [status] = await once(child, 'exit');
    expect(status).toBe(0);
    expect(readdirSync(pool.state)).toEqual([]);
  });

  it.skipIf(!existsSync('/dev/full'))(
    'whose log has no space left serves (regression: it ended; skipped: there is no /dev/full)',
    async () => {
      const full = openSync('/dev/full', 'w');
      const args = ['box', '--config', pool.file('box.yaml'), '--state', pool.state];
      const child = spawn(process.execPath, [MAIN, ...args], { stdio: ['ignore', 'ignore', full] });
      const ended = once(child, 'exit');
      closeSync(full);
      try {
        const host = pool.start('host');
        await host.says(/function added slot=0/);
        expect((await pool.run('stop', '--process', 'box-b1')).status).toBe(0);
        expect((await ended)[0]).toBe(0);
      } finally {
        child.kill('SIGKILL');
      }
    },
  );

  it('killed outright leaves a socket that the next one replaces', async () => {
    const first = pool.start('box');
    await first.says(/ready control=/);
    await first.stop('SIGKILL');
    const second = pool.start('box');
    await second.says(/ready control=/);
    expect((await second.stop('SIGINT')).status).toBe(0);
  });

  it('whose host starts first is found once it is there', async () => {
    const waiting = pool.start('host');
    // No fault: the two may be started in any order.
    await waiting.says(/info .*waiting for box b1 at 127\.0\.0\.1:\d+: nobody listens there/);
    expect((await pool.run('tables')).stdout).toContain(
      'virtual slot 0 is waiting: no connection to box b1 yet: cannot connect',
    );
    pool.start('box');
    await waiting.says(/function added slot=1/);
  });
});
