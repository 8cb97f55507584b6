/**
 * The core of the manager, wired together. Who owns what:
 *
 * - `Inventory`: the pool in memory. Its file says who changes which part: `AgentDesk` (whose stream
 *   lives), `BoxReports`, `HostReports`, `CommandDesk` (what users ask), `Reconciler` (lives of bindings).
 *   `PoolViews` reads it for lists.
 * - `Journal`: what the turn has changed so far. `takeBatch` hands it over. `RequestBook` and
 *   `RefusedClaims` keep to it what was answered, and what proxies say that is not believed.
 * - `Outbox`: what the turn wants told. Sealed with the batch, released by `committed`.
 * - `FactsKeeper`: the placement index, told whenever a slot may be another.
 * - `PeerLists`, `OrderDesk`: which links hosts keep; the orders of a turn, by the `OrderBook` of a stream.
 *
 * A call changes records and touches what may be affected; `settle` then walks each touched binding
 * through the table of transitions. Orders are made when the turn ends, from what is wanted by then.
 */
import type { Nanos } from '#base/units';
import type { Candidate, Demand } from '#placement/demand';
import { explain } from '#placement/explain';
import { plan } from '#placement/plan';
import type { AgentHello, AgentReport } from '#proto/agent-messages';
import { AgentDesk } from './agent-desk.ts';
import type { Batch } from './batch.ts';
import { BoxReports } from './box-reports.ts';
import { CommandDesk } from './command-desk.ts';
import type { Caller, Command, DryRun } from './commands.ts';
import { FactsKeeper } from './facts-keeper.ts';
import { HostReports } from './host-reports.ts';
import type { Inventory } from './inventory.ts';
import { Journal } from './journal.ts';
import { OrderDesk } from './order-desk.ts';
import { Outbox } from './outbox.ts';
import { PeerLists } from './peer-lists.ts';
import type {
  BindingFilter,
  BindingView,
  BoxView,
  GpuFilter,
  GpuView,
  HostView,
  PageOf,
  PathView,
  Pool,
  PoolStatus,
} from './pool.ts';
import { DEFAULT_TIMEOUTS, type PoolCoreOptions, type PoolFaults } from './pool-options.ts';
import type { AgentSessionId } from './pool-sink.ts';
import { PoolViews } from './pool-views.ts';
import { Reconciler } from './reconciler.ts';
import { RefusedClaims } from './refused-claims.ts';
import { RequestBook } from './request-book.ts';
import { restoreInventory } from './restore.ts';

/**
 * The owner of the pool: who has which GPU node, and what every proxy should hold. It begins with what
 * the store remembers and with no agent connected; what proxies hold it learns from their reports
 * alone. See `Pool` for the turns it is driven in.
 *
 * Times are by `now`, which must not run backwards from call to call. Deadlines begin with the first
 * call that brings a time, so `nextDeadlineNs` is 0 until then.
 */
export class PoolCore implements Pool {
  readonly #inventory: Inventory;
  readonly #journal: Journal;
  readonly #outbox: Outbox;
  readonly #facts: FactsKeeper;
  readonly #peers: PeerLists;
  readonly #orders: OrderDesk;
  readonly #reconciler: Reconciler;
  readonly #requests: RequestBook;
  readonly #commands: CommandDesk;
  readonly #agents: AgentDesk;
  readonly #views: PoolViews;
  readonly #faults: PoolFaults;
  #hasBegun = false;
  #now = 0 as Nanos;

  constructor(options: PoolCoreOptions) {
    const { sink, snapshot, wallMs, faults = {}, onTransition } = options;
    const timeouts = { ...DEFAULT_TIMEOUTS, ...options.timeouts };
    const journal = new Journal(snapshot.counters, wallMs);
    const facts = new FactsKeeper(faults);
    const inventory = restoreInventory(snapshot, facts);
    const outbox = new Outbox(sink);
    const peers = new PeerLists(inventory);
    const orders = new OrderDesk(inventory, outbox, peers);
    const reconciler = new Reconciler({
      inventory,
      journal,
      facts,
      timeouts,
      faults,
      onTransition,
      onFreed: ({ boxSlot, hostSlot }) => {
        if (boxSlot.box.peerZone === undefined) orders.peersChanged(hostSlot.host);
      },
    });
    for (const binding of inventory.bindings.values()) reconciler.adopt(binding);
    const requests = new RequestBook(journal, snapshot.requests, timeouts.keepRequestsMs);
    const claims = new RefusedClaims(journal);
    const parts = { inventory, journal, facts, reconciler, claims, faults };
    this.#inventory = inventory;
    this.#journal = journal;
    this.#outbox = outbox;
    this.#facts = facts;
    this.#peers = peers;
    this.#orders = orders;
    this.#reconciler = reconciler;
    this.#requests = requests;
    this.#commands = new CommandDesk({ ...parts, requests, onTransition });
    this.#agents = new AgentDesk({
      ...parts,
      orders,
      peers,
      outbox,
      boxReports: new BoxReports(parts),
      hostReports: new HostReports(parts),
    });
    this.#views = new PoolViews(inventory);
    this.#faults = faults;
  }

  command(now: Nanos, caller: Caller, command: Command, ticket: number): void {
    this.#turn(now, () => {
      this.#outbox.answer(ticket, this.#commands.run(now, caller, command));
    });
  }

  dryRun(demand: Demand): DryRun {
    return plan(this.#facts.index, demand);
  }

  explain(demand: Demand): Iterable<Candidate> {
    return explain(this.#facts.index, demand);
  }

  connected(now: Nanos, session: AgentSessionId, hello: AgentHello): void {
    this.#turn(now, () => this.#agents.connected(session, hello));
  }

  report(now: Nanos, session: AgentSessionId, report: AgentReport): void {
    this.#turn(now, () => this.#agents.report(now, session, report));
  }

  disconnected(now: Nanos, session: AgentSessionId): void {
    this.#turn(now, () => this.#agents.disconnected(now, session));
  }

  nextDeadlineNs(): number {
    if (!this.#hasBegun) return 0;
    const nextNs = Math.min(this.#reconciler.nextDeadlineNs(), this.#peers.nextDeadlineNs());
    return Math.max(nextNs, this.#now);
  }

  tick(now: Nanos): void {
    this.#turn(now, () => {
      this.#reconciler.tick(now);
      this.#orders.tick(now);
    });
  }

  takeBatch(): Batch | undefined {
    this.#orders.makeOrders(this.#now);
    const batch = this.#journal.take();
    this.#reconciler.seal();
    this.#outbox.seal(batch?.log ?? []);
    return batch;
  }

  committed(now: Nanos): void {
    this.#now = now;
    this.#reconciler.committed();
    this.#outbox.release();
  }

  status(): PoolStatus {
    const { counts } = this.#reconciler;
    return {
      position: this.#journal.position,
      boxes: this.#inventory.boxes.size,
      boxesConnected: this.#agents.boxesConnected,
      hosts: this.#inventory.hosts.size,
      hostsConnected: this.#agents.hostsConnected,
      gpus: this.#facts.gpus,
      gpusFree: this.#facts.gpusFree,
      bindings: this.#inventory.bindings.size,
      bindingsAttached: counts.get('attached') ?? 0,
      bindingsFailed: counts.get('failed') ?? 0,
    };
  }

  binding(id: string): BindingView | undefined {
    return this.#views.binding(id);
  }

  bindings(filter: BindingFilter, after: string, limit: number): PageOf<BindingView> {
    return this.#views.bindings(filter, after, limit);
  }

  boxes(filter: { readonly id?: string }, after: string, limit: number): PageOf<BoxView> {
    return this.#views.boxes(filter, after, limit);
  }

  hosts(filter: { readonly id?: string }, after: string, limit: number): PageOf<HostView> {
    return this.#views.hosts(filter, after, limit);
  }

  gpus(filter: GpuFilter, after: string, limit: number): PageOf<GpuView> {
    return this.#views.gpus(filter, after, limit);
  }

  paths(
    filter: { readonly host?: string; readonly box?: string },
    after: string,
    limit: number,
  ): PageOf<PathView> {
    return this.#views.paths(filter, after, limit);
  }

  #turn(now: Nanos, work: () => void): void {
    this.#now = now;
    if (!this.#hasBegun) this.#begin(now);
    work();
    this.#reconciler.settle(now);
    if (this.#faults.answersBeforeCommit === true) {
      this.#orders.makeOrders(now);
      this.#outbox.seal([]);
      this.#outbox.release();
    }
  }

  /** What the store remembers begins to be timed. */
  #begin(now: Nanos): void {
    this.#hasBegun = true;
    this.#requests.begin(now);
    for (const box of this.#inventory.boxes.values()) this.#peers.left(now, box);
    for (const binding of this.#inventory.bindings.values()) this.#reconciler.begin(now, binding);
  }
}
