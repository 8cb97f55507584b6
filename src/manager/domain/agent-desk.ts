/**
 * The streams of agents: who lives, which report counts, what ends a stream. A stream that says hello
 * takes its identity's place at once; what it says about itself counts from its first report on, so
 * that a new instance and the bindings it has lost are known in one turn.
 */
import { assert } from '#base/assert';
import { DxpuError } from '#base/errors';
import type { Nanos } from '#base/units';
import { identityName } from '#identity/identity';
import type { AgentHello, AgentReport, BoxHello, HostHello } from '#proto/agent-messages';
import type { BoxReports } from './box-reports.ts';
import type { FactsKeeper } from './facts-keeper.ts';
import type { HostReports } from './host-reports.ts';
import type { Box, Host, Inventory } from './inventory.ts';
import type { Journal } from './journal.ts';
import type { OrderDesk } from './order-desk.ts';
import type { Outbox } from './outbox.ts';
import type { PeerLists } from './peer-lists.ts';
import type { AgentSessionId } from './pool-sink.ts';
import type { Reconciler } from './reconciler.ts';
import type { RefusedClaims } from './refused-claims.ts';
import { highestGeneration, reportFault } from './report-faults.ts';

export interface AgentDeskParts {
  readonly inventory: Inventory;
  readonly journal: Journal;
  readonly facts: FactsKeeper;
  readonly reconciler: Reconciler;
  readonly claims: RefusedClaims;
  readonly orders: OrderDesk;
  readonly peers: PeerLists;
  readonly outbox: Outbox;
  readonly boxReports: BoxReports;
  readonly hostReports: HostReports;
}

interface Stream {
  readonly id: AgentSessionId;
  readonly hello: AgentHello;
  /** Who it reports for, once it has. */
  owner: Box | Host | undefined;
}

/** `seenMs` is as old as this at most, while reports come. */
const SEEN_STEP_NS = 10e9;

export class AgentDesk {
  readonly #parts: AgentDeskParts;
  readonly #streams = new Map<AgentSessionId, Stream>();
  readonly #living = new Map<string, Stream>();
  boxesConnected = 0;
  hostsConnected = 0;

  constructor(parts: AgentDeskParts) {
    this.#parts = parts;
  }

  connected(id: AgentSessionId, hello: AgentHello): void {
    const name = identityName(hello);
    assert(!this.#streams.has(id), `stream ${id} of ${name} begins a second time`);
    if (this.#living.has(name)) {
      const text = `a second live stream of ${hello.kind} ${hello.id} is refused: the first one lives`;
      this.#parts.claims.log(hello, text);
      this.#parts.outbox.end(id, new DxpuError('already_exists', `${name}: ${text}`));
      return;
    }
    const stream: Stream = { id, hello, owner: undefined };
    this.#streams.set(id, stream);
    this.#living.set(name, stream);
  }

  report(now: Nanos, id: AgentSessionId, report: AgentReport): void {
    const stream = this.#streams.get(id);
    // It was ended, and what it had sent before was still on its way.
    if (stream === undefined) return;
    const { journal, reconciler, boxReports, hostReports } = this.#parts;
    const { hello } = stream;
    const isFirst = stream.owner === undefined;
    const book = stream.owner?.session?.book;
    const fault = reportFault(report, {
      kind: hello.kind,
      isFirst,
      hasRaised: this.#known(hello)?.hasRaised === true,
      revision: book?.revision ?? 0,
      applied: book?.applied ?? 0,
      generation: journal.generation,
    });
    if (fault !== undefined) {
      this.#expel(now, stream, fault);
      return;
    }
    const highest = highestGeneration(report);
    const isAhead = highest > journal.generation;
    if (isAhead) this.#raiseGeneration(identityName(hello), highest);
    const owner = stream.owner ?? this.#begin(now, stream);
    if (isAhead) owner.hasRaised = true;
    if (isFirst) reconciler.renumberReserved(owner.slots.values(), highest);
    if (owner.kind === 'box' && report.kind === 'box') boxReports.take(owner, report);
    if (owner.kind === 'host' && report.kind === 'host') hostReports.take(owner, report);
    this.#takeApplied(owner, report);
    this.#noteSeen(now, owner);
  }

  disconnected(now: Nanos, id: AgentSessionId): void {
    const stream = this.#streams.get(id);
    if (stream !== undefined) this.#drop(now, stream, '');
  }

  #known({ kind, id }: AgentHello): Box | Host | undefined {
    const { boxes, hosts } = this.#parts.inventory;
    return kind === 'box' ? boxes.get(id) : hosts.get(id);
  }

  /** What the hello said holds from now on. */
  #begin(now: Nanos, stream: Stream): Box | Host {
    const { journal, reconciler } = this.#parts;
    const { id, hello } = stream;
    const known = this.#known(hello);
    const isRestarted = known !== undefined && known.record.instance !== hello.instance;
    const owner =
      hello.kind === 'box' ? this.#boxBegins(now, id, hello) : this.#hostBegins(now, id, hello);
    stream.owner = owner;
    for (const { binding } of owner.slots.values()) {
      if (binding === undefined) continue;
      if (isRestarted && owner.kind === 'box') binding.boxRestarted = true;
      if (isRestarted && owner.kind === 'host') binding.hostRestarted = true;
      reconciler.touch(binding);
    }
    journal.log({
      actor: identityName(hello),
      subjectKind: hello.kind,
      subject: hello.id,
      action: isRestarted ? 'restarted' : 'connected',
      message: isRestarted
        ? `another process (version ${hello.version}) reports for it`
        : `its agent (version ${hello.version}) reports`,
    });
    return owner;
  }

  #boxBegins(now: Nanos, id: AgentSessionId, { kind: _, ...said }: BoxHello): Box {
    const { inventory, journal, facts, orders, peers } = this.#parts;
    const record = { ...said, seenMs: journal.nowMs };
    const box = inventory.boxes.get(said.id) ?? inventory.addBox(record);
    box.record = record;
    box.session = orders.openBox(id, box, now);
    this.boxesConnected++;
    facts.box(box, false);
    peers.came(box);
    journal.put('boxes', record);
    return box;
  }

  #hostBegins(now: Nanos, id: AgentSessionId, { kind: _, ...said }: HostHello): Host {
    const { inventory, journal, facts, orders } = this.#parts;
    const record = { ...said, seenMs: journal.nowMs };
    const known = inventory.hosts.get(said.id);
    const host = known ?? inventory.addHost(record);
    if (known === undefined) facts.host(host);
    host.record = record;
    host.session = orders.openHost(id, host, now);
    this.hostsConnected++;
    facts.hostReachable(host);
    journal.put('hosts', record);
    return host;
  }

  /** What the report says of orders: which are in force, and which could not be. */
  #takeApplied(owner: Box | Host, { applied, refused }: AgentReport): void {
    const { session } = owner;
    assert(session !== undefined, `${identityName(owner)} reports without a stream`);
    const { book } = session;
    if (applied > book.applied) {
      for (const slot of book.confirm(applied) ?? owner.slots.keys()) this.#touch(owner, slot);
    }
    for (const slot of session.refusedSlots) {
      const found = owner.slots.get(slot);
      if (found !== undefined) found.refused = '';
    }
    session.refusedSlots = refused === '' ? [] : book.suspects();
    for (const slot of session.refusedSlots) {
      const found = this.#touch(owner, slot);
      if (found !== undefined) found.refused = refused;
    }
    const text = refused === '' ? '' : `cannot put an order in force: ${refused}`;
    this.#parts.claims.set(owner, 'order', text);
  }

  #touch(owner: Box | Host, slot: number): { refused: string } | undefined {
    const { reconciler } = this.#parts;
    if (owner.kind === 'box') {
      const found = owner.slots.get(slot);
      if (found !== undefined) reconciler.touchBoxSlot(found);
      return found;
    }
    const found = owner.slots.get(slot);
    if (found !== undefined) reconciler.touchHostSlot(found);
    return found;
  }

  #raiseGeneration(actor: string, to: number): void {
    const { journal, reconciler } = this.#parts;
    const message = `the store is older than what proxies hold: generations go on behind ${to}, not ${journal.generation}`;
    journal.raiseGeneration(to);
    journal.log({
      actor,
      subjectKind: 'pool',
      subject: 'pool',
      action: 'generation-jump',
      message,
    });
    reconciler.distrustGenerations();
  }

  #expel(now: Nanos, stream: Stream, fault: string): void {
    const { hello, id } = stream;
    const error = new DxpuError('failed_precondition', `${identityName(hello)}: ${fault}`);
    this.#parts.claims.log(hello, fault);
    this.#parts.outbox.end(id, error);
    this.#drop(now, stream, `its stream was ended: ${fault}`);
  }

  #drop(now: Nanos, { id, hello, owner }: Stream, message: string): void {
    const { journal, facts, peers, boxReports, hostReports, orders } = this.#parts;
    const actor = identityName(hello);
    this.#streams.delete(id);
    this.#living.delete(actor);
    if (owner === undefined) return;
    owner.session = undefined;
    if (owner.kind === 'box') {
      this.boxesConnected--;
      facts.box(owner, true);
      boxReports.forget(owner);
      peers.left(now, owner);
    } else {
      this.hostsConnected--;
      facts.hostReachable(owner);
      hostReports.forget(owner);
    }
    orders.close(owner);
    this.#putSeen(owner);
    const { kind, id: subject } = hello;
    journal.log({ actor, subjectKind: kind, subject, action: 'disconnected', message });
  }

  #noteSeen(now: Nanos, owner: Box | Host): void {
    const { session } = owner;
    if (session === undefined || now - session.seenNs < SEEN_STEP_NS) return;
    session.seenNs = now;
    this.#putSeen(owner);
  }

  #putSeen(owner: Box | Host): void {
    const { journal } = this.#parts;
    const seenMs = journal.nowMs;
    if (owner.kind === 'box') {
      owner.record = { ...owner.record, seenMs };
      journal.put('boxes', owner.record);
    } else {
      owner.record = { ...owner.record, seenMs };
      journal.put('hosts', owner.record);
    }
  }
}
