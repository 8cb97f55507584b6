/**
 * The manager's core alone, in a shell of turns over a store in memory, with model proxies that do what
 * they are told unless a test holds them back. No wire, no agent core: what a model reports is what it
 * is, and a test can make it anything.
 */
import type { DxpuError } from '#base/errors';
import { type Nanos, nanos } from '#base/units';
import type { Command, CommandAnswer } from '#manager/domain/commands';
import { PoolCore } from '#manager/domain/pool-core';
import type { PoolFaults } from '#manager/domain/pool-options';
import type { AgentSessionId, PoolSink } from '#manager/domain/pool-sink';
import type { BindingRecord, BindingState, LogRecord } from '#manager/domain/records';
import { MemoryStore } from '#manager/store/memory-store';
import type { Demand } from '#placement/demand';
import type { AgentHello, AgentOrder, AgentReport } from '#proto/agent-messages';
import { ModelBoxProxy } from './core-pool-box.ts';
import { ModelHostProxy } from './core-pool-host.ts';
import type { ModelProxy, ProxyHome } from './core-pool-proxy.ts';

type AskedBind = Partial<Demand> & { readonly requestId?: string; readonly retries?: boolean };

export class CorePool implements PoolSink, ProxyHome {
  store = new MemoryStore();
  core: PoolCore;
  now: Nanos = nanos(1e9);
  wallMs = 1_700_000_000_000;
  readonly faults: PoolFaults;
  readonly answers = new Map<number, CommandAnswer>();
  readonly ended = new Map<AgentSessionId, DxpuError>();
  readonly log: LogRecord[] = [];
  /** Names of all steps taken, also by cores that were thrown away. */
  readonly steps: string[] = [];
  readonly boxes = new Map<string, ModelBoxProxy>();
  readonly hosts = new Map<string, ModelHostProxy>();
  readonly #bySession = new Map<AgentSessionId, ModelProxy>();
  #tickets = 0;
  #sessions = 0;
  #requests = 0;

  constructor(faults: PoolFaults = {}) {
    this.faults = faults;
    this.core = this.#newCore();
  }

  /** A box with its GPU nodes and a host with its ports, connected and told everything. */
  static ready(faults: PoolFaults = {}): CorePool {
    const pool = new CorePool(faults);
    pool.addBox('b1', 2).connect();
    pool.addHost('h1', 2).connect();
    pool.run();
    return pool;
  }

  addBox(id: string, gpus: number): ModelBoxProxy {
    const box = new ModelBoxProxy(this, id, gpus);
    this.boxes.set(id, box);
    return box;
  }

  addHost(id: string, slots: number): ModelHostProxy {
    const host = new ModelHostProxy(this, id, slots);
    this.hosts.set(id, host);
    return host;
  }

  get box(): ModelBoxProxy {
    return this.boxes.get('b1') as ModelBoxProxy;
  }

  get host(): ModelHostProxy {
    return this.hosts.get('h1') as ModelHostProxy;
  }

  /** Asks, and commits; the answer is that of the core. */
  ask(command: Command, caller = 'user/alice'): CommandAnswer {
    const ticket = this.#tickets++;
    this.core.command(this.now, { name: caller }, command, ticket);
    this.turn();
    return this.answers.get(ticket) as CommandAnswer;
  }

  bind(asked: AskedBind = {}): CommandAnswer {
    const { requestId = this.newRequest(), retries = true, ...demand } = asked;
    return this.ask({ kind: 'bind', requestId, retries, demand: demandOf(demand) });
  }

  /** As `bind`, where it must succeed: the ids. */
  bound(asked: AskedBind = {}): string[] {
    const answer = this.bind(asked);
    if (!answer.ok) throw new Error(`not bound: ${JSON.stringify(answer)}`);
    return answer.bindings.map(({ id }) => id);
  }

  unbind(bindings: readonly string[], force = false): CommandAnswer {
    return this.ask({ kind: 'unbind', requestId: this.newRequest(), bindings, force });
  }

  retry(bindings: readonly string[]): CommandAnswer {
    return this.ask({ kind: 'retry', requestId: this.newRequest(), bindings });
  }

  newRequest(): string {
    return `r${this.#requests++}`;
  }

  /** One turn of the shell. */
  turn(): void {
    const batch = this.core.takeBatch();
    if (batch !== undefined) this.store.commit(batch);
    this.core.committed(this.now);
  }

  /** Orders are carried out and reported, until nothing more comes of it. */
  run(): void {
    this.turn();
    for (let round = 0; round < 200; round++) {
      let isBusy = false;
      for (const proxy of this.proxies()) if (proxy.work()) isBusy = true;
      if (this.core.nextDeadlineNs() <= this.now) {
        this.core.tick(this.now);
        isBusy = true;
      }
      this.turn();
      if (!isBusy) return;
    }
    throw new Error('the pool does not come to rest');
  }

  /** Time passes; deadlines are met at their moment, and what they cause is carried out. */
  pass(ms: number, andRun = true): void {
    const endNs = this.now + ms * 1e6;
    for (;;) {
      const nextNs = this.core.nextDeadlineNs();
      if (nextNs > endNs) break;
      this.now = nanos(Math.max(nextNs, this.now));
      this.core.tick(this.now);
      if (andRun) this.run();
      else this.turn();
    }
    this.now = nanos(endNs);
    this.wallMs += ms;
  }

  /** The manager dies and is started anew on its store; no agent is connected. */
  restart(): void {
    for (const proxy of this.proxies()) proxy.lostStream();
    this.#bySession.clear();
    this.core = this.#newCore();
  }

  *proxies(): Iterable<ModelProxy> {
    yield* this.boxes.values();
    yield* this.hosts.values();
  }

  open(proxy: ModelProxy, hello: AgentHello): AgentSessionId {
    const session = ++this.#sessions;
    this.#bySession.set(session, proxy);
    this.core.connected(this.now, session, hello);
    return session;
  }

  /** Who has the stream. */
  proxyOf(session: AgentSessionId): ModelProxy | undefined {
    return this.#bySession.get(session);
  }

  report(session: AgentSessionId, report: AgentReport): void {
    this.core.report(this.now, session, report);
  }

  close(session: AgentSessionId): void {
    this.#bySession.delete(session);
    this.core.disconnected(this.now, session);
  }

  answer(ticket: number, answer: CommandAnswer): void {
    if (this.answers.has(ticket)) throw new Error(`ticket ${ticket} is answered twice`);
    this.answers.set(ticket, answer);
  }

  order(session: AgentSessionId, order: AgentOrder): void {
    this.#bySession.get(session)?.order(order);
  }

  endSession(session: AgentSessionId, error: DxpuError): void {
    this.ended.set(session, error);
    this.#bySession.get(session)?.lostStream(session);
    this.#bySession.delete(session);
  }

  logged(entries: readonly LogRecord[]): void {
    this.log.push(...entries);
  }

  /** As the store has it. */
  stored(id: string): BindingRecord | undefined {
    return this.store.load().bindings.find((binding) => binding.id === id);
  }

  state(id: string): BindingState | 'free' {
    return this.core.binding(id)?.record.state ?? 'free';
  }

  #newCore(): PoolCore {
    return new PoolCore({
      sink: this,
      snapshot: this.store.load(),
      wallMs: () => this.wallMs,
      faults: this.faults,
      onTransition: (name) => this.steps.push(name),
    });
  }
}

export function demandOf(demand: Partial<Demand>): Demand {
  return {
    gpus: 1,
    host: 'h1',
    model: undefined,
    memoryBytes: undefined,
    sameBox: false,
    nvlink: false,
    boxKind: undefined,
    maxRttNs: undefined,
    ...demand,
  };
}
