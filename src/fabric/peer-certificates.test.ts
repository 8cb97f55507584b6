import { createPrivateKey } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { once } from 'node:events';
import * as net from 'node:net';
import * as os from 'node:os';
import * as path from 'node:path';
import * as tls from 'node:tls';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { RealClock } from '#base/clock';
import type { DxpuError } from '#base/errors';
import { isIdentityName, parseIdentityUri } from '#identity/identity';
import {
  createAuthority,
  initAuthorityFiles,
  issueCertificate,
  issueFiles,
  issueWithNames,
  type KeyAndCertificate,
} from '#identity/certificates';
import { connectTransport, listenTransports, type Listener } from './socket-endpoint.ts';
import {
  type ExpectedPeer,
  identityOfNames,
  loadCredentials,
  type TlsCredentials,
} from '#identity/tls-identity';
import type { PeerIdentity } from './transport.ts';

const clock = new RealClock();
const host: PeerIdentity = { kind: 'host', id: 'h1' };
const box: PeerIdentity = { kind: 'box', id: 'b1' };
let ca: KeyAndCertificate;
let otherCa: KeyAndCertificate;

beforeAll(async () => {
  ca = await createAuthority('test pool', Date.now());
  otherCa = await createAuthority('another pool', Date.now());
});

function credentials(identity: PeerIdentity, pair: KeyAndCertificate): TlsCredentials {
  return { identity, ca: ca.certPem, cert: pair.certPem, key: pair.keyPem };
}

async function issued(identity: PeerIdentity, days?: number): Promise<TlsCredentials> {
  const options = { nowMs: Date.now(), ...(days === undefined ? {} : { days }) };
  return credentials(identity, await issueCertificate(ca, identity, options));
}

interface Meeting {
  readonly server: { peer?: PeerIdentity; refused?: DxpuError };
  readonly client: { peer?: PeerIdentity; refused?: DxpuError };
}

/** A server and a client meet on loopback: what each of them says of the other. */
async function meet(
  serverHas: TlsCredentials,
  clientHas: TlsCredentials,
  clientExpects: ExpectedPeer<PeerIdentity['kind']> = { kind: 'box', id: 'b1' },
): Promise<Meeting> {
  const result: Meeting = { server: {}, client: {} };
  let listener: Listener | undefined;
  try {
    await new Promise<void>((done, fail) => {
      listenTransports({
        host: '127.0.0.1',
        port: 0,
        clock,
        protection: { kind: 'tls', credentials: serverHas, expected: { kind: 'host' } },
        onTransport: (transport) => {
          result.server.peer = transport.peer;
          transport.close();
          done();
        },
        onRefused: (error) => {
          result.server.refused = error;
          done();
        },
      })
        .then((there) => {
          listener = there;
          return connectTransport({
            host: '127.0.0.1',
            port: there.port,
            clock,
            protection: { kind: 'tls', credentials: clientHas, expected: clientExpects },
          });
        })
        .then((transport) => {
          result.client.peer = transport.peer;
          transport.close();
        })
        .catch((error: DxpuError) => {
          result.client.refused = error;
          if (listener === undefined) fail(error);
        });
    });
    // The server decides after the client, except where the client refused: both have spoken.
    await expect
      .poll(() => result.client.peer ?? result.client.refused, { timeout: 5000 })
      .toBeDefined();
  } finally {
    listener?.close();
  }
  return result;
}

describe('identities', () => {
  it('are URIs of one pool, a host or a box', () => {
    expect(parseIdentityUri('spiffe://pool/host/h1')).toEqual(host);
    expect(parseIdentityUri('spiffe://pool/box/rack-1.b_2')).toEqual({
      kind: 'box',
      id: 'rack-1.b_2',
    });
    for (const wrong of [
      'spiffe://pool/printer/m1',
      'spiffe://other/host/h1',
      'spiffe://pool/host/',
      'spiffe://pool/host/a/b',
      'spiffe://pool/host/-a',
      'https://pool/host/h1',
      'spiffe://pool/host/h1\n',
    ]) {
      expect(parseIdentityUri(wrong), wrong).toBeUndefined();
    }
  });

  it('have names of 1 to 63 harmless characters', () => {
    expect(isIdentityName('a'.repeat(63))).toBe(true);
    for (const wrong of ['', 'a'.repeat(64), 'a/b', 'a b', '.a', 'ä', 'a\n']) {
      expect(isIdentityName(wrong), JSON.stringify(wrong)).toBe(false);
    }
  });

  it('are refused with no, two or unknown URI names', () => {
    expect(identityOfNames('URI:spiffe://pool/host/h1, DNS:example')).toEqual(host);
    expect(() => identityOfNames(undefined)).toThrow(/0 URI names/);
    expect(() => identityOfNames('DNS:spiffe')).toThrow(/0 URI names/);
    expect(() => identityOfNames('URI:spiffe://pool/host/h1, URI:spiffe://pool/host/h2')).toThrow(
      /2 URI names/,
    );
    expect(() => identityOfNames('URI:spiffe://pool/printer/p')).toThrow(/not of the form/);
  });
});

describe('mutual TLS', () => {
  it('lets a host and a box of one CA know each other', async () => {
    const result = await meet(await issued(box), await issued(host));
    expect(result.server.peer).toEqual(host);
    expect(result.client.peer).toEqual(box);
  });

  it('refuses a client of another CA', async () => {
    const stranger = await issueCertificate(otherCa, host, { nowMs: Date.now() });
    const result = await meet(await issued(box), credentials(host, stranger));
    expect(result.server.refused?.code).toBe('unauthenticated');
    expect(result.server.refused?.message).toMatch(/from 127\.0\.0\.1:\d+ refused: .*another CA/);
    expect(result.server.peer).toBeUndefined();
  });

  it('refuses a server of another CA', async () => {
    const stranger = await issueCertificate(otherCa, box, { nowMs: Date.now() });
    const result = await meet(credentials(box, stranger), await issued(host));
    expect(result.client.refused?.code).toBe('unauthenticated');
    expect(result.client.refused?.message).toMatch(/cannot connect to .*another CA/);
  });

  it('refuses an expired client and an expired server, with the date', async () => {
    const client = await meet(await issued(box), await issued(host, -1));
    expect(client.server.refused?.message).toMatch(/certificate expired on .* \d{4} GMT/);
    const server = await meet(await issued(box, -1), await issued(host));
    expect(server.client.refused?.message).toMatch(/certificate expired on .* \d{4} GMT/);
  });

  it('refuses the wrong kind on either side', async () => {
    const boxAsClient = await meet(await issued(box), await issued({ kind: 'box', id: 'b2' }));
    expect(boxAsClient.server.refused?.code).toBe('permission_denied');
    expect(boxAsClient.server.refused?.message).toContain(
      'spiffe://pool/box/b2, a host is expected',
    );
    const hostAsServer = await meet(await issued({ kind: 'host', id: 'h2' }), await issued(host));
    expect(hostAsServer.client.refused?.message).toContain(
      'spiffe://pool/host/h2, a box is expected',
    );
  });

  it('refuses a box that is another than the one wanted', async () => {
    const result = await meet(await issued({ kind: 'box', id: 'b2' }), await issued(host));
    expect(result.client.refused?.code).toBe('permission_denied');
    expect(result.client.refused?.message).toContain(
      'spiffe://pool/box/b2, but box b1 is expected',
    );
  });

  it('refuses a certificate with two identities', async () => {
    const uris = ['spiffe://pool/host/h1', 'spiffe://pool/host/h2'];
    const pair = await issueWithNames(ca, uris, 'h1', { nowMs: Date.now() });
    const result = await meet(await issued(box), credentials(host, pair));
    expect(result.server.refused?.message).toContain('2 URI names');
  });

  it('refuses a client without a certificate, and one that stops at TLS 1.2', async () => {
    const refused: DxpuError[] = [];
    const listener = await listenTransports({
      host: '127.0.0.1',
      port: 0,
      clock,
      protection: { kind: 'tls', credentials: await issued(box), expected: { kind: 'host' } },
      onTransport: (transport) => transport.close(),
      onRefused: (error) => refused.push(error),
    });
    const options = { host: '127.0.0.1', port: listener.port, rejectUnauthorized: false };
    try {
      tls.connect(options).on('error', () => {});
      await expect.poll(() => refused.length).toBe(1);
      expect(refused[0]?.message).toContain('showed no certificate');
      tls.connect({ ...options, maxVersion: 'TLSv1.2' }).on('error', () => {});
      await expect.poll(() => refused.length).toBe(2);
      expect(refused[1]?.message).toContain('does not speak TLS 1.3');
    } finally {
      listener.close();
    }
  });

  // It was "connection from unknown:0": a socket that is gone does not know its peer.
  it('names the address of a client that goes away in the middle of the handshake', async () => {
    const refused: DxpuError[] = [];
    const listener = await listenTransports({
      host: '127.0.0.1',
      port: 0,
      clock,
      protection: { kind: 'tls', credentials: await issued(box), expected: { kind: 'host' } },
      onTransport: (transport) => transport.close(),
      onRefused: (error) => refused.push(error),
    });
    try {
      const client = net.connect(listener.port, '127.0.0.1');
      await once(client, 'connect');
      const from = `127.0.0.1:${client.localPort}`;
      // The beginning of a TLS record of 256 bytes that never come.
      client.write(Buffer.from('1603010100', 'hex'), () => client.resetAndDestroy());
      await expect.poll(() => refused.length).toBe(1);
      expect(refused[0]?.message).toContain(`connection from ${from} refused: the peer went away`);
    } finally {
      listener.close();
    }
  });

  it('names the address when nobody listens, and when the port is taken', async () => {
    const listener = await listenTransports({
      host: '127.0.0.1',
      port: 0,
      clock,
      protection: { kind: 'tls', credentials: await issued(box), expected: { kind: 'host' } },
      onTransport: (transport) => transport.close(),
      onRefused: () => {},
    });
    const where = `127.0.0.1:${listener.port}`;
    const again = listenTransports({
      host: '127.0.0.1',
      port: listener.port,
      clock,
      protection: { kind: 'tls', credentials: await issued(box), expected: { kind: 'host' } },
      onTransport: (transport) => transport.close(),
      onRefused: () => {},
    });
    await expect(again).rejects.toThrow(`cannot listen on ${where}: the port is in use`);
    listener.close();
    await expect(
      connectTransport({
        host: '127.0.0.1',
        port: listener.port,
        clock,
        protection: { kind: 'tls', credentials: await issued(host), expected: { kind: 'box' } },
      }),
    ).rejects.toThrow(`cannot connect to ${where}: nobody listens there`);
  });
});

describe('certificate files', () => {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'dxpu-cert-'));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  const nowMs = Date.now();

  it('are readable by their user alone, load, and are not replaced by accident', async () => {
    await expect(issueFiles(folder, host, { nowMs })).rejects.toThrow(/there is no CA here; make/);
    const authority = await initAuthorityFiles(folder, 'files', { nowMs });
    const files = await issueFiles(folder, host, { nowMs });
    for (const file of [authority.cert, authority.key, files.cert, files.key]) {
      expect(statSync(file).mode & 0o777, file).toBe(0o600);
    }
    expect(loadCredentials(files, host, nowMs).cert).toBe(readFileSync(files.cert, 'utf8'));
    await expect(initAuthorityFiles(folder, 'files', { nowMs })).rejects.toThrow(/--force/);
    await expect(issueFiles(folder, host, { nowMs })).rejects.toThrow(/already there/);
    await issueFiles(folder, host, { nowMs, force: true });
    expect(loadCredentials(files, host, nowMs).key).toBe(readFileSync(files.key, 'utf8'));
  });

  it('are refused at the start, by name, when something is wrong with them', async () => {
    const files = await issueFiles(folder, { kind: 'host', id: 'h9' }, { nowMs });
    const h9: PeerIdentity = { kind: 'host', id: 'h9' };
    const boxFiles = await issueFiles(folder, box, { nowMs });
    const wrong = (changes: Partial<typeof files>, identity = h9, atMs = nowMs) => {
      return () => loadCredentials({ ...files, ...changes }, identity, atMs);
    };
    const missing = path.join(folder, 'nowhere.pem');
    expect(wrong({ cert: missing })).toThrow(
      `${missing}: cannot read the certificate: there is no`,
    );
    expect(wrong({ key: boxFiles.key })).toThrow(`${boxFiles.key}: not the private key of`);
    expect(wrong({}, box)).toThrow(
      'names spiffe://pool/host/h9, this process is spiffe://pool/box/b1',
    );
    expect(wrong({}, h9, nowMs + 366 * 86_400_000)).toThrow(/expired on/);
    expect(wrong({}, h9, nowMs - 86_400_000)).toThrow(/not valid before/);
    const garbage = path.join(folder, 'garbage.pem');
    writeFileSync(garbage, 'no certificate');
    expect(wrong({ cert: garbage })).toThrow(`${garbage}: not a certificate in PEM form`);
    const foreign = path.join(folder, 'foreign.pem');
    writeFileSync(foreign, otherCa.certPem);
    expect(wrong({ ca: foreign })).toThrow(/not issued by the CA in .*foreign\.pem/);
  });

  // Each once ended in OpenSSL's codes, or without a way out.
  it('say in words what a key is not, and how to get a right one', async () => {
    const identity: PeerIdentity = { kind: 'host', id: 'words' };
    const files = await issueFiles(folder, identity, { nowMs });
    const boxFiles = await issueFiles(folder, { kind: 'box', id: 'words' }, { nowMs });
    const said = (changes: Partial<typeof files>, who = identity): string => {
      try {
        loadCredentials({ ...files, ...changes }, who, nowMs);
      } catch (error) {
        return (error as DxpuError).message;
      }
      return '';
    };
    expect(said({ key: boxFiles.key })).toBe(
      `${boxFiles.key}: not the private key of ${files.cert}; issue both anew with: ` +
        'dxpu cert issue host words --force',
    );
    expect(said({}, { kind: 'box', id: 'other' })).toMatch(
      /issue its own with: dxpu cert issue box other$/,
    );
    expect(said({ key: files.cert })).toBe(`${files.cert}: not a private key in PEM form`);
    const encrypted = path.join(folder, 'encrypted.pem');
    const pem = createPrivateKey(readFileSync(files.key)).export({
      format: 'pem',
      type: 'pkcs8',
      cipher: 'aes-256-cbc',
      passphrase: 'secret',
    });
    writeFileSync(encrypted, pem);
    expect(said({ key: encrypted })).toMatch(/encrypted\.pem: the private key is encrypted/);
  });

  it('go into no folder that cannot be, and leave no folder where they cannot be written', async () => {
    const file = path.join(folder, 'a-file');
    writeFileSync(file, '');
    await expect(initAuthorityFiles(file, 'x', { nowMs })).rejects.toThrow(
      `${file} is there and is not a folder`,
    );
    // A path has at most 4095 bytes on Linux: that of the folder fits, that of its files does not.
    let deep = path.join(folder, 'deep');
    while (deep.length < 4080) deep += `/${'x'.repeat(Math.min(200, 4080 - deep.length))}`;
    await expect(initAuthorityFiles(deep, 'x', { nowMs })).rejects.toThrow(
      /cannot write .*ca-key\.pem: the name is too long; nothing was changed$/,
    );
    expect(existsSync(path.join(folder, 'deep'))).toBe(false);
  });

  it.skipIf(process.getuid?.() === 0)(
    'say so when the key is not readable (skipped: root reads all)',
    async () => {
      const files = await issueFiles(folder, { kind: 'host', id: 'locked' }, { nowMs });
      chmodSync(files.key, 0);
      expect(() => loadCredentials(files, { kind: 'host', id: 'locked' }, nowMs)).toThrow(
        `${files.key}: cannot read the private key: this user may not read it`,
      );
    },
  );
});
