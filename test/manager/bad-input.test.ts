/** A running manager and what it must not choke on. What the file of its store may be is in its own tests. */
import { mkdirSync, writeFileSync } from 'node:fs';
import * as path from 'node:path';
import Sqlite from 'better-sqlite3';
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { DxpuError } from '#base/errors';
import { initAuthorityFiles, issueFiles } from '#identity/certificates';
import type { PoolClient } from '#manager/rpc/pool-client';
import { SqliteStore } from '#manager/store/sqlite-store';
import { MAX_GPUS } from '#placement/demand';
import type { Refusal } from '#proto/generated/dxpu/pool/v1/pool_pb';
import { buildDist, Running, until } from '../e2e/processes.ts';
import { ManagerRig } from './manager-rig.ts';

type Pool = PoolClient['pool'];

const SIZES = { zones: 1, boxesPerZone: 2, slotsPerBox: 4, hostsPerZone: 1, slotsPerHost: 16 };
const GPUS = 8;

let rig: ManagerRig;
beforeAll(() => buildDist(), 120_000);
beforeEach(async () => {
  rig = await ManagerRig.prepare();
});
afterEach(() => rig.end());

async function start(maxPages?: number): Promise<Pool> {
  await rig.start(SIZES, maxPages);
  const client = await rig.connect('alice');
  await allFree(client);
  return client;
}

const allFree = (client: Pool): Promise<true> =>
  until(
    async () => ((await client.getStatus({})).gpusFree === GPUS ? true : undefined),
    'all GPU nodes to be free',
  );

/** What a call is refused with. Nothing of it may be there afterwards. */
async function refusal(client: Pool, call: Promise<unknown>): Promise<DxpuError> {
  const error = await call.then(
    () => expect.fail('it was not refused'),
    (thrown: DxpuError) => thrown,
  );
  const { gpusFree, bindings } = await client.getStatus({});
  expect({ gpusFree, bindings }).toEqual({ gpusFree: GPUS, bindings: 0 });
  return error;
}

describe('requests', () => {
  let client: Pool;
  beforeEach(async () => {
    client = await start();
  });

  it.each([1_000_000, MAX_GPUS + 1, 2 ** 32 - 1])('%d GPU nodes', async (gpus) => {
    const error = await refusal(
      client,
      client.bind({ requestId: 'r', demand: { gpus, host: 'h0-0' } }),
    );
    expect(error.code).toBe('invalid_argument');
    expect(error.message).toContain('gpus');
    expect(error.message).toContain(String(MAX_GPUS));
  });

  it('more GPU nodes than exist, and none', async () => {
    const bind = (gpus: number) => client.bind({ requestId: 'r', demand: { gpus, host: 'h0-0' } });
    const error = await refusal(client, bind(GPUS + 1));
    expect(error.code).toBe('resource_exhausted');
    const { reasons } = error.details['refusal'] as Refusal;
    expect(reasons.map((one) => one.reason)).toContain('too-few');
    const none = await refusal(client, bind(0));
    expect(none.code).toBe('invalid_argument');
    expect(none.message).toContain('gpus');
  });

  it('an unknown model and an unknown host, by their names', async () => {
    const model = await refusal(
      client,
      client.bind({ requestId: 'r', demand: { gpus: 1, host: 'h0-0', model: 'H9000' } }),
    );
    expect(model.code).toBe('resource_exhausted');
    expect((model.details['refusal'] as Refusal).reasons).toContainEqual(
      expect.objectContaining({ reason: 'model', count: GPUS }),
    );
    const host = await refusal(
      client,
      client.bind({ requestId: 'r', demand: { gpus: 1, host: 'h7' } }),
    );
    expect(JSON.stringify([host.message, host.details])).toContain('h7');
  });

  it.each([
    ['nothing', ''],
    ['a space', ' '],
    ['a path', '../../etc/passwd'],
    ['a NUL', 'a\u0000b'],
    ['a line break', 'a\nb'],
    ['SQL', "'; DROP TABLE log; --"],
    ['right to left', '\u202etxet'],
    ['a smile', '😀'],
    ['one letter too many', 'x'.repeat(65)],
    ['a million letters', 'x'.repeat(1_000_000)],
    ['a terminal sequence', '\u001b[2J'],
  ])('a name that is %s', async (_, name) => {
    const calls: Record<string, () => Promise<unknown>> = {
      'request id': () => client.bind({ requestId: name, demand: { gpus: 1, host: 'h0-0' } }),
      host: () => client.bind({ requestId: 'r', demand: { gpus: 1, host: name } }),
      binding: () => client.unbind({ requestId: 'r', bindings: [name] }),
      retry: () => client.retry({ requestId: 'r', bindings: [name] }),
    };
    for (const [what, call] of Object.entries(calls)) {
      const error = await refusal(client, call());
      expect(error.code, what).toMatch(/invalid_argument|resource_exhausted/);
      // The answer does not carry a megabyte back, nor control characters to a terminal.
      expect(error.message.length).toBeLessThan(1000);
      // oxlint-disable-next-line no-control-regex
      expect(error.message).not.toMatch(/[\u0000-\u001f\u007f]/);
    }
  });

  it('names of JavaScript’s own are names like any other', async () => {
    for (const name of ['__proto__', 'constructor', 'toString', 'hasOwnProperty']) {
      const unbind = client.unbind({ requestId: name, bindings: [name] });
      expect((await refusal(client, unbind)).code).toMatch(/not_found|invalid_argument/);
      const bind = client.bind({ requestId: name, demand: { gpus: 1, host: name } });
      expect((await refusal(client, bind)).code).toMatch(/resource_exhausted|not_found|invalid/);
    }
  });

  it('a request of a million items', async () => {
    const bindings = Array.from({ length: 1_000_000 }, (_, index) => `b${index}`);
    const error = await refusal(client, client.unbind({ requestId: 'r', bindings }));
    expect(error.code).toBe('invalid_argument');
    expect(error.message).toContain('1000000');
  });

  it('a request that is longer than any may be', async () => {
    // 20 MiB; at most 16 are read. Its connection is its own: what it does to it is its own fault.
    const bindings = Array.from({ length: 20 }, () => 'x'.repeat(2 ** 20));
    const rude = await rig.connect('bob');
    const error = await refusal(client, rude.unbind({ requestId: 'r', bindings }));
    expect(error.code).toMatch(/resource_exhausted|invalid_argument/);
  });

  it('the same id with other contents, and a binding that is not there', async () => {
    const { bindings } = await client.bind({ requestId: 'r', demand: { gpus: 1, host: 'h0-0' } });
    await expect(
      client.bind({ requestId: 'r', demand: { gpus: 2, host: 'h0-0' } }),
    ).rejects.toMatchObject({ code: 'already_exists' });
    // One that is not there: the other stays too.
    await expect(
      client.unbind({ requestId: 'u', bindings: [bindings[0]!.id, 'b99'] }),
    ).rejects.toMatchObject({
      code: 'not_found',
      message: expect.stringContaining('b99') as string,
    });
    await until(
      async () => ((await client.getStatus({})).bindingsAttached === 1 ? true : undefined),
      'the binding to stay attached',
    );
  });
});

it('a full disk: nothing acknowledged is lost, nothing is half done, and with room it goes on', async () => {
  // An empty store takes some 30 pages of 4 KiB, this inventory a few more.
  const client = await start(60);
  const acknowledged = new Set<string>();
  const gone = new Set<string>();
  let failure: DxpuError | undefined;
  for (let round = 0; failure === undefined && round < 1000; round++) {
    try {
      const bound = await client.bind({
        requestId: `r${round}`,
        demand: { gpus: 2, host: 'h0-0' },
      });
      for (const { id } of bound.bindings) acknowledged.add(id);
      const ids = bound.bindings.map((one) => one.id);
      await client.unbind({ requestId: `u${round}`, bindings: ids });
      for (const id of ids) gone.add(id);
    } catch (error) {
      failure = error as DxpuError;
      // All are still owned by those who leave, or an earlier commit has failed: not the disk's word.
      if ((failure.details['refusal'] as Refusal | undefined) !== undefined) failure = undefined;
    }
  }
  expect(failure?.code).toBe('resource_exhausted');
  expect(failure?.message).toContain('the disk is full');
  expect(acknowledged.size).toBeGreaterThan(4);
  expect(rig.complaints.join('\n')).toContain('the disk is full');
  expect(rig.complaints.join('\n')).not.toContain('fatal');
  // It still answers.
  expect((await client.getStatus({})).gpus).toBe(GPUS);
  rig.stop();

  const store = await SqliteStore.open(rig.store, { version: '0.1.0' });
  const seen = new Set(store.log(0, 1e6).map((entry) => entry.binding?.id));
  for (const id of acknowledged) expect(seen, `${id} was acknowledged`).toContain(id);
  for (const binding of store.load().bindings) {
    // Whoever was told that it is given back finds it so.
    if (gone.has(binding.id)) expect(binding.goal).toBe('free');
  }
  store.close();

  // With room again, a new manager brings everything to its end.
  await rig.start(SIZES);
  const again = await rig.connect('alice');
  const { bindings } = await again.listBindings({ pageSize: 1000 });
  const left = bindings.filter((one) => !one.leaving).map((one) => one.id);
  if (left.length > 0) await again.unbind({ requestId: 'rest', bindings: left });
  await allFree(again);
  expect((await again.getStatus({})).bindings).toBe(0);
}, 60_000);

describe('dxpu manager', () => {
  let config: string;
  beforeEach(async () => {
    const nowMs = Date.now();
    await initAuthorityFiles(rig.folder, 'bad input', { nowMs });
    await issueFiles(rig.folder, { kind: 'manager', id: 'm1' }, { nowMs });
    config = path.join(rig.folder, 'manager.yaml');
    writeFileSync(
      config,
      `manager: m1
certificates: { ca: ca.pem, cert: manager-m1.pem, key: manager-m1-key.pem }
listen: ["127.0.0.1:0"]
store: store
`,
    );
  });

  const begin = (state: string): Running => {
    mkdirSync(path.join(rig.folder, state));
    return new Running([
      'manager',
      '--config',
      config,
      '--state',
      path.join(rig.folder, state),
      '--log-format',
      'text',
    ]);
  };

  it('a store that another manager has open: refused with the process that has it', async () => {
    const first = begin('one');
    await first.says(/ready/);
    const second = await begin('two').ended;
    expect(second.status).toBe(1);
    expect(second.stderr).toContain(
      `another manager has ${path.join(rig.store, 'pool.db')} open (process ${first.pid})`,
    );
    expect((await first.stop()).status).toBe(0);
  });

  it('a store of a newer version: refused with the version, and left alone', async () => {
    (await SqliteStore.open(rig.store, { version: '9.9.9' })).close();
    const db = new Sqlite(path.join(rig.store, 'pool.db'));
    db.exec(`INSERT INTO migration VALUES ('9999-tomorrow', '2040-01-01')`);
    db.close();
    const { status, stderr } = await begin('one').ended;
    expect(status).toBe(1);
    expect(stderr).toContain('was written by dxpu 9.9.9');
    expect(stderr).toContain('Run dxpu 9.9.9 or newer with it');
    expect(stderr).not.toMatch(/\bat .*\.js:/);
  });
});
