/**
 * One agent with its proxy in virtual time: the real core over a model of the data plane, and a stream
 * to the manager that it dials again and again. Killed, all of it is gone.
 */
import type { Agent, AgentUplink } from '#agent/core/agent-core';
import type { AgentFaults } from '#agent/core/agent-faults';
import { BoxAgentCore } from '#agent/core/box-agent';
import type { BoxDataPlane, HostDataPlane } from '#agent/core/data-plane';
import { HostAgentCore } from '#agent/core/host-agent';
import { DxpuError } from '#base/errors';
import type { Prng } from '#base/prng';
import { type Nanos, nanos } from '#base/units';
import type { VirtualClock } from '#base/virtual-clock';
import type { AgentReport } from '#proto/agent-messages';
import { ClusterInvariant, type ClusterOracle } from './cluster-oracle.ts';
import type { Liar } from './liar.ts';
import type { ManagerProcess } from './manager-process.ts';
import type { ModelBox } from './model-box.ts';
import { type ModelHost, PATH } from './model-host.ts';
import type { BoxPlan, HostPlan } from './plan.ts';
import { isSame } from './store-mirror.ts';
import { type AgentEnd, Stream } from './stream.ts';

const DIAL_NS = 1e9;

export interface AgentProcessOptions {
  readonly clock: VirtualClock;
  readonly prng: Prng;
  readonly oracle: ClusterOracle;
  readonly instance: string;
  /** Of a message now. */
  readonly delayNs: () => number;
  readonly keepAliveNs: number;
  readonly onWire: boolean;
  readonly pathIntervalNs: number;
  /** The one that can be reached, if any. */
  readonly manager: () => ManagerProcess | undefined;
  /** The manager cannot be reached from here now. */
  readonly isCutOff: () => boolean;
  readonly faults: AgentFaults;
}

/** A proxy, as the process that holds it and its agent sees it. */
export interface HeldProxy {
  /** The newest table is not in force. */
  readonly isBehind: boolean;
  kill(): void;
}

export type Plane<
  B extends BoxDataPlane & HeldProxy = ModelBox,
  H extends HostDataPlane & HeldProxy = ModelHost,
> =
  | { readonly kind: 'box'; readonly box: B; readonly plan: BoxPlan }
  | { readonly kind: 'host'; readonly host: H; readonly plan: HostPlan };

export class AgentProcess<
  B extends BoxDataPlane & HeldProxy = ModelBox,
  H extends HostDataPlane & HeldProxy = ModelHost,
> {
  readonly id: string;
  readonly plane: Plane<B, H>;
  liar: Liar | undefined;
  stream: Stream | undefined;
  readonly #options: AgentProcessOptions;
  readonly #core: Agent;
  /** Since the last order came. */
  #attempts = 0;
  /** Of the orders of this stream. */
  #newest = 0;
  #dead = false;
  #changeIsDue = false;
  #tickAtNs = Infinity;

  constructor(plane: Plane<B, H>, options: AgentProcessOptions) {
    this.plane = plane;
    this.#options = options;
    this.id = plane.plan.id;
    const { instance, faults, pathIntervalNs } = options;
    const named = { id: this.id, instance, version: '1' };
    if (plane.kind === 'box') {
      const { kind: boxKind, zone } = plane.plan;
      const endpoints = [{ path: PATH, address: `${this.id}.test:7000` }];
      const hello = { kind: 'box', ...named, boxKind, zone, endpoints } as const;
      this.#core = new BoxAgentCore({ hello, plane: plane.box, faults });
    } else {
      const hello = { kind: 'host', ...named, reach: plane.plan.reach } as const;
      this.#core = new HostAgentCore({ hello, plane: plane.host, pathIntervalNs, faults });
    }
    this.#dialLater(0.1);
  }

  get isDead(): boolean {
    return this.#dead;
  }

  /** The data plane has something to show; looked at once, whatever happened at this time. */
  changed(): void {
    if (this.#dead || this.#changeIsDue) return;
    this.#changeIsDue = true;
    this.#at(this.#options.clock.now(), (now) => {
      this.#changeIsDue = false;
      this.#core.changed(now);
      this.#arm();
    });
  }

  kill(): void {
    this.#dead = true;
    this.stream?.agentDied(this.#options.prng.chance(0.7));
    this.stream = undefined;
    if (this.plane.kind === 'box') this.plane.box.kill();
    else this.plane.host.kill();
  }

  /** Sooner at first than after attempts that came to nothing. */
  #dialLater(factor = Math.min(4, 0.5 * 2 ** this.#attempts)): void {
    const { clock, prng } = this.#options;
    this.#attempts++;
    this.#at(clock.now() + DIAL_NS * factor * (0.1 + prng.float()), (now) => this.#dial(now));
  }

  #dial(now: Nanos): void {
    const { clock, prng, delayNs, keepAliveNs, manager, onWire, isCutOff } = this.#options;
    const there = manager();
    if (there === undefined || isCutOff()) {
      this.#dialLater();
      return;
    }
    const streamOptions = {
      clock,
      prng,
      delayNs,
      keepAliveNs,
      // A liar can say what can be encoded, and no more.
      onWire: () => onWire || this.liar !== undefined,
    };
    const end: AgentEnd = {
      order: (at, order) => {
        this.#newest = order.revision;
        this.#attempts = 0;
        this.#order(at, stream, () => this.#core.order(at, order));
      },
      closed: (at, why) => this.#closed(at, stream, why),
    };
    const stream: Stream = new Stream(
      streamOptions,
      end,
      there.accept(this.id, () => stream),
    );
    this.stream = stream;
    const uplink: AgentUplink = {
      hello: (hello) => stream.hello(hello),
      report: (report) => {
        if (this.liar === undefined) this.#judge(report);
        stream.report(this.liar?.tell(report) ?? report);
      },
    };
    this.#core.connected(now, uplink);
    this.#arm();
  }

  #order(now: Nanos, stream: Stream, work: () => void): void {
    if (this.#dead || this.stream !== stream) return;
    try {
      work();
    } catch (error) {
      if (!(error instanceof DxpuError)) throw error;
      this.#options.oracle.counts.up('orders out of turn');
      this.#options.oracle.event(`${this.id} ends its stream: ${error.message}`);
      stream.closeByAgent(error.message);
      this.#closed(now, stream, error.message);
      return;
    }
    if (stream.isTorn) {
      const message = `${this.id} takes an order, and one before it never came`;
      this.#options.oracle.fail(ClusterInvariant.STORE_OWNS, message);
    }
    this.#arm();
  }

  /** What an honest agent says is what its proxy shows, and no order counts that is not in force. */
  #judge(report: AgentReport): void {
    const { oracle } = this.#options;
    const plane = this.plane.kind === 'box' ? this.plane.box : this.plane.host;
    const shown = plane.slots();
    for (const slot of report.slots) {
      if (isSame(slot, shown[slot.slot])) continue;
      const message = `${this.id} says of slot ${slot.slot} what its proxy does not show`;
      oracle.fail(ClusterInvariant.STORE_OWNS, message);
    }
    if (plane.isBehind && report.applied >= this.#newest) {
      const message = `${this.id} says that order ${report.applied} is in force, which was refused`;
      oracle.fail(ClusterInvariant.STORE_OWNS, message);
    }
  }

  #closed(now: Nanos, stream: Stream, why: string): void {
    if (this.#dead || this.stream !== stream) return;
    this.#options.oracle.event(`${this.id} has lost its stream: ${why}`);
    this.stream = undefined;
    this.#core.disconnected(now);
    this.#dialLater();
  }

  #arm(): void {
    const deadlineNs = this.#core.nextDeadlineNs();
    if (deadlineNs >= this.#tickAtNs) return;
    this.#tickAtNs = deadlineNs;
    this.#at(deadlineNs, (now) => {
      if (this.#tickAtNs !== deadlineNs) return;
      this.#tickAtNs = Infinity;
      this.#core.tick(now);
      this.#arm();
    });
  }

  #at(atNs: number, fn: (now: Nanos) => void): void {
    this.#options.clock.at(nanos(atNs), (now) => {
      if (!this.#dead) fn(now);
    });
  }
}
