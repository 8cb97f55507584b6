/** The stream to a manager that is played here: HTTP/2 over mutual TLS, one handler for all calls. */
import * as http2 from 'node:http2';
import * as net from 'node:net';
import { Code, ConnectError } from '@connectrpc/connect';
import { connectNodeAdapter } from '@connectrpc/connect-node';
import { afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { RealClock } from '#base/clock';
import { MessageQueue } from '#base/message-queue';
import type { Nanos } from '#base/units';
import { createAuthority, issueCertificate, type KeyAndCertificate } from '#identity/certificates';
import type { Identity } from '#identity/identity';
import { secureOptions, type TlsCredentials } from '#identity/tls-identity';
import type { BoxOrder, BoxReport } from '#proto/agent-messages';
import { type AgentMessage, agentMessageFromWire, orderToWire } from '#proto/agent-wire';
import {
  AgentService,
  type ConnectRequest,
  type ConnectResponse,
} from '#proto/generated/dxpu/agent/v1/agent_pb';
import { ModelBoxPlane } from '#testkit/model-plane';
import { BoxAgentCore } from '../core/box-agent.ts';
import type { Logger } from './logger.ts';
import { ManagerStream, type ManagerStreamOptions } from './manager-stream.ts';

let ca: KeyAndCertificate;
beforeAll(async () => {
  ca = await createAuthority('test pool', Date.now());
});

const open: (() => void)[] = [];
afterEach(() => {
  for (const close of open.splice(0).reverse()) close();
});

const until = (condition: () => void): Promise<void> =>
  vi.waitFor(condition, { timeout: 10_000, interval: 5 });

async function credentialsOf(identity: Identity, authority = ca): Promise<TlsCredentials> {
  const pair = await issueCertificate(authority, identity, { nowMs: Date.now() });
  return { identity, ca: authority.certPem, cert: pair.certPem, key: pair.keyPem };
}

/** One stream as the manager has it. */
class Session {
  readonly heard: AgentMessage[] = [];
  readonly queue = new MessageQueue<ConnectResponse>(1000, () => {});
  isOver = false;

  async listen(requests: AsyncIterable<ConnectRequest>): Promise<void> {
    try {
      for await (const request of requests) this.heard.push(agentMessageFromWire(request));
    } catch {
      // The stream is over, however.
    }
    this.isOver = true;
    this.queue.end();
  }

  order(order: BoxOrder): void {
    this.queue.push(orderToWire(order));
  }

  get reports(): BoxReport[] {
    return this.heard.flatMap(({ report }) => (report === undefined ? [] : [report as BoxReport]));
  }
}

class Manager {
  readonly sessions: Session[] = [];
  /** What each stream is answered with at once, instead of being taken. */
  refusal: ConnectError | undefined;
  /** Sends each stream a first order. */
  greets = false;
  readonly #server: http2.Http2SecureServer;
  readonly #sockets = new Set<net.Socket>();

  private constructor(credentials: TlsCredentials) {
    this.#server = http2.createSecureServer(
      { ...secureOptions(credentials), requestCert: true, rejectUnauthorized: true },
      connectNodeAdapter({
        routes: (router) => {
          router.service(AgentService, { connect: (requests) => this.#serve(requests) });
        },
      }),
    );
    this.#server.on('connection', (socket: net.Socket) => {
      this.#sockets.add(socket);
      socket.on('close', () => this.#sockets.delete(socket));
    });
    this.#server.on('sessionError', () => {});
  }

  async *#serve(requests: AsyncIterable<ConnectRequest>): AsyncGenerator<ConnectResponse> {
    if (this.refusal !== undefined) throw this.refusal;
    const session = new Session();
    this.sessions.push(session);
    void session.listen(requests);
    if (this.greets) session.order(order(1));
    yield* session.queue;
  }

  static async start(
    identity: Identity = { kind: 'manager', id: 'm1' },
    authority = ca,
    port = 0,
  ): Promise<Manager> {
    const manager = new Manager(await credentialsOf(identity, authority));
    await new Promise<void>((resolve) => manager.#server.listen(port, '127.0.0.1', resolve));
    open.push(() => manager.kill());
    return manager;
  }

  get port(): number {
    return (this.#server.address() as net.AddressInfo).port;
  }

  get last(): Session {
    return this.sessions.at(-1)!;
  }

  /** As kill -9: connections are reset, and nobody listens. */
  kill(): void {
    this.#server.close();
    for (const socket of this.#sockets) socket.resetAndDestroy();
  }
}

/** A way to the manager that can fall silent. */
class Wire {
  isSilent = false;
  readonly #server: net.Server;

  private constructor(port: number) {
    this.#server = net.createServer((near) => {
      const far = net.connect(port, '127.0.0.1');
      for (const [from, to] of [
        [near, far],
        [far, near],
      ] as const) {
        from.on('data', (bytes) => void (this.isSilent || to.write(bytes)));
        from.on('error', () => {});
        from.on('close', () => to.destroy());
      }
      open.push(() => near.destroy());
    });
  }

  static async to(port: number): Promise<Wire> {
    const wire = new Wire(port);
    await new Promise<void>((resolve) => wire.#server.listen(0, '127.0.0.1', resolve));
    open.push(() => wire.#server.close());
    return wire;
  }

  get port(): number {
    return (this.#server.address() as net.AddressInfo).port;
  }
}

interface Line {
  readonly level: string;
  readonly message: string;
}

/** Keeps what is logged. */
function memoryLog(): { log: Logger; lines: Line[] } {
  const lines: Line[] = [];
  const method =
    (level: string) =>
    (first: object | string, second?: string): void =>
      void lines.push({ level, message: typeof first === 'string' ? first : (second ?? '') });
  const [debug, info, warn, error] = ['debug', 'info', 'warn', 'error'].map(method);
  return { log: { debug, info, warn, error } as unknown as Logger, lines };
}

/** Keeps how long was waited, in ns. */
class RecordingClock extends RealClock {
  readonly pausesNs: number[] = [];

  override at(atNs: Nanos, fn: (now: Nanos) => void): () => void {
    this.pausesNs.push(atNs - this.now());
    return super.at(atNs, fn);
  }
}

async function agentOf(
  port: number,
  options: Pick<Partial<ManagerStreamOptions>, 'manager' | 'pings'> = {},
) {
  const plane = new ModelBoxPlane(2);
  const { log, lines } = memoryLog();
  const credentials = await credentialsOf({ kind: 'box', id: 'b1' });
  const agent = new BoxAgentCore({
    hello: {
      kind: 'box',
      id: 'b1',
      instance: 'i1',
      version: '0',
      boxKind: 'pcie',
      zone: 'z1',
      endpoints: [{ path: 'net0', address: '10.0.0.1:7000' }],
    },
    plane,
  });
  const clock = new RecordingClock();
  const disconnected = vi.spyOn(agent, 'disconnected');
  let settled = 0;
  const stream = new ManagerStream({
    agent,
    address: { host: '127.0.0.1', port },
    credentials,
    clock,
    log,
    random: () => 0,
    settle: () => settled++,
    ...options,
  });
  stream.start();
  open.push(() => stream.stop());
  return { plane, lines, stream, clock, disconnected, settled: () => settled };
}

const order = (revision: number, slots: BoxOrder['slots'] = []): BoxOrder => ({
  kind: 'box',
  revision,
  whole: revision === 1,
  slots,
});
const row = { host: 'h1', generation: 7, path: 'net0' };

describe('a stream', () => {
  it('carries hello and reports up, and orders down', async () => {
    const manager = await Manager.start();
    const { plane, stream, clock, settled } = await agentOf(manager.port);
    await until(() => expect(manager.sessions[0]?.heard).toHaveLength(2));
    const { heard } = manager.last;
    expect(heard[0]!.hello).toMatchObject({ kind: 'box', id: 'b1', instance: 'i1', zone: 'z1' });
    expect(heard[1]!.report).toEqual({
      kind: 'box',
      applied: 0,
      whole: true,
      slots: plane.reports,
      refused: '',
    });
    expect(stream.status()).toMatchObject({ connected: false });

    manager.last.order(order(1, [{ slot: 1, row }]));
    await until(() => expect(manager.last.reports).toHaveLength(2));
    expect(plane.reports[1]!.row).toEqual({ host: 'h1', generation: 7 });
    expect(manager.last.reports[1]).toMatchObject({ applied: 1, slots: [{ slot: 1, row: {} }] });
    expect(settled()).toBe(1);
    expect(stream.status()).toEqual({
      address: `127.0.0.1:${manager.port}`,
      connected: true,
      since: expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
      problem: undefined,
    });

    plane.contain(1);
    stream.changed(clock.now());
    await until(() => expect(manager.last.reports).toHaveLength(3));
    expect(manager.last.reports[2]).toMatchObject({
      whole: false,
      slots: [{ state: 'contained' }],
    });
  });

  it('that is lost changes no row, and begins anew when the manager is there again', async () => {
    const first = await Manager.start();
    const { port } = first;
    const { plane, stream, lines, disconnected } = await agentOf(port);
    await until(() => expect(first.sessions).toHaveLength(1));
    first.last.order(order(1, [{ slot: 0, row }]));
    await until(() => expect(stream.status().connected).toBe(true));
    first.kill();
    await until(() => expect(stream.status().connected).toBe(false));
    expect(disconnected).toHaveBeenCalledTimes(1);
    expect(plane.reports[0]!.row).toEqual({ host: 'h1', generation: 7 });
    await until(() => expect(stream.status().problem).toContain('nobody listens there'));

    const second = await Manager.start(undefined, ca, port);
    await until(() => expect(second.sessions[0]?.reports).toHaveLength(1));
    expect(second.last.reports[0]).toMatchObject({ applied: 0, whole: true });
    expect(second.last.reports[0]!.slots[0]!.row).toEqual({ host: 'h1', generation: 7 });
    second.last.order(order(1, [{ slot: 0, row }]));
    await until(() => expect(stream.status().connected).toBe(true));
    expect(lines.filter(({ level }) => level === 'info').map(({ message }) => message)).toEqual([
      'connected to the manager',
      'connected to the manager',
    ]);
  });

  it('comes back at once, however often the manager was restarted just before', async () => {
    const before = await Manager.start();
    const { port } = before;
    before.kill();
    await agentOf(port);
    for (let restart = 0; restart < 8; restart++) {
      const manager = await Manager.start(undefined, ca, port);
      // Were each a failed attempt, the last pauses would be of 2.5 s at least (`random` is 0).
      await vi.waitFor(() => expect(manager.sessions).toHaveLength(1), {
        timeout: 2000,
        interval: 5,
      });
      manager.last.order(order(1));
      await until(() => expect(manager.last.reports.at(-1)?.applied).toBe(1));
      manager.kill();
    }
  });

  // The error of the connection once came when nobody listened any more, and ended the process.
  it('to a manager that has fallen silent ends, and the process goes on', async () => {
    const manager = await Manager.start();
    const wire = await Wire.to(manager.port);
    const pings = { intervalMs: 100, timeoutMs: 500 };
    manager.greets = true;
    const { stream, lines } = await agentOf(wire.port, { pings });
    await until(() => expect(stream.status().connected).toBe(true));
    wire.isSilent = true;
    await until(() => expect(stream.status().connected).toBe(false));
    expect(lines).toContainEqual({
      level: 'warn',
      message: 'no manager any more, rows and traffic stay as they are: PING timed out',
    });
    wire.isSilent = false;
    await until(() => expect(stream.status().connected).toBe(true));
  });

  it('ends with an order that does not follow, and goes on with a whole one', async () => {
    const manager = await Manager.start();
    const { plane, lines } = await agentOf(manager.port);
    await until(() => expect(manager.sessions).toHaveLength(1));
    manager.last.order(order(1));
    manager.last.order(order(3, [{ slot: 0, row }]));
    await until(() => expect(manager.sessions).toHaveLength(2));
    await until(() => expect(manager.sessions[0]!.isOver).toBe(true));
    expect(plane.reports[0]!.row).toBeUndefined();
    expect(lines.map(({ message }) => message).join('\n')).toContain(
      'order 3 is refused: order 2 is the next of this stream',
    );
    manager.last.order(order(1, [{ slot: 0, row }]));
    await until(() => expect(plane.reports[0]!.row).toBeDefined());
  });

  it('that is stopped ends, and none follows', async () => {
    const manager = await Manager.start();
    const { stream } = await agentOf(manager.port);
    await until(() => expect(manager.sessions).toHaveLength(1));
    stream.stop();
    await until(() => expect(manager.last.isOver).toBe(true));
    expect(manager.sessions).toHaveLength(1);
  });
});

describe('no stream', () => {
  it('is said once, however often it is tried', async () => {
    const gone = await Manager.start();
    const { port } = gone;
    gone.kill();
    const { stream, lines } = await agentOf(port);
    // Attempts after 50, 100, 200 ms: half of each pause, as `random` is 0.
    await until(() =>
      expect(lines.filter(({ level }) => level === 'debug').length).toBeGreaterThanOrEqual(3),
    );
    expect(lines.filter(({ level }) => level !== 'debug')).toEqual([
      {
        level: 'warn',
        message: `no manager: cannot connect to the manager at 127.0.0.1:${port}: nobody listens there`,
      },
    ]);
    expect(stream.status()).toMatchObject({ connected: false });
  });

  it.each([
    [Code.AlreadyExists, 'a session of box/b1 is live'],
    [Code.PermissionDenied, 'box/b1 claims to be box/b2'],
    [Code.Unauthenticated, 'it showed no certificate'],
  ])(
    'because of code %i is an error with the reason, and tried again slowly',
    async (code, why) => {
      const manager = await Manager.start();
      manager.refusal = new ConnectError(why, code);
      const { lines, stream, clock } = await agentOf(manager.port);
      await until(() => expect(lines).toEqual([{ level: 'error', message: `no manager: ${why}` }]));
      expect(stream.status()).toMatchObject({ connected: false, problem: why });
      // Half of 5 s, as `random` is 0, less what has passed since it was worked out.
      await until(() => expect(clock.pausesNs).toHaveLength(1));
      expect(clock.pausesNs[0]).toBeGreaterThan(2.4e9);
    },
  );

  it.each<[string, Identity, string]>([
    ['a box', { kind: 'box', id: 'b7' }, 'a manager is expected here'],
    ['another manager', { kind: 'manager', id: 'm2' }, 'manager m1 is expected here'],
  ])('is had with %s that plays the manager', async (_name, identity, message) => {
    const manager = await Manager.start(identity);
    const { lines, stream } = await agentOf(manager.port, { manager: 'm1' });
    await until(() => expect(stream.status().problem).toContain(message));
    expect(lines[0]!.level).toBe('error');
    expect(manager.sessions).toEqual([]);
  });

  it('is had with a manager of another authority', async () => {
    const other = await createAuthority('another pool', Date.now());
    const manager = await Manager.start({ kind: 'manager', id: 'm1' }, other);
    const { stream } = await agentOf(manager.port);
    await until(() => expect(stream.status().problem).toContain('of another CA'));
    expect(manager.sessions).toEqual([]);
  });
});
