/** A manager's server over a tiny core, and users and agents that connect to it over real sockets. */
import { createClient } from '@connectrpc/connect';
import { RealClock } from '#base/clock';
import { DxpuError } from '#base/errors';
import type { TlsCredentials } from '#identity/tls-identity';
import { type ManagerServer, startManagerServer } from '#manager/rpc/manager-server';
import { connectPool, type PoolClient } from '#manager/rpc/pool-client';
import { ManagerShell } from '#manager/shell/manager-shell';
import { MemoryStore } from '#manager/store/memory-store';
import type { AgentHello, AgentReport } from '#proto/agent-messages';
import { orderFromWire } from '#proto/agent-wire';
import { AgentService, type ConnectRequest } from '#proto/generated/dxpu/agent/v1/agent_pb';
import { connectManager, type ManagerConnection } from '#proto/manager-connection';
import { fromRpcError } from '#proto/rpc-error';
import { PoolCredentials } from './pool-credentials.ts';
import { TinyPool } from './tiny-pool.ts';

interface Address {
  readonly host: string;
  readonly port: number;
}

export class ServerRig {
  readonly issued: PoolCredentials;
  /** Of the server. */
  manager: TlsCredentials;
  readonly alice: TlsCredentials;
  readonly h1: TlsCredentials;
  readonly store = new MemoryStore();
  /** What the server told of peers it refused, and of its own faults. */
  readonly refused: DxpuError[] = [];
  readonly faults: unknown[] = [];
  readonly #toClose: { close(): void }[] = [];
  #pools: TinyPool[] = [];
  #shell: ManagerShell | undefined;
  #server: ManagerServer | undefined;

  private constructor(
    issued: PoolCredentials,
    manager: TlsCredentials,
    alice: TlsCredentials,
    h1: TlsCredentials,
  ) {
    this.issued = issued;
    this.manager = manager;
    this.alice = alice;
    this.h1 = h1;
  }

  /** Certificates take a while: `from` has those of another rig. */
  static async start(from?: ServerRig): Promise<ServerRig> {
    const issued = from?.issued ?? (await PoolCredentials.create());
    const rig = new ServerRig(
      issued,
      from?.manager ?? (await issued.of('manager', 'm1')),
      from?.alice ?? (await issued.of('user', 'alice')),
      from?.h1 ?? (await issued.of('host', 'h1')),
    );
    await rig.restart();
    return rig;
  }

  /** A new core, shell and server over the same store. Those before must have been stopped. */
  async restart(port = 0): Promise<void> {
    this.#pools = [];
    const shell = new ManagerShell({
      store: this.store,
      clock: new RealClock(),
      makePool: (begin) => {
        const made = new TinyPool(begin);
        this.#pools.push(made);
        return made;
      },
      log: { info: () => {}, warn: () => {}, error: () => {} },
      onFatal: (error) => this.faults.push(error),
    });
    this.#shell = shell;
    this.#server = await startManagerServer({
      shell,
      credentials: this.manager,
      listen: [{ host: '127.0.0.1', port }],
      report: {
        refused: (error) => this.refused.push(error),
        fault: (thrown) => this.faults.push(thrown),
      },
      version: '0.1.0',
      keepAlive: { intervalMs: 50, timeoutMs: 400 },
    });
  }

  get shell(): ManagerShell {
    return this.#shell!;
  }

  get server(): ManagerServer {
    return this.#server!;
  }

  /** The newest core. */
  get pool(): TinyPool {
    return this.#pools.at(-1)!;
  }

  get address(): Address {
    return this.server.addresses[0]!;
  }

  /** Closed at the end. */
  keep<T extends { close(): void }>(one: T): T {
    this.#toClose.push(one);
    return one;
  }

  client(credentials: TlsCredentials, options: { manager?: string } = {}): PoolClient {
    return this.keep(connectPool({ ...this.address, credentials, ...options }));
  }

  agent(credentials: TlsCredentials): AgentClient {
    const agent = new AgentClient(this.address, credentials);
    this.keep(agent.connection);
    return agent;
  }

  end(): void {
    for (const one of this.#toClose.splice(0)) one.close();
    this.shell.stop('the test is over');
    this.server.close();
  }
}

/** What a call fails with; it must fail. */
export async function failure(promise: Promise<unknown>): Promise<DxpuError> {
  const error = await promise.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (error instanceof DxpuError) return error;
  throw new Error(`expected a DxpuError, not ${String(error)}`);
}

export const hello = (id: string, kind: 'host' | 'box' = 'host'): AgentHello =>
  kind === 'host'
    ? { kind, id, instance: 'i1', version: '0.1.0', reach: [] }
    : { kind, id, instance: 'i1', version: '0.1.0', boxKind: 'pcie', zone: '', endpoints: [] };
export const report = (refusedText = '', whole = true): AgentReport => ({
  kind: 'host',
  applied: 0,
  whole,
  slots: [],
  paths: [],
  refused: refusedText,
});

/** One stream of an agent. */
export class AgentClient {
  readonly orders: number[] = [];
  readonly ended: Promise<DxpuError | undefined>;
  readonly connection: ManagerConnection;
  #messages: ConnectRequest[] = [];
  #wake: (() => void) | undefined;
  #isOver = false;

  constructor(address: Address, credentials: TlsCredentials) {
    this.connection = connectManager({ ...address, credentials });
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
