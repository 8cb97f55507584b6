/**
 * One stream between an agent and the manager in virtual time: messages in order in each direction, each
 * after its delay, until the stream is cut. A side that is not told keeps sending into the void.
 */
import { fromBinary, toBinary } from '@bufbuild/protobuf';
import type { AgentUplink } from '#agent/core/agent-core';
import { DxpuError } from '#base/errors';
import type { Prng } from '#base/prng';
import { type Nanos, nanos } from '#base/units';
import type { VirtualClock } from '#base/virtual-clock';
import type { AgentHello, AgentOrder, AgentReport } from '#proto/agent-messages';
import {
  type AgentMessage,
  agentMessageFromWire,
  helloToWire,
  orderFromWire,
  orderToWire,
  reportToWire,
} from '#proto/agent-wire';
import {
  type ConnectRequest,
  ConnectRequestSchema,
  ConnectResponseSchema,
} from '#proto/generated/dxpu/agent/v1/agent_pb';

/** The manager's end. */
export interface ManagerEnd {
  hello(now: Nanos, hello: AgentHello): void;
  report(now: Nanos, report: AgentReport): void;
  /** Called once, unless the manager itself has closed. */
  closed(now: Nanos, why: string): void;
}

export interface AgentEnd {
  order(now: Nanos, order: AgentOrder): void;
  closed(now: Nanos, why: string): void;
}

export interface StreamOptions {
  readonly clock: VirtualClock;
  readonly prng: Prng;
  /** How long a message takes now. */
  readonly delayNs: () => number;
  readonly keepAliveNs: number;
  /** Everything is encoded and decoded on its way. */
  readonly onWire: () => boolean;
}

/** What a system takes to close the connections of a process that is gone. */
const NOTICED_NS = 1e6;

export class Stream implements AgentUplink {
  readonly #options: StreamOptions;
  #agent: AgentEnd | undefined;
  #manager: ManagerEnd | undefined;
  /** Test only: the next order does not arrive, and the stream goes on. */
  losesOrder = false;
  /** An order did not arrive: none behind it may take effect. */
  isTorn = false;
  #upNs = 0;
  #downNs = 0;

  constructor(options: StreamOptions, agent: AgentEnd, manager: ManagerEnd) {
    this.#options = options;
    this.#agent = agent;
    this.#manager = manager;
  }

  /** Whether both ends take part. */
  get isWhole(): boolean {
    return this.#agent !== undefined && this.#manager !== undefined;
  }

  hello(hello: AgentHello): void {
    const bytes = this.#encode(() => helloToWire(hello));
    this.#up((now, end) => {
      const got = bytes === undefined ? hello : this.#decode(bytes)?.hello;
      if (got !== undefined) end.hello(now, got);
    });
  }

  report(report: AgentReport): void {
    const bytes = this.#encode(() => reportToWire(report));
    this.#up((now, end) => {
      const got = bytes === undefined ? report : this.#decode(bytes)?.report;
      if (got !== undefined) end.report(now, got);
    });
  }

  order(order: AgentOrder): void {
    if (this.losesOrder) {
      this.losesOrder = false;
      this.#downNs = this.#arrival(this.#downNs);
      this.#at(this.#downNs, () => {
        this.isTorn = true;
      });
      return;
    }
    const bytes = this.#options.onWire()
      ? toBinary(ConnectResponseSchema, orderToWire(order))
      : undefined;
    this.#downNs = this.#arrival(this.#downNs);
    this.#at(this.#downNs, (now) => {
      if (this.#agent === undefined) return;
      const got =
        bytes === undefined ? order : orderFromWire(fromBinary(ConnectResponseSchema, bytes));
      this.#agent.order(now, got);
    });
  }

  /** The agent ends it: the manager hears of it behind what was sent before. */
  closeByAgent(why: string): void {
    this.#agent = undefined;
    this.#up((now) => this.#tellManager(now, why));
  }

  closeByManager(why: string): void {
    this.#manager = undefined;
    this.#downNs = this.#arrival(this.#downNs);
    this.#at(this.#downNs, (now) => this.#tellAgent(now, why));
  }

  /** The connection is gone. Who is not told finds out by the silence. */
  cut(told: 'both' | 'agent' | 'manager'): void {
    const { keepAliveNs } = this.#options;
    const { agent, manager } = this.#part();
    const why = 'the connection was lost';
    this.#closeLater(agent, told === 'manager' ? keepAliveNs : 0, why);
    this.#closeLater(manager, told === 'agent' ? keepAliveNs : 0, why);
  }

  /** The agent's process is gone; its system closes the connection, or nobody does. */
  agentDied(isNoticed: boolean): void {
    const { manager } = this.#part();
    this.#closeLater(
      manager,
      isNoticed ? NOTICED_NS : this.#options.keepAliveNs,
      'the agent is gone',
    );
  }

  managerDied(isNoticed: boolean): void {
    const { agent } = this.#part();
    this.#closeLater(
      agent,
      isNoticed ? NOTICED_NS : this.#options.keepAliveNs,
      'the manager is gone',
    );
  }

  /** Neither end takes part any more. */
  #part(): { agent: AgentEnd | undefined; manager: ManagerEnd | undefined } {
    const ends = { agent: this.#agent, manager: this.#manager };
    this.#agent = undefined;
    this.#manager = undefined;
    return ends;
  }

  #closeLater(end: AgentEnd | ManagerEnd | undefined, afterNs: number, why: string): void {
    this.#at(this.#options.clock.now() + afterNs, (now) => end?.closed(now, why));
  }

  #up(deliver: (now: Nanos, end: ManagerEnd) => void): void {
    this.#upNs = this.#arrival(this.#upNs);
    this.#at(this.#upNs, (now) => {
      if (this.#manager !== undefined) deliver(now, this.#manager);
    });
  }

  #tellManager(now: Nanos, why: string): void {
    const manager = this.#manager;
    this.#manager = undefined;
    manager?.closed(now, why);
  }

  #tellAgent(now: Nanos, why: string): void {
    const agent = this.#agent;
    this.#agent = undefined;
    agent?.closed(now, why);
  }

  #encode(message: () => ConnectRequest): Uint8Array | undefined {
    return this.#options.onWire() ? toBinary(ConnectRequestSchema, message()) : undefined;
  }

  /** As the manager's server reads it: what cannot be ends the stream. */
  #decode(bytes: Uint8Array): AgentMessage | undefined {
    try {
      return agentMessageFromWire(fromBinary(ConnectRequestSchema, bytes));
    } catch (error) {
      if (!(error instanceof DxpuError)) throw error;
      this.#tellManager(this.#options.clock.now(), error.message);
      this.closeByManager(error.message);
      return undefined;
    }
  }

  #arrival(lastNs: number): number {
    const { clock, prng, delayNs } = this.#options;
    return Math.max(lastNs, clock.now() + delayNs() * prng.float());
  }

  #at(atNs: number, fn: (now: Nanos) => void): void {
    this.#options.clock.at(nanos(atNs), fn);
  }
}
