/** Who gets in at the server's door, who does not and hears why; over real sockets. */
import * as http2 from 'node:http2';
import * as net from 'node:net';
import * as tls from 'node:tls';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { TlsCredentials } from '#identity/tls-identity';
import { connectPool } from './pool-client.ts';
import { startManagerServer } from './manager-server.ts';
import { failure, ServerRig } from '#testkit/server-rig';

let rig: ServerRig;
let first: ServerRig | undefined;
beforeEach(async () => {
  rig = await ServerRig.start(first);
  first ??= rig;
});
afterEach(() => {
  rig.end();
  expect(rig.faults).toEqual([]);
});

describe('users', () => {
  it('one with a certificate of the pool is answered, under its own name', async () => {
    const { pool: rpc } = rig.client(rig.alice);
    expect(await rpc.getStatus({})).toMatchObject({ version: '0.1.0', gpus: 5, gpusFree: 6 });
    await rpc.retry({ requestId: 'r1', bindings: ['b1'] });
    expect(rig.pool.commands).toEqual([
      {
        caller: { name: 'user/alice' },
        command: { kind: 'retry', requestId: 'r1', bindings: ['b1'] },
      },
    ]);
  });

  it.each([
    ['of another CA', () => rig.issued.strange('user', 'eve'), 'unauthenticated', 'another CA'],
    ['expired', () => rig.issued.expired('user', 'bob'), 'unauthenticated', 'expired on'],
    ['of a host', () => rig.issued.of('host', 'h1'), 'permission_denied', 'is a host: PoolService'],
    ['of a manager', () => rig.issued.of('manager', 'm2'), 'permission_denied', 'is a manager'],
  ])('one %s is refused and hears why', async (_what, credentials, code, says) => {
    const error = await failure(rig.client(await credentials()).pool.getStatus({}));
    expect(error.code).toBe(code);
    expect(error.message).toContain(says);
    const stream = rig.client(await credentials()).pool.watch({ after: 0n });
    const inStream = await failure(stream[Symbol.asyncIterator]().next());
    expect(inStream.message).toContain(says);
    expect(rig.pool.commands).toEqual([]);
  });

  it.each([
    ['ca', 'certs/ca.pem', 'credentials.ca: not a certificate in PEM form'],
    ['cert', 'certs/user-alice.pem', 'credentials.cert: not a certificate in PEM form'],
    ['key', 'certs/user-alice-key.pem', 'credentials.key: not a private key in PEM form'],
  ])(
    'a %s that is the name of a file is said so, not taken for a lost connection',
    async (field, text, says) => {
      const client = rig.client({ ...rig.alice, [field]: text });
      const error = await failure(client.pool.getStatus({}));
      expect(error).toMatchObject({ code: 'invalid_argument', message: says });
    },
  );

  it('a key of another certificate is said so', async () => {
    const { key } = await rig.issued.of('host', 'h1');
    const error = await failure(rig.client({ ...rig.alice, key }).pool.getStatus({}));
    expect(error.code).toBe('invalid_argument');
    expect(error.message).toContain('credentials.key: not the private key of credentials.cert');
  });

  it('refusals of certificates are reported with where they came from', async () => {
    await failure(rig.client(await rig.issued.expired('user', 'bob')).pool.getStatus({}));
    expect(rig.refused.map(({ code }) => code)).toEqual(['unauthenticated']);
    expect(rig.refused[0]?.message).toMatch(
      /^connection from 127\.0\.0\.1:\d+ refused: its certificate expired on /,
    );
  });

  it('one without a certificate is refused, and what it sends is not looked at', async () => {
    const session = http2.connect(`https://127.0.0.1:${rig.address.port}`, {
      ca: rig.manager.ca,
      checkServerIdentity: () => undefined,
    });
    session.on('error', () => {});
    const { status, body } = await post(session, 'dxpu.pool.v1.PoolService/Retry', '{"nonsense');
    expect(status).toBe(401);
    expect(JSON.parse(body)).toMatchObject({
      code: 'unauthenticated',
      message: 'it showed no certificate',
    });
    session.destroy();
  });

  // One that spoke HTTP/1.1 was looked at with its first request, so that who asked nothing was not counted.
  it('over HTTP/1.1 too, one counts or is refused from its handshake on', async () => {
    const shake = (credentials: Partial<TlsCredentials>): tls.TLSSocket => {
      const { ca } = rig.manager;
      const socket = tls.connect({
        ...rig.address,
        ca,
        ...credentials,
        ALPNProtocols: ['http/1.1'],
        checkServerIdentity: () => undefined,
      });
      rig.keep({ close: () => socket.destroy() });
      return socket.on('error', () => {});
    };
    const alice = shake({ cert: rig.alice.cert, key: rig.alice.key });
    await vi.waitFor(() => expect(rig.server.connections().get('user/alice')).toBe(1));
    alice.destroy();
    await vi.waitFor(() => expect(rig.server.connections().size).toBe(0));
    shake({});
    await vi.waitFor(() =>
      expect(rig.refused.map(({ code }) => code)).toEqual(['unauthenticated']),
    );
  });

  it('TLS 1.2 gets nowhere, and that is reported', async () => {
    const { ca, cert, key } = rig.alice;
    const session = http2.connect(`https://127.0.0.1:${rig.address.port}`, {
      ca,
      cert,
      key,
      maxVersion: 'TLSv1.2',
      checkServerIdentity: () => undefined,
    });
    await new Promise((resolve) => session.once('error', resolve));
    await vi.waitFor(() => expect(rig.refused.length).toBeGreaterThan(0));
    expect(rig.refused[0]?.message).toContain('the TLS handshake failed');
  });
});

describe('the manager is checked too, before anything is sent', () => {
  it.each([
    ['is another one', () => rig.client(rig.alice, { manager: 'm9' }), 'permission_denied', 'm9'],
    [
      'trusts another CA',
      async () => rig.client(await rig.issued.foreign('user', 'eve')),
      'unauthenticated',
      'another CA',
    ],
  ])('%s', async (_what, make, code, says) => {
    const error = await failure((await make()).pool.getStatus({}));
    expect(error.code).toBe(code);
    expect(error.message).toContain(
      `cannot connect to the manager at 127.0.0.1:${rig.address.port}`,
    );
    expect(error.message).toContain(says);
  });

  it('a box that pretends to be a manager is none', async () => {
    rig.server.close();
    rig.manager = await rig.issued.of('box', 'b1');
    await rig.restart();
    rig.manager = await rig.issued.of('manager', 'm1');
    const error = await failure(rig.client(rig.alice).pool.getStatus({}));
    expect(error).toMatchObject({ code: 'permission_denied', details: { reason: 'wrong-kind' } });
  });

  it('nobody there is unavailable, with the address', async () => {
    const { pool: rpc } = rig.client(rig.alice);
    await rpc.getStatus({});
    rig.server.close();
    await vi.waitFor(async () => {
      const error = await failure(rpc.getStatus({}));
      expect(error.code).toBe('unavailable');
      expect(error.message).toContain('nobody listens there');
    });
  });

  it('one that takes connections and says nothing is unavailable within the time given', async () => {
    const mute = net.createServer(() => {});
    await new Promise<void>((resolve) => mute.listen(0, '127.0.0.1', resolve));
    rig.keep({ close: () => mute.close() });
    const { port } = mute.address() as net.AddressInfo;
    const silent = connectPool({
      host: '127.0.0.1',
      port,
      credentials: rig.alice,
      openWithinMs: 50,
    });
    rig.keep(silent);
    const error = await failure(silent.pool.getStatus({}));
    expect(error.code).toBe('unavailable');
    expect(error.message).toContain('no answer within 50 ms');
  });
});

it('a port in use, and an address that is not ours, are said so', async () => {
  const options = {
    shell: rig.shell,
    credentials: rig.manager,
    report: { refused: () => {}, fault: () => {} },
    version: '0.1.0',
  };
  const taken = await failure(startManagerServer({ ...options, listen: [rig.address] }));
  expect(taken).toMatchObject({
    code: 'already_exists',
    details: { address: `127.0.0.1:${rig.address.port}` },
  });
  expect(taken.message).toContain('another process listens there');
  const free = { host: '127.0.0.1', port: 0 };
  const strange = await failure(
    startManagerServer({ ...options, listen: [free, { host: '192.0.2.1', port: 0 }] }),
  );
  expect(strange.message).toContain(
    'cannot listen on 192.0.2.1:0: this machine has no such address',
  );
});

function post(
  session: http2.ClientHttp2Session,
  path: string,
  body: string,
): Promise<{ status: number; body: string }> {
  return new Promise((resolve, reject) => {
    const stream = session.request({
      ':method': 'POST',
      ':path': `/${path}`,
      'content-type': 'application/json',
    });
    let status = 0;
    let text = '';
    stream.on('response', (headers) => {
      status = headers[':status'] ?? 0;
    });
    stream.on('data', (chunk: Buffer) => {
      text += chunk.toString();
    });
    stream.on('end', () => resolve({ status, body: text }));
    stream.on('error', reject);
    stream.end(body);
  });
}
