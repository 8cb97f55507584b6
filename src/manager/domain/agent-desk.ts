/**
 * The streams of agents: who lives, which report counts, what ends a stream. A stream that says hello
 * takes its identity's place at once; what it says about itself counts from its first report on, so
 * that a new instance and the bindings it has lost are known in one turn.
 */
import { assert } from '#base/assert';
import type { Nanos } from '#base/units';
import type { AgentHello, AgentReport, BoxHello, HostHello } from '#proto/agent-messages';
import type { BoxReports } from './box-reports.ts';
import type { FactsKeeper } from './facts-keeper.ts';
import type { HostReports } from './host-reports.ts';
import type { AgentSession, Box, Host, Inventory } from './inventory.ts';
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
    const name = nameOf(hello);
    assert(!this.#streams.has(id), `stream ${id} of ${name} begins a second time`);
    if (this.#living.has(name)) {
      const text = `a second live stream of ${hello.kind} ${hello.id} is refused: the first one lives`;
      this.#parts.claims.log(hello.kind, hello.id, text);
      this.#parts.outbox.end(id, text);
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
    const { inventory, journal, reconciler } = this.#parts;
    const { hello } = stream;
    const known =
      hello.kind === 'box' ? inventory.boxes.get(hello.id) : inventory.hosts.get(hello.id);
    const fault = reportFault(report, {
      kind: hello.kind,
      isFirst: stream.owner === undefined,
      hasRaised: known?.hasRaised === true,
      revision: stream.owner?.session?.book.revision ?? 0,
      applied: stream.owner?.session?.book.applied ?? 0,
      generation: journal.generation,
    });
    if (fault !== undefined) {
      this.#expel(now, stream, fault);
      return;
    }
    const highest = highestGeneration(report);
    const isAhead = highest > journal.generation;
    const isFirst = stream.owner === undefined;
    if (isAhead) this.#raiseGeneration(nameOf(hello), highest);
    if (hello.kind === 'box' && report.kind === 'box') {
      const box =
        stream.owner === undefined ? this.#boxBegins(now, stream, hello) : (stream.owner as Box);
      if (isAhead) box.hasRaised = true;
      if (isFirst) reconciler.renumberReserved(box.slots.values(), highest);
      this.#parts.boxReports.take(box, report);
      this.#takeApplied(report, 'box', box, box.session, (slot) => {
        const found = box.slots.get(slot);
        if (found !== undefined) reconciler.touchBoxSlot(found);
        return found;
      });
    } else if (hello.kind === 'host' && report.kind === 'host') {
      const host =
        stream.owner === undefined ? this.#hostBegins(now, stream, hello) : (stream.owner as Host);
      if (isAhead) host.hasRaised = true;
      if (isFirst) reconciler.renumberReserved(host.slots.values(), highest);
      this.#parts.hostReports.take(host, report);
      this.#takeApplied(report, 'host', host, host.session, (slot) => {
        const found = host.slots.get(slot);
        if (found !== undefined) reconciler.touchHostSlot(found);
        return found;
      });
    }
    this.#noteSeen(now, stream);
  }

  disconnected(now: Nanos, id: AgentSessionId): void {
    const stream = this.#streams.get(id);
    if (stream !== undefined) this.#drop(now, stream, 'disconnected', '');
  }

  #boxBegins(now: Nanos, stream: Stream, hello: BoxHello): Box {
    const { inventory, journal, facts, orders, peers } = this.#parts;
    const { kind: _kind, ...said } = hello;
    const record = { ...said, seenMs: journal.nowMs };
    const known = inventory.boxes.get(hello.id);
    const box = known ?? inventory.addBox(record);
    const isRestarted = known !== undefined && known.record.instance !== hello.instance;
    box.record = record;
    box.session = orders.openBox(stream.id, box, now);
    stream.owner = box;
    this.boxesConnected++;
    facts.box(box, false);
    peers.came(box);
    for (const { binding } of box.slots.values()) {
      if (binding === undefined) continue;
      if (isRestarted) binding.boxRestarted = true;
      this.#parts.reconciler.touch(binding);
    }
    journal.put('boxes', record);
    this.#logBegin(hello, isRestarted);
    return box;
  }

  #hostBegins(now: Nanos, stream: Stream, hello: HostHello): Host {
    const { inventory, journal, facts, orders } = this.#parts;
    const { kind: _kind, ...said } = hello;
    const record = { ...said, seenMs: journal.nowMs };
    const known = inventory.hosts.get(hello.id);
    const host = known ?? inventory.addHost(record);
    if (known === undefined) facts.host(host);
    const isRestarted = known !== undefined && known.record.instance !== hello.instance;
    host.record = record;
    host.session = orders.openHost(stream.id, host, now);
    stream.owner = host;
    this.hostsConnected++;
    facts.hostReachable(host);
    for (const { binding } of host.slots.values()) {
      if (binding === undefined) continue;
      if (isRestarted) binding.hostRestarted = true;
      this.#parts.reconciler.touch(binding);
    }
    journal.put('hosts', record);
    this.#logBegin(hello, isRestarted);
    return host;
  }

  #logBegin(hello: AgentHello, isRestarted: boolean): void {
    this.#parts.journal.log({
      actor: nameOf(hello),
      subjectKind: hello.kind,
      subject: hello.id,
      action: isRestarted ? 'restarted' : 'connected',
      message: isRestarted
        ? `another process (version ${hello.version}) reports for it`
        : `its agent (version ${hello.version}) reports`,
    });
  }

  /** What the report says of orders: which are in force, and which could not be. */
  #takeApplied<O extends { readonly slot: number }>(
    report: AgentReport,
    kind: 'box' | 'host',
    owner: Box | Host,
    session: AgentSession<O> | undefined,
    touch: (slot: number) => { refused: string } | undefined,
  ): void {
    assert(session !== undefined, `${kind} ${owner.id} reports without a stream`);
    const { applied, refused } = report;
    if (applied > session.book.applied) {
      for (const slot of session.book.confirm(applied) ?? owner.slots.keys()) touch(slot);
    }
    for (const slot of session.refusedSlots) {
      const found = owner.slots.get(slot);
      if (found !== undefined) found.refused = '';
    }
    session.refusedSlots = refused === '' ? [] : session.book.suspects();
    for (const slot of session.refusedSlots) {
      const found = touch(slot);
      if (found !== undefined) found.refused = refused;
    }
    const text = refused === '' ? '' : `cannot put an order in force: ${refused}`;
    this.#parts.claims.set(kind, owner, 'order', text);
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
    this.#parts.claims.log(hello.kind, hello.id, fault);
    this.#parts.outbox.end(id, fault);
    this.#drop(now, stream, 'disconnected', `its stream was ended: ${fault}`);
  }

  #drop(now: Nanos, stream: Stream, action: string, message: string): void {
    const { inventory, journal, facts, peers, boxReports, hostReports, orders } = this.#parts;
    const { id, hello, owner } = stream;
    this.#streams.delete(id);
    this.#living.delete(nameOf(hello));
    if (owner === undefined) return;
    const box = hello.kind === 'box' ? inventory.boxes.get(hello.id) : undefined;
    const host = hello.kind === 'host' ? inventory.hosts.get(hello.id) : undefined;
    if (box !== undefined) {
      box.session = undefined;
      this.boxesConnected--;
      facts.box(box, true);
      boxReports.forget(box);
      peers.left(now, box);
      orders.close(box);
      box.record = { ...box.record, seenMs: journal.nowMs };
      journal.put('boxes', box.record);
    }
    if (host !== undefined) {
      host.session = undefined;
      this.hostsConnected--;
      facts.hostReachable(host);
      hostReports.forget(host);
      orders.close(host);
      host.record = { ...host.record, seenMs: journal.nowMs };
      journal.put('hosts', host.record);
    }
    const { kind, id: subject } = hello;
    journal.log({ actor: nameOf(hello), subjectKind: kind, subject, action, message });
  }

  #noteSeen(now: Nanos, { owner, hello }: Stream): void {
    const session = owner?.session;
    if (session === undefined || now - session.seenNs < SEEN_STEP_NS) return;
    session.seenNs = now;
    const { inventory, journal } = this.#parts;
    const box = hello.kind === 'box' ? inventory.boxes.get(hello.id) : undefined;
    const host = hello.kind === 'host' ? inventory.hosts.get(hello.id) : undefined;
    const seenMs = journal.nowMs;
    if (box !== undefined) {
      box.record = { ...box.record, seenMs };
      journal.put('boxes', box.record);
    }
    if (host !== undefined) {
      host.record = { ...host.record, seenMs };
      journal.put('hosts', host.record);
    }
  }
}

function nameOf({ kind, id }: AgentHello): string {
  return `${kind}/${id}`;
}
