/**
 * The pure half of an agent: brings one proxy to what the manager ordered, step by step, and reports
 * what is. An `AgentCore` owns which order is in force and what was last said; its `AgentPart` owns the
 * newest order and knows its kind of proxy, which is the data plane's. `BoxAgentCore` and
 * `HostAgentCore` are the two there are.
 *
 * It keeps the order when the stream is lost, for traffic goes on without a manager, and forgets it
 * with the process: what a restarted proxy holds is nothing.
 */
import type { Timed } from '#base/clock';
import { DxpuError } from '#base/errors';
import type { Nanos } from '#base/units';
import type { AgentHello, AgentOrder, AgentReport } from '#proto/agent-messages';
import type { AgentFaults } from './agent-faults.ts';
import { OrderSequence } from './order-sequence.ts';

/** The stream of the shell, while it is up. */
export interface AgentUplink {
  hello(hello: AgentHello): void;
  report(report: AgentReport): void;
}

export interface Agent extends Timed {
  /** A stream is up: hello and a whole report go out at once. */
  connected(now: Nanos, uplink: AgentUplink): void;
  disconnected(now: Nanos): void;
  /** An order that does not follow its predecessor is refused with an exception: end the stream. */
  order(now: Nanos, order: AgentOrder): void;
  /** Something of the data plane changed: acts on it, and reports what is new. */
  changed(now: Nanos): void;
}

/** What is particular to one kind of proxy. */
export interface AgentPart<O extends AgentOrder> {
  readonly kind: O['kind'];
  /** Takes note of an order. */
  take(now: Nanos, order: O): void;
  /** Brings the plane to the newest order, as far as it is not there. '' or why it cannot be. */
  apply(now: Nanos): string;
  /** All there is when `whole`, otherwise what is new; nothing when that is nothing and `force` is not set. */
  report(now: Nanos, said: Said, whole: boolean, force: boolean): AgentReport | undefined;
  /** When to look at the plane although nobody says that it changed. */
  nextLookNs(): number;
}

/** What every report says. */
export interface Said {
  readonly applied: number;
  readonly refused: string;
}

export class AgentCore<O extends AgentOrder> implements Agent {
  readonly #hello: AgentHello;
  readonly #part: AgentPart<O>;
  readonly #faults: AgentFaults;
  readonly #sequence: OrderSequence;
  #uplink: AgentUplink | undefined;
  #said: Said = { applied: 0, refused: '' };
  /** The plane may say that it changed while it is being changed. */
  #isBusy = false;

  constructor(hello: AgentHello, part: AgentPart<O>, faults: AgentFaults = {}) {
    this.#hello = hello;
    this.#part = part;
    this.#faults = faults;
    this.#sequence = new OrderSequence(part.kind, faults.appliesStaleOrder === true);
  }

  connected(now: Nanos, uplink: AgentUplink): void {
    this.#uplink = uplink;
    this.#sequence.begin();
    uplink.hello(this.#hello);
    this.#report(now, true);
  }

  disconnected(_now: Nanos): void {
    this.#uplink = undefined;
  }

  order(now: Nanos, order: AgentOrder): void {
    if (this.#uplink === undefined) {
      throw new DxpuError('failed_precondition', `order ${order.revision} came without a stream`);
    }
    this.#sequence.accept(order);
    this.#guarded(() => {
      this.#part.take(now, order as O);
      this.#apply(now);
    });
    this.#report(now, false);
  }

  changed(now: Nanos): void {
    if (this.#isBusy) return;
    // What was in the way may be gone.
    if (this.#sequence.isPending) this.#guarded(() => this.#apply(now));
    this.#report(now, false);
  }

  nextDeadlineNs(): number {
    return this.#uplink === undefined ? Infinity : this.#part.nextLookNs();
  }

  tick(now: Nanos): void {
    if (now >= this.nextDeadlineNs()) this.changed(now);
  }

  #apply(now: Nanos): void {
    const refused = this.#part.apply(now);
    this.#sequence.tried(refused, this.#faults.claimsRefusedOrder === true);
  }

  #guarded(work: () => void): void {
    this.#isBusy = true;
    try {
      work();
    } finally {
      this.#isBusy = false;
    }
  }

  #report(now: Nanos, whole: boolean): void {
    const uplink = this.#uplink;
    if (uplink === undefined) return;
    const { applied, refused } = this.#sequence;
    const force = applied !== this.#said.applied || refused !== this.#said.refused;
    this.#said = { applied, refused };
    const report = this.#part.report(now, this.#said, whole, force);
    if (report !== undefined) uplink.report(report);
  }
}
