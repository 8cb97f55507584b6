/** Makes the orders of a turn: for each stream with something new, one. */
import type { Nanos } from '#base/units';
import type { BoxSlotOrder, HostSlotOrder } from '#proto/agent-messages';
import {
  type AgentSession,
  type Box,
  type Host,
  type Inventory,
  isReporting,
} from './inventory.ts';
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
    this.#dirtyBoxes.delete(of as Box);
    this.#dirtyHosts.delete(of as Host);
  }

  /** The host's links may have to be others. */
  peersChanged(host: Host): void {
    if (isReporting(host)) this.#dirtyHosts.add(host);
  }

  /** The turn ends: what is wanted now is what goes out. */
  makeOrders(now: Nanos): void {
    if (this.#peers.takeStep(now)) {
      for (const host of this.#inventory.hosts.values()) this.peersChanged(host);
    }
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
    const { key, list } = this.#peers.of(host);
    const isNewList = key !== session.peersKey;
    const order = session.book.take(isNewList);
    if (order === undefined) return;
    session.peersKey = key;
    for (const { slot } of order.slots) clearRefused(slots.get(slot));
    const peers = isNewList ? list : undefined;
    this.#outbox.order(session.id, { kind: 'host', ...order, peers });
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
  return { id, book, refusedSlots: [], peersKey: '', seenNs: now };
}
