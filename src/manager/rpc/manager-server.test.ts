/** The server over real sockets: who gets in, who does not and hears why, and what streams survive. */
import { spawn } from 'node:child_process';
import * as http2 from 'node:http2';
import * as https from 'node:https';
import * as net from 'node:net';
import { create } from '@bufbuild/protobuf';
import { createClient } from '@connectrpc/connect';
import { afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { RealClock } from '#base/clock';
import { DxpuError } from '#base/errors';
import type { TlsCredentials } from '#identity/tls-identity';
import { secureOptions } from '#identity/tls-identity';
import type { AgentHello, AgentReport } from '#proto/agent-messages';
import { helloToWire, orderFromWire, reportToWire } from '#proto/agent-wire';
import {
  AgentService,
  ConnectRequestSchema,
  type ConnectRequest,
} from '#proto/generated/dxpu/agent/v1/agent_pb';
import { connectManager, type ManagerConnection } from '#proto/manager-connection';
import { fromRpcError } from '#proto/rpc-error';
import { PoolCredentials } from '#testkit/pool-credentials';
import { TinyPool } from '#testkit/tiny-pool';
import { ManagerShell } from '../shell/manager-shell.ts';
import { MemoryStore } from '../store/memory-store.ts';
import { type ManagerServer, startManagerServer } from './manager-server.ts';
import { connectPool, type PoolClient } from './pool-client.ts';

let issued: PoolCredentials;
let manager: TlsCredentials;
let alice: TlsCredentials;
let h1: TlsCredentials;

let store: MemoryStore;
let pools: TinyPool[];
let shell: ManagerShell;
let server: ManagerServer;
let refused: DxpuError[];
let faults: unknown[];
const toClose: { close(): void }[] = [];

beforeAll(async () => {
  issued = await PoolCredentials.create();
  manager = await issued.of('manager', 'm1');
  alice = await issued.of('user', 'alice');
  h1 = await issued.of('host', 'h1');
});

beforeEach(async () => {
  store = new MemoryStore();
  refused = [];
  faults = [];
  await start();
});

afterEach(() => {
  for (const one of toClose.splice(0)) one.close();
  shell.stop('the test is over');
  server.close();
  expect(faults).toEqual([]);
});

async function start(port = 0): Promise<void> {
  pools = [];
  const quiet = { info: () => {}, warn: () => {}, error: () => {} };
  shell = new ManagerShell({
    store,
    clock: new RealClock(),
    makePool: (begin) => {
      pools.push(new TinyPool(begin));
      return pools.at(-1)!;
    },
    log: quiet,
    onFatal: (error) => faults.push(error),
  });
  server = await startManagerServer({
    shell,
    credentials: manager,
    listen: [{ host: '127.0.0.1', port }],
    report: { refused: (error) => refused.push(error), fault: (thrown) => faults.push(thrown) },
    version: '0.1.0',
    keepAlive: { intervalMs: 50, timeoutMs: 400 },
  });
}

const pool = (): TinyPool => pools.at(-1)!;
const address = (): { host: string; port: number } => server.addresses[0]!;

function client(credentials: TlsCredentials, options: { manager?: string } = {}): PoolClient {
  const made = connectPool({ ...address(), credentials, ...options });
  toClose.push(made);
  return made;
}

async function failure(promise: Promise<unknown>): Promise<DxpuError> {
  const error = await promise.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (error instanceof DxpuError) return error;
  throw new Error(`expected a DxpuError, not ${String(error)}`);
}

const hello = (id: string, kind: 'host' | 'box' = 'host'): AgentHello =>
  kind === 'host'
    ? { kind, id, instance: 'i1', version: '0.1.0', reach: [] }
    : { kind, id, instance: 'i1', version: '0.1.0', boxKind: 'pcie', zone: '', endpoints: [] };
const report = (refusedText = '', whole = true): AgentReport => ({
  kind: 'host',
  applied: 0,
  whole,
  slots: [],
  paths: [],
  refused: refusedText,
});

/** One stream of an agent. */
class AgentClient {
  readonly orders: number[] = [];
  readonly ended: Promise<DxpuError | undefined>;
  readonly connection: ManagerConnection;
  #messages: ConnectRequest[] = [];
  #wake: (() => void) | undefined;
  #isOver = false;

  constructor(credentials: TlsCredentials) {
    this.connection = connectManager({ ...address(), credentials });
    toClose.push(this.connection);
    this.ended = this.#run();
  }

  say(...messages: ConnectRequest[]): this {
    this.#messages.push(...messages);
    this.#wake?.();
    return this;
  }

  /** Says nothing more, in order. */
  finish(): void {
    this.#isOver = true;
    this.#wake?.();
  }

  async #run(): Promise<DxpuError | undefined> {
    try {
      const answers = createClient(AgentService, this.connection.transport).connect(this.#say());
      for await (const one of answers) this.orders.push(orderFromWire(one).revision);
      return undefined;
    } catch (error) {
      return fromRpcError(error);
    }
  }

  async *#say(): AsyncGenerator<ConnectRequest> {
    for (;;) {
      yield* this.#messages.splice(0);
      if (this.#isOver) return;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }
}

describe('users', () => {
  it('one with a certificate of the pool is answered, under its own name', async () => {
    const { pool: rpc } = client(alice);
    expect(await rpc.getStatus({})).toMatchObject({ version: '0.1.0', gpus: 5, gpusFree: 6 });
    await rpc.retry({ requestId: 'r1', bindings: ['b1'] });
    expect(pool().commands).toEqual([
      {
        caller: { name: 'user/alice' },
        command: { kind: 'retry', requestId: 'r1', bindings: ['b1'] },
      },
    ]);
  });

  it.each([
    ['of another CA', () => issued.strange('user', 'eve'), 'unauthenticated', 'another CA'],
    ['expired', () => issued.expired('user', 'bob'), 'unauthenticated', 'expired on'],
    ['of a host', () => issued.of('host', 'h1'), 'permission_denied', 'is a host: PoolService'],
    ['of a manager', () => issued.of('manager', 'm2'), 'permission_denied', 'is a manager'],
  ])('one %s is refused and hears why', async (_what, credentials, code, says) => {
    const error = await failure(client(await credentials()).pool.getStatus({}));
    expect(error.code).toBe(code);
    expect(error.message).toContain(says);
    const stream = client(await credentials()).pool.watch({ after: 0n });
    const inStream = await failure(stream[Symbol.asyncIterator]().next());
    expect(inStream.message).toContain(says);
    expect(pool().commands).toEqual([]);
  });

  it('refusals of certificates are reported with where they came from', async () => {
    await failure(client(await issued.expired('user', 'bob')).pool.getStatus({}));
    expect(refused.map(({ code }) => code)).toEqual(['unauthenticated']);
    expect(refused[0]?.message).toMatch(
      /^connection from 127\.0\.0\.1:\d+ refused: its certificate expired on /,
    );
  });

  it('one without a certificate is refused, and what it sends is not looked at', async () => {
    const session = http2.connect(`https://127.0.0.1:${address().port}`, {
      ca: manager.ca,
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

  it('TLS 1.2 gets nowhere, and that is reported', async () => {
    const { ca, cert, key } = alice;
    const session = http2.connect(`https://127.0.0.1:${address().port}`, {
      ca,
      cert,
      key,
      maxVersion: 'TLSv1.2',
      checkServerIdentity: () => undefined,
    });
    await new Promise((resolve) => session.once('error', resolve));
    await vi.waitFor(() => expect(refused.length).toBeGreaterThan(0));
    expect(refused[0]?.message).toContain('the TLS handshake failed');
  });
});

describe('the manager is checked too, before anything is sent', () => {
  it.each([
    ['is another one', () => client(alice, { manager: 'm9' }), 'permission_denied', 'm9'],
    [
      'trusts another CA',
      async () => client(await issued.foreign('user', 'eve')),
      'unauthenticated',
      'another CA',
    ],
  ])('%s', async (_what, make, code, says) => {
    const error = await failure((await make()).pool.getStatus({}));
    expect(error.code).toBe(code);
    expect(error.message).toContain(`cannot connect to the manager at 127.0.0.1:${address().port}`);
    expect(error.message).toContain(says);
  });

  it('a box that pretends to be a manager is none', async () => {
    server.close();
    manager = await issued.of('box', 'b1');
    await start();
    manager = await issued.of('manager', 'm1');
    const error = await failure(client(alice).pool.getStatus({}));
    expect(error).toMatchObject({ code: 'permission_denied', details: { reason: 'wrong-kind' } });
  });

  it('nobody there is unavailable, with the address', async () => {
    const { pool: rpc } = client(alice);
    await rpc.getStatus({});
    server.close();
    await vi.waitFor(async () => {
      const error = await failure(rpc.getStatus({}));
      expect(error.code).toBe('unavailable');
      expect(error.message).toContain('nobody listens there');
    });
  });

  it('one that takes connections and says nothing is unavailable within the time given', async () => {
    const mute = net.createServer(() => {});
    await new Promise<void>((resolve) => mute.listen(0, '127.0.0.1', resolve));
    toClose.push({ close: () => mute.close() });
    const { port } = mute.address() as net.AddressInfo;
    const silent = connectPool({
      host: '127.0.0.1',
      port,
      credentials: alice,
      openWithinMs: 50,
    });
    toClose.push(silent);
    const error = await failure(silent.pool.getStatus({}));
    expect(error.code).toBe('unavailable');
    expect(error.message).toContain('no answer within 50 ms');
  });
});

describe('agents', () => {
  it('a host says hello and reports, and gets orders', async () => {
    const agent = new AgentClient(h1).say(helloToWire(hello('h1')), reportToWire(report()));
    await vi.waitFor(() => expect(agent.orders).toEqual([1]));
    await vi.waitFor(() => expect(pool().reports).toEqual([report()]));
    agent.finish();
    expect(await agent.ended).toBeUndefined();
    await vi.waitFor(() =>
      expect(pool().calls).toEqual(['connected 1', 'report 1', 'disconnected 1']),
    );
  });

  it.each([
    ['a user', 'user', 'alice', hello('alice'), 'permission_denied', 'is a user: AgentService'],
    ['another host', 'host', 'h2', hello('h1'), 'permission_denied', 'nobody speaks for another'],
    ['a box as a host', 'box', 'h1', hello('h1'), 'permission_denied', 'nobody speaks for another'],
  ] as const)('%s is refused and reported', async (_what, kind, id, says, code, words) => {
    const agent = new AgentClient(await issued.of(kind, id)).say(helloToWire(says));
    const error = await agent.ended;
    expect(error?.code).toBe(code);
    expect(error?.message).toContain(words);
    expect(refused.map(({ message }) => message)).toEqual([
      expect.stringMatching(/^connection from 127\.0\.0\.1:\d+ refused: /),
    ]);
    expect(pool().calls).toEqual([]);
  });

  it.each([
    ['strange', 'another CA'],
    ['expired', 'expired on'],
  ] as const)('one whose certificate is %s is refused', async (how, words) => {
    const agent = new AgentClient(await issued[how]('host', 'h1')).say(helloToWire(hello('h1')));
    expect((await agent.ended)?.message).toContain(words);
    expect(pool().calls).toEqual([]);
  });

  it('a second live stream of one identity is refused and reported, the first goes on', async () => {
    const first = new AgentClient(h1).say(helloToWire(hello('h1')), reportToWire(report()));
    await vi.waitFor(() => expect(first.orders).toEqual([1]));
    const second = new AgentClient(h1).say(helloToWire(hello('h1')), reportToWire(report()));
    expect((await second.ended)?.code).toBe('already_exists');
    expect(refused.map(({ code }) => code)).toEqual(['already_exists']);
    first.say(reportToWire(report()));
    await vi.waitFor(() => expect(pool().calls.filter((one) => one === 'report 1').length).toBe(2));
    first.finish();
    await first.ended;
    await vi.waitFor(async () => {
      const third = new AgentClient(h1).say(helloToWire(hello('h1')));
      await vi.waitFor(() => expect(third.orders).toEqual([1]));
    });
  });

  it.each([
    [
      'a report first',
      [reportToWire(report())],
      'failed_precondition',
      'the first message is a hello',
    ],
    [
      'a second hello',
      [helloToWire(hello('h1')), helloToWire(hello('h1'))],
      'failed_precondition',
      'a second hello',
    ],
    [
      "a box's report",
      [
        helloToWire(hello('h1')),
        reportToWire({ kind: 'box', applied: 0, whole: true, slots: [], refused: '' }),
      ],
      'failed_precondition',
      "a box's report",
    ],
    [
      'a first report that is not whole',
      [helloToWire(hello('h1')), reportToWire(report('', false))],
      'failed_precondition',
      'whole',
    ],
    [
      'a number above 2^53 - 1',
      [
        helloToWire(hello('h1')),
        create(ConnectRequestSchema, {
          message: { case: 'hostReport', value: { applied: 2n ** 60n, whole: true } },
        }),
      ],
      'invalid_argument',
      'applied: ',
    ],
    [
      'a lie',
      [helloToWire(hello('h1')), reportToWire(report('lie'))],
      'failed_precondition',
      'that cannot be',
    ],
  ])('%s ends the stream with the reason', async (_what, messages, code, words) => {
    const agent = new AgentClient(h1).say(...messages);
    const error = await agent.ended;
    expect(error?.code).toBe(code);
    expect(error?.message).toContain(words);
    expect(refused.map((one) => one.code)).toEqual([code]);
    await vi.waitFor(() => expect(server.connections().has('user/nobody')).toBe(false));
  });

  it('one that reads nothing any more is ended before its orders fill the memory', async () => {
    const session = http2.connect(`https://127.0.0.1:${address().port}`, {
      ...secureOptions(h1),
      checkServerIdentity: () => undefined,
      // What the other side may send before we have read: nothing to speak of.
      settings: { initialWindowSize: 0 },
    });
    session.on('error', () => {});
    toClose.push({ close: () => session.destroy() });
    const stream = session.request({
      ':method': 'POST',
      ':path': '/dxpu.agent.v1.AgentService/Connect',
      'content-type': 'application/connect+json',
    });
    stream.on('error', () => {});
    stream.pause();
    stream.write(enveloped({ hello: { id: 'h1', instance: 'i', version: '1', host: {} } }));
    stream.write(enveloped({ hostReport: { whole: true } }));
    await vi.waitFor(() => expect(pool().calls).toContain('report 1'));
    for (let revision = 2; revision < 1200; revision++) pool().order(1, 'host', revision);
    await vi.waitFor(() => expect(pool().calls).toContain('disconnected 1'));
    expect(refused.map(({ code }) => code)).toEqual(['resource_exhausted']);
  });

  it('one that does not even answer pings is ended', async () => {
    // A process of its own that is stopped: its connection stays, and nobody is there.
    const script = `
      const http2 = require('node:http2');
      const options = JSON.parse(process.argv[1]);
      options.checkServerIdentity = () => undefined;
      const session = http2.connect(options.url, options);
      session.on('error', () => {});
      const stream = session.request({ ':method': 'POST',
        ':path': '/dxpu.agent.v1.AgentService/Connect',
        'content-type': 'application/connect+json' });
      stream.on('error', () => {});
      for (const message of options.messages) stream.write(Buffer.from(message, 'base64'));
      setInterval(() => {}, 1000);
    `;
    const options = {
      ca: h1.ca,
      cert: h1.cert,
      key: h1.key,
      url: `https://127.0.0.1:${address().port}`,
      messages: [
        enveloped({ hello: { id: 'h1', instance: 'i', version: '1', host: {} } }),
        enveloped({ hostReport: { whole: true } }),
      ].map((one) => one.toString('base64')),
    };
    const child = spawn(process.execPath, ['-e', script, JSON.stringify(options)], {
      stdio: 'ignore',
    });
    toClose.push({ close: () => child.kill('SIGKILL') });
    await vi.waitFor(() => expect(pool().calls).toContain('report 1'), { timeout: 10_000 });
    // It answers: it stays.
    const heard = server.connections().get('host/h1');
    expect(heard).toBe(1);
    child.kill('SIGSTOP');
    await vi.waitFor(() => expect(pool().calls).toContain('disconnected 1'), { timeout: 10_000 });
    expect(refused.at(-1)?.message).toContain('does not answer pings');
  });
});

describe('requests', () => {
  it('are told which field is wrong', async () => {
    const { pool: rpc } = client(alice);
    const demand = { gpus: 1, host: 'h1' };
    const wrong: [() => Promise<unknown>, string][] = [
      [() => rpc.bind({ demand }), 'request_id'],
      [() => rpc.bind({ requestId: 'a b', demand }), 'request_id'],
      [() => rpc.bind({ requestId: 'x'.repeat(65), demand }), 'request_id'],
      [() => rpc.bind({ requestId: 'r1' }), 'demand'],
      [() => rpc.bind({ requestId: 'r1', demand: { ...demand, gpus: 0 } }), 'demand.gpus'],
      [() => rpc.bind({ requestId: 'r1', demand: { ...demand, gpus: 4097 } }), 'demand.gpus'],
      [() => rpc.bind({ requestId: 'r1', demand: { gpus: 1 } }), 'demand.host'],
      [() => rpc.bind({ requestId: 'r1', demand: { ...demand, host: '../h1' } }), 'demand.host'],
      [
        () => rpc.bind({ requestId: 'r1', demand: { ...demand, boxKind: 'usb' } }),
        'demand.box_kind',
      ],
      [
        () => rpc.bind({ requestId: 'r1', demand: { ...demand, model: '\u001b[2J' } }),
        'demand.model',
      ],
      [
        () => rpc.bind({ requestId: 'r1', demand: { ...demand, memoryBytes: 2n ** 60n } }),
        'demand.memory_bytes',
      ],
      [
        () => rpc.bind({ requestId: 'r1', demand: { ...demand, maxRoundTripNs: -1 } }),
        'demand.max_round_trip_ns',
      ],
      [() => rpc.unbind({ requestId: 'r1' }), 'bindings'],
      [() => rpc.unbind({ requestId: 'r1', bindings: ['b1', 'b1'] }), 'bindings[1]'],
      [() => rpc.unbind({ requestId: 'r1', bindings: ['b1', ''] }), 'bindings[1]'],
      [() => rpc.listBindings({ pageSize: 1001 }), 'page_size'],
      [() => rpc.listBindings({ pageSize: -1 }), 'page_size'],
      [() => rpc.listBindings({ pageToken: 'x' }), 'page_token'],
      [() => rpc.listBindings({ state: 8 }), 'state'],
      [() => rpc.listBoxes({ id: 'a/b' }), 'id'],
    ];
    for (const [call, field] of wrong) {
      const error = await failure(call());
      expect(error).toMatchObject({ code: 'invalid_argument', details: { field } });
      expect(error.message).toContain(`${field}: `);
    }
    expect(pool().commands).toEqual([]);
  });

  it('of a million items are told how many they may have', async () => {
    const bindings = Array.from({ length: 1e6 }, (_, index) => `b${index}`);
    const error = await failure(client(alice).pool.unbind({ requestId: 'r1', bindings }));
    expect(error).toMatchObject({ code: 'invalid_argument', details: { field: 'bindings' } });
    expect(error.message).toContain('has 1000000 entries, at most 10000 can be');
  });

  it('larger than any request may be are refused before they are looked at', async () => {
    const { pool: rpc } = client(alice);
    const bindings = Array.from({ length: 300_000 }, () => 'x'.repeat(63));
    const error = await failure(rpc.unbind({ requestId: 'r1', bindings }));
    expect(error.code).toBe('resource_exhausted');
  });

  it('curl will do: JSON over HTTP/1.1', async () => {
    const answer = await postJson('GetStatus', {});
    expect(answer).toMatchObject({ status: 200, body: { version: '0.1.0', gpus: 5 } });
    const refusal = await postJson('Bind', {
      requestId: 'r1',
      demand: { gpus: 1, host: 'h1', gpu: 2 },
    });
    expect(refusal).toMatchObject({ status: 400, body: { code: 'invalid_argument' } });
    expect(refusal.body.message).toContain('gpu');
    const unknown = await postJson('Destroy', {});
    expect(unknown).toMatchObject({ status: 404, body: { code: 'unimplemented' } });
  });

  it('that are none are answered and harm nobody', async () => {
    const nonsense = await new Promise<number>((resolve, reject) => {
      const request = https.request(
        {
          ...address(),
          ...secureOptions(alice),
          method: 'POST',
          path: '/dxpu.pool.v1.PoolService/GetStatus',
          headers: { host: '[', 'content-type': 'application/json' },
          checkServerIdentity: () => undefined,
        },
        (response) => resolve(response.statusCode ?? 0),
      );
      request.on('error', reject);
      request.end('{}');
    });
    expect(nonsense).toBe(400);
    expect(await client(alice).pool.getStatus({})).toMatchObject({ gpus: 5 });
  });
});

describe('answers', () => {
  it('a refusal of placement arrives with its reasons', async () => {
    const demand = { gpus: 9, host: 'h1' } as never;
    const reasons = [{ reason: 'bound', count: 3, message: '3 are bound' }] as const;
    pool().answer = { ok: false, refusal: { ok: false, demand, summary: 'not so many', reasons } };
    const error = await failure(
      client(alice).pool.bind({ requestId: 'r1', demand: { gpus: 9, host: 'h1' } }),
    );
    expect(error).toMatchObject({
      code: 'resource_exhausted',
      message: 'not so many',
      details: { refusal: { summary: 'not so many', reasons } },
    });
  });

  it('an error of the pool arrives with its code and details', async () => {
    const details = { binding: 'b7', known: 3 };
    pool().answer = { ok: false, error: new DxpuError('not_found', 'no b7', { details }) };
    const error = await failure(client(alice).pool.retry({ requestId: 'r1', bindings: ['b7'] }));
    expect(error).toMatchObject({ code: 'not_found', message: 'no b7', details });
  });

  it('a full disk is told to who asked, and nothing was done', async () => {
    store.failNextCommit('resource_exhausted');
    const { pool: rpc } = client(alice);
    const error = await failure(rpc.retry({ requestId: 'r1', bindings: ['b1'] }));
    expect(error.code).toBe('resource_exhausted');
    expect(store.log(0, 10)).toEqual([]);
    await vi.waitFor(async () => {
      await rpc.retry({ requestId: 'r1', bindings: ['b1'] });
    });
    expect(store.log(0, 10).length).toBe(1);
  });
});

describe('watching', () => {
  it('goes on behind the last entry seen, over a restart of the manager: no gap, no repeat', async () => {
    const { pool: rpc } = client(alice);
    const seen: bigint[] = [];
    let position = 0n;
    let restarts = 0;
    const follow = async (): Promise<void> => {
      while (position < 300n) {
        try {
          for await (const one of rpc.watch({ after: position, follow: true })) {
            if (one.entry !== undefined) seen.push(one.entry.position);
            position = one.position;
            if (position >= 300n) return;
          }
        } catch (error) {
          expect(error).toMatchObject({ code: 'unavailable' });
          await new Promise((resolve) => setTimeout(resolve, 20));
        }
      }
    };
    const done = follow();
    for (let round = 0; round < 30; round++) {
      for (let index = 0; index < 9; index++) pool().entry('manager', `r${round}.${index}`);
      await shell.command({ name: 'user/bob' }, { kind: 'retry', requestId: 'r', bindings: [] });
      if (round % 10 === 5) {
        const { port } = address();
        shell.stop('restart');
        server.close();
        await vi.waitFor(() => start(port));
        restarts += 1;
      }
    }
    await done;
    // 30 rounds of nine entries and one command.
    expect(seen).toEqual(Array.from({ length: 300 }, (_, index) => BigInt(index + 1)));
    expect(restarts).toBe(3);
  });

  it('without follow ends at the end, having said where that is', async () => {
    const { pool: rpc } = client(alice);
    await rpc.retry({ requestId: 'r1', bindings: ['b1'] });
    const seen = [];
    for await (const one of rpc.watch({})) seen.push([one.entry?.requestId, one.position]);
    expect(seen).toEqual([
      ['r1', 1n],
      [undefined, 1n],
    ]);
    const beyond = await failure(rpc.watch({ after: 2n })[Symbol.asyncIterator]().next());
    expect(beyond).toMatchObject({ code: 'out_of_range', details: { after: 2, position: 1 } });
  });

  it('a watcher that goes is forgotten', async () => {
    const gone = client(alice);
    const watcher = gone.pool.watch({ follow: true })[Symbol.asyncIterator]();
    expect((await watcher.next()).value).toMatchObject({ position: 0n });
    expect(server.connections().get('user/alice')).toBe(1);
    gone.close();
    await vi.waitFor(() => expect(server.connections().size).toBe(0));
  });
});

it('a port in use, and an address that is not ours, are said so', async () => {
  const options = {
    shell,
    credentials: manager,
    report: { refused: () => {}, fault: () => {} },
    version: '0.1.0',
  };
  const taken = await failure(startManagerServer({ ...options, listen: [address()] }));
  expect(taken).toMatchObject({
    code: 'already_exists',
    details: { address: `127.0.0.1:${address().port}` },
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

/** A message of a stream, as the Connect protocol frames it: flags, length, JSON. */
function enveloped(message: object): Buffer {
  const body = Buffer.from(JSON.stringify(message));
  const head = Buffer.alloc(5);
  head.writeUInt32BE(body.length, 1);
  return Buffer.concat([head, body]);
}

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

function postJson(
  method: string,
  body: object,
): Promise<{ status: number; body: Record<string, unknown> }> {
  return new Promise((resolve, reject) => {
    const request = https.request(
      {
        ...address(),
        ...secureOptions(alice),
        method: 'POST',
        path: `/dxpu.pool.v1.PoolService/${method}`,
        headers: { 'content-type': 'application/json' },
        checkServerIdentity: () => undefined,
      },
      (response) => {
        let text = '';
        response.on('data', (chunk: Buffer) => {
          text += chunk.toString();
        });
        response.on('end', () =>
          resolve({
            status: response.statusCode ?? 0,
            body: JSON.parse(text) as Record<string, unknown>,
          }),
        );
      },
    );
    request.on('error', reject);
    request.end(JSON.stringify(body));
  });
}
