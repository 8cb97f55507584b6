/**
 * The stream between an agent and the manager in real time: opens it, puts orders into the agent's core
 * and its reports on the wire, and never gives up until it is stopped. While there is no manager
 * nothing happens to the proxy: rows stay, traffic flows.
 *
 *   waiting      until the next attempt: 100 ms, doubling to 5 s, of which a random part is cut
 *   connecting   from then until the first order: only that shows that the manager took the hello
 *   connected    orders come, reports go
 *
 * A stream that ends before it has lasted 5 s counts as a failed attempt, unless a manager that had sent
 * an order went away: one that was restarted finds its agents back at once. A manager that is gone is
 * noticed by the pings of its connection (`#proto/manager-connection`).
 */
import { createClient } from '@connectrpc/connect';
import { AssertionError } from '#base/assert';
import { type Clock, TimerDriver } from '#base/clock';
import { DxpuError, type DxpuErrorCode } from '#base/errors';
import { MessageQueue } from '#base/message-queue';
import { Pause } from '#base/pause';
import type { Nanos } from '#base/units';
import type { TlsCredentials } from '#identity/tls-identity';
import { helloToWire, orderFromWire, reportToWire } from '#proto/agent-wire';
import { AgentService, type ConnectRequest } from '#proto/generated/dxpu/agent/v1/agent_pb';
import {
  connectManager,
  type ManagerConnection,
  type ManagerConnectionOptions,
} from '#proto/manager-connection';
import { fromRpcError } from '#proto/rpc-error';
import type { Agent } from '../core/agent-core.ts';
import { formatEndpoint, type HostAndPort } from './endpoint.ts';
import type { Logger } from './logger.ts';
import { RepeatedLog } from './repeated-log.ts';

const PAUSE_MIN_NS = 100e6;
const PAUSE_MAX_NS = 5e9;
/** A report is some kilobytes at most; a manager that takes none for so long is gone. */
const MAX_UNSENT = 4096;

/** Nothing about these changes by trying again soon. */
const REFUSALS: ReadonlySet<DxpuErrorCode> = new Set([
  'already_exists',
  'permission_denied',
  'unauthenticated',
]);

/** How a stream ends whose manager was killed: without a word, its connection by a reset of streams. */
const LOSSES: ReadonlySet<DxpuErrorCode> = new Set(['unavailable', 'cancelled']);

export interface ManagerStreamOptions {
  readonly agent: Agent;
  readonly address: HostAndPort;
  /** Where given, the manager must be this one and no other. */
  readonly manager?: string;
  readonly credentials: TlsCredentials;
  readonly clock: Clock;
  readonly log: Logger;
  /** In [0, 1): spreads the attempts of many agents. */
  readonly random: () => number;
  /** Called after each event that may have changed the proxy. */
  readonly settle: () => void;
  /** How long a connection may take to open. Default 5 s. */
  readonly openWithinMs?: number;
  /** Of the connection; see there. */
  readonly pings?: ManagerConnectionOptions['pings'];
}

/** As `dxpu status` shows it. */
export interface StreamStatus {
  readonly address: string;
  readonly connected: boolean;
  /** Since when it is so; ISO 8601. */
  readonly since: string;
  /** What is in the way while it is not connected. */
  readonly problem: string | undefined;
}

export class ManagerStream {
  readonly #options: ManagerStreamOptions;
  readonly #driver: TimerDriver;
  readonly #repeated: RepeatedLog;
  readonly #address: string;
  #connection: ManagerConnection | undefined;
  #isConnected = false;
  #since = new Date();
  #problem: string | undefined;
  #isStopped = false;
  readonly #pausing = new Pause();

  constructor(options: ManagerStreamOptions) {
    const { agent, settle, clock, log, address } = options;
    this.#options = options;
    this.#repeated = new RepeatedLog(log);
    this.#address = formatEndpoint(address);
    this.#driver = new TimerDriver(clock, {
      nextDeadlineNs: () => agent.nextDeadlineNs(),
      tick: (now) => {
        agent.tick(now);
        settle();
      },
    });
  }

  /** Connects, now and whenever there is no connection. */
  start(): void {
    void this.#run();
  }

  /** Ends the stream. What the proxy does stays as it is. */
  stop(): void {
    this.#isStopped = true;
    this.#driver.stop();
    this.#connection?.close();
    this.#pausing.end();
  }

  /** The proxy changed: its agent acts on it, and reports it. */
  changed(now: Nanos): void {
    this.#options.agent.changed(now);
    this.#driver.update();
  }

  status(): StreamStatus {
    return {
      address: this.#address,
      connected: this.#isConnected,
      since: this.#since.toISOString(),
      problem: this.#isConnected ? undefined : this.#problem,
    };
  }

  async #run(): Promise<void> {
    const { clock } = this.#options;
    let pauseNs = PAUSE_MIN_NS;
    while (!this.#isStopped) {
      const startedNs = clock.now();
      const error = await this.#stream();
      if (this.#isStopped) return;
      const wentAway = this.#isConnected && LOSSES.has(error.code);
      this.#isLost(error);
      if (wentAway || clock.now() - startedNs >= PAUSE_MAX_NS) pauseNs = PAUSE_MIN_NS;
      await this.#pause(REFUSALS.has(error.code) ? PAUSE_MAX_NS : pauseNs);
      pauseNs = Math.min(PAUSE_MAX_NS, pauseNs * 2);
    }
  }

  /** One stream from its beginning to its end. Returns why it ended; throws for a bug alone. */
  async #stream(): Promise<DxpuError> {
    const { agent, address, manager, credentials, clock, openWithinMs, pings } = this.#options;
    const connection = connectManager({
      ...address,
      credentials,
      ...(manager === undefined ? {} : { manager }),
      ...(openWithinMs === undefined ? {} : { openWithinMs }),
      ...(pings === undefined ? {} : { pings }),
    });
    this.#connection = connection;
    const queue = new MessageQueue<ConnectRequest>(MAX_UNSENT, () => connection.close());
    try {
      await connection.open();
      const orders = createClient(AgentService, connection.transport).connect(queue);
      agent.connected(clock.now(), {
        hello: (hello) => queue.push(helloToWire(hello)),
        report: (report) => queue.push(reportToWire(report)),
      });
      this.#driver.update();
      for await (const message of orders) {
        const order = orderFromWire(message);
        this.#isThere();
        agent.order(clock.now(), order);
        this.#options.settle();
        this.#driver.update();
      }
      return new DxpuError('unavailable', 'the manager ended the stream');
    } catch (error) {
      if (error instanceof AssertionError) throw error;
      return fromRpcError(error);
    } finally {
      agent.disconnected(clock.now());
      queue.end();
      connection.close();
    }
  }

  #isThere(): void {
    if (this.#isConnected) return;
    this.#isConnected = true;
    this.#since = new Date();
    this.#problem = undefined;
    this.#options.log.info({ address: this.#address }, 'connected to the manager');
  }

  #isLost(error: DxpuError): void {
    const { message, code } = error;
    const wasConnected = this.#isConnected;
    const isNews = wasConnected || this.#problem !== message;
    if (wasConnected) this.#since = new Date();
    this.#isConnected = false;
    this.#problem = message;
    const { log } = this.#options;
    const facts = { address: this.#address, code };
    const text = wasConnected
      ? `no manager any more, rows and traffic stay as they are: ${message}`
      : `no manager: ${message}`;
    // An attempt every few seconds that fails alike is one event, not a log full of them.
    if (isNews) this.#repeated.say(REFUSALS.has(code) ? 'error' : 'warn', facts, text);
    else log.debug(facts, text);
  }

  /** Waits for half of `ns` to all of it, or until stopped. */
  #pause(ns: number): Promise<void> {
    const { clock, random } = this.#options;
    return this.#pausing.for(clock, ns * (0.5 + random() / 2));
  }
}
