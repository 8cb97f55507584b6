/** Makes the orders of a turn: for each stream with something new, one. */
import type { Nanos } from '#base/units';
import type { BoxSlotOrder, HostOrder, HostSlotOrder } from '#proto/agent-messages';
import type { AgentSession, Box, Host, Inventory } from './inventory.ts';
import type { OrderBook } from './order-book.ts';
import type { Outbox } from './outbox.ts';
import type { PeerLists } from './peer-lists.ts';
import type { AgentSessionId } from './pool-sink.ts';
import { newBoxBook, newHostBook } from './wanted-orders.ts';

export class OrderDesk {
  readonly #inventory: Inventory;
  readonly #outbox: Outbox;
  readonly #peers: PeerLists;
  readonly #dirtyBoxes = new Set<Box>();
  readonly #dirtyHosts = new Set<Host>();

  constructor(inventory: Inventory, outbox: Outbox, peers: PeerLists) {
    this.#inventory = inventory;
    this.#outbox = outbox;
    this.#peers = peers;
  }

  openBox(id: AgentSessionId, box: Box, now: Nanos): AgentSession<BoxSlotOrder> {
    this.#dirtyBoxes.add(box);
    return session(
      id,
      newBoxBook(() => this.#dirtyBoxes.add(box)),
      now,
    );
  }

  openHost(id: AgentSessionId, host: Host, now: Nanos): AgentSession<HostSlotOrder> {
    this.#dirtyHosts.add(host);
    return session(
      id,
      newHostBook(() => this.#dirtyHosts.add(host)),
      now,
    );
  }

  close(of: Box | Host): void {
    if (of.kind === 'box') this.#dirtyBoxes.delete(of);
    else this.#dirtyHosts.delete(of);
  }

  /** The host's links may have to be others. */
  peersChanged(host: Host): void {
    if (host.session === undefined) return;
    host.session.isPeersStale = true;
    this.#dirtyHosts.add(host);
  }

  /** Does what is due at `now`: links that are to be others by then. */
  tick(now: Nanos): void {
    if (!this.#peers.takeStep(now)) return;
    for (const host of this.#inventory.hosts.values()) this.peersChanged(host);
  }

  /** The turn ends: what is wanted now is what goes out. */
  makeOrders(now: Nanos): void {
    this.tick(now);
    for (const box of this.#dirtyBoxes) this.#orderBox(box);
    this.#dirtyBoxes.clear();
    for (const host of this.#dirtyHosts) this.#orderHost(host);
    this.#dirtyHosts.clear();
  }

  #orderBox({ session, slots }: Box): void {
    const order = session?.book.take(false);
    if (session === undefined || order === undefined) return;
    for (const { slot } of order.slots) clearRefused(slots.get(slot));
    this.#outbox.order(session.id, { kind: 'box', ...order });
  }

  #orderHost(host: Host): void {
    const { session, slots } = host;
    if (session === undefined) return;
    const peers = session.isPeersStale ? this.#newPeers(host, session) : undefined;
    const order = session.book.take(peers !== undefined);
    if (order === undefined) return;
    for (const { slot } of order.slots) clearRefused(slots.get(slot));
    this.#outbox.order(session.id, { kind: 'host', ...order, peers });
  }

  #newPeers(host: Host, session: AgentSession<HostSlotOrder>): HostOrder['peers'] {
    session.isPeersStale = false;
    const { key, list } = this.#peers.of(host);
    if (key === session.peersKey) return undefined;
    session.peersKey = key;
    return list;
  }
}

function clearRefused(slot: { refused: string } | undefined): void {
  if (slot !== undefined) slot.refused = '';
}

function session<O extends { readonly slot: number }>(
  id: AgentSessionId,
  book: OrderBook<O>,
  now: Nanos,
): AgentSession<O> {
  return { id, book, refusedSlots: [], peersKey: '', isPeersStale: true, seenNs: now };
}
