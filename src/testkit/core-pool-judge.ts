/**
 * A pool around the core that judges every turn, by what the model proxies really hold and by what was
 * ever ordered or answered. Box and host `b2` and `h2` may lie: of them nothing is believed.
 */
import type { Batch } from '#manager/domain/batch';
import type { Command, CommandAnswer } from '#manager/domain/commands';
import type { AgentSessionId } from '#manager/domain/pool-sink';
import type { BindingRecord } from '#manager/domain/records';
import type { AgentOrder } from '#proto/agent-messages';
import { CorePool } from './core-pool.ts';
import { functionOf } from './core-pool-host.ts';

export type JudgedInvariant =
  | 'single-owner'
  | 'fenced'
  | 'attached-means-usable'
  | 'store-owns'
  | 'nothing-lost';

export class InvariantBroken extends Error {
  readonly invariant: JudgedInvariant;

  constructor(invariant: JudgedInvariant, what: string) {
    super(`${invariant}: ${what}`);
    this.invariant = invariant;
  }
}

interface Asked {
  readonly caller: string;
  readonly command: Command;
}

export class JudgedPool extends CorePool {
  /** Answers that are due, by ticket. */
  readonly #asked = new Map<number, Asked>();
  /** In the turn under way. */
  #commands: Asked[] = [];
  #before = new Map<string, BindingRecord>();
  readonly #free = new Set<string>();
  /** Generations that were ordered away, by proxy and slot. */
  readonly #retired = new Map<string, Set<number>>();
  readonly #ordered = new Map<string, number>();
  readonly #generations = new Map<number, string>();
  /** Bindings that were judged as new. */
  readonly #known = new Set<string>();
  #isTurning = false;
  #nextTicket = 1_000_000;
  #acked = new Map<string, readonly string[]>();

  isHonest(id: string): boolean {
    return id === 'b1' || id === 'h1';
  }

  /** Asks, and leaves the turn open. */
  submit(command: Command, caller = 'user/alice'): void {
    const ticket = this.#nextTicket++;
    const asked = { caller, command };
    this.#asked.set(ticket, asked);
    this.#commands.push(asked);
    this.core.command(this.now, { name: caller }, command, ticket);
    if (command.kind !== 'bind') return;
    const { requestId } = command;
    for (const { record } of this.core.bindings({ requestId }, '', 100).items) {
      // When it was decided: what becomes of the slot before the commit is another matter.
      if (!this.#known.has(record.id)) this.#judgeNew(record);
      this.#known.add(record.id);
    }
  }

  override turn(): void {
    this.commit();
    this.#isTurning = true;
    this.core.committed(this.now);
    this.#isTurning = false;
    this.#commands = [];
    if (this.#asked.size > 0) throw new Error('a command of this turn was not answered');
  }

  /** The first half of a turn: what a manager that dies in it leaves behind. */
  commit(): void {
    const batch = this.core.takeBatch();
    if (batch === undefined) return;
    this.#judgeBatch(batch);
    this.store.commit(batch);
    this.#before = new Map(this.store.load().bindings.map((one) => [one.id, one]));
    for (const id of batch.removedBindings) this.#free.add(id);
    for (const { action, subject } of batch.log) if (action === 'free') this.#free.add(subject);
  }

  override restart(): void {
    this.#asked.clear();
    this.#commands = [];
    // Ids that were not durable are given out again.
    this.#known.clear();
    for (const id of this.#before.keys()) this.#known.add(id);
    super.restart();
    for (const [key, bindings] of this.#acked) this.#mustHave(key, bindings);
  }

  override answer(ticket: number, answer: CommandAnswer): void {
    super.answer(ticket, answer);
    const asked = this.#asked.get(ticket);
    this.#asked.delete(ticket);
    if (!answer.ok) return;
    if (!this.#isTurning) this.#break('nothing-lost', 'an answer before its batch is durable');
    if (asked === undefined) return;
    const { caller, command } = asked;
    const key = JSON.stringify([caller, command.requestId]);
    const known = this.#acked.get(key);
    const ids = answer.bindings.map(({ id }) => id);
    if (known === undefined) this.#acked.set(key, ids);
    else if (ids.some((id) => !known.includes(id))) {
      this.#break('nothing-lost', `request ${command.requestId} acted twice`);
    }
    this.#mustHave(key, ids);
    if (command.kind !== 'unbind' || answer.repeated) return;
    for (const id of command.bindings) {
      if ((this.stored(id)?.goal ?? 'free') !== 'free') {
        this.#break('nothing-lost', `${id} is not given back`);
      }
    }
  }

  override order(session: AgentSessionId, order: AgentOrder): void {
    if (!this.#isTurning) this.#break('nothing-lost', 'an order before its batch is durable');
    const proxy = this.proxyOf(session);
    if (proxy !== undefined) this.#judgeOrder(proxy.id, order);
    super.order(session, order);
  }

  /** What the model boxes have seen: called after every step. */
  judgeRows(): void {
    const box = this.boxes.get('b1');
    for (const event of box?.rowEvents.splice(0) ?? []) {
      const where = `generation ${event.generation} in ${event.box}/${event.slot}`;
      if (!event.wasEmpty || !event.wasClean) {
        this.#break('fenced', `${where} before the last one was gone and its data scrubbed`);
      }
    }
  }

  #mustHave(key: string, bindings: readonly string[]): void {
    const [caller, requestId] = JSON.parse(key) as [string, string];
    const { requests } = this.store.load();
    const request = requests.find((one) => one.caller === caller && one.requestId === requestId);
    if (request === undefined) this.#break('nothing-lost', `request ${requestId} is not stored`);
    for (const id of bindings) {
      if (this.stored(id) === undefined && !this.#free.has(id)) {
        this.#break('nothing-lost', `${id} is not stored`);
      }
    }
  }

  #judgeBatch(batch: Batch): void {
    const after = new Map(this.#before);
    for (const id of batch.removedBindings) after.delete(id);
    for (const record of batch.bindings) after.set(record.id, record);
    const owners = new Map<string, string>();
    for (const { id, box, boxSlot, host, hostSlot } of after.values()) {
      for (const slot of [`${box}/${boxSlot}`, `${host}:${hostSlot}`]) {
        const other = owners.get(slot);
        if (other !== undefined) this.#break('single-owner', `${slot}: ${other} and ${id}`);
        owners.set(slot, id);
      }
    }
    for (const record of batch.bindings) this.#judgeBinding(record);
  }

  #judgeBinding(record: BindingRecord): void {
    const before = this.#before.get(record.id);
    const asked = (kind: Command['kind']): boolean =>
      this.#commands.some(
        ({ command }) =>
          command.kind === kind &&
          (command.kind === 'bind'
            ? command.requestId === record.requestId
            : command.bindings.includes(record.id)),
      );
    if (before === undefined) {
      if (!asked('bind')) this.#break('store-owns', `${record.id} came without a command`);
    } else {
      for (const field of ['host', 'hostSlot', 'box', 'boxSlot', 'uuid'] as const) {
        if (before[field] !== record[field]) {
          this.#break('store-owns', `${record.id}: ${field} is ${record[field]} now`);
        }
      }
      if (before.goal !== record.goal && !asked('unbind')) {
        this.#break('store-owns', `${record.id}: nobody asked for it to be given back`);
      }
      const isAgain = before.state === 'failed' && record.state === 'programming';
      if (isAgain && before.generation === record.generation) {
        this.#break('fenced', `${record.id} is tried again under generation ${record.generation}`);
      }
    }
    const given = this.#generations.get(record.generation);
    if (given !== undefined && given !== record.id) {
      this.#break('fenced', `generation ${record.generation} is of ${given} and of ${record.id}`);
    }
    this.#generations.set(record.generation, record.id);
    if (record.state === 'attached' && before?.state !== 'attached') this.#judgeAttached(record);
  }

  #judgeNew({ id, box, boxSlot }: BindingRecord): void {
    const slot = this.boxes.get(box)?.slots.get(boxSlot);
    if (!this.isHonest(box) || slot === undefined) return;
    if (slot.row !== undefined || !slot.clean || slot.state !== 'unused') {
      this.#break('fenced', `${id} was given ${box}/${boxSlot}, which is not empty and clean`);
    }
  }

  #judgeAttached({ id, host, hostSlot, generation, attachment }: BindingRecord): void {
    const port = this.store
      .load()
      .hostSlots.find((one) => one.host === host && one.slot === hostSlot);
    for (const { address, sizeBytes } of attachment?.bars ?? []) {
      const isInside = [port?.nonPrefetchable, port?.prefetchable].some(
        (window) =>
          window !== undefined && window.base <= address && address + sizeBytes - 1 <= window.limit,
      );
      if (!isInside) this.#break('attached-means-usable', `${id}: a BAR outside its windows`);
    }
    if (!this.isHonest(host)) return;
    const model = this.hosts.get(host);
    const isEqual = JSON.stringify(attachment?.bars) === JSON.stringify(functionOf(hostSlot).bars);
    if (model?.worked.has(`${hostSlot} ${generation}`) !== true || !isEqual) {
      this.#break('attached-means-usable', `${id}: its function was never set up`);
    }
  }

  #judgeOrder(proxy: string, order: AgentOrder): void {
    const named = new Map(order.slots.map(({ slot, row }) => [slot, row?.generation]));
    if (order.whole) {
      for (const key of this.#ordered.keys()) {
        const [of, slot] = key.split('/');
        if (of === proxy && !named.has(Number(slot))) named.set(Number(slot), undefined);
      }
    }
    for (const [slot, generation] of named) {
      const key = `${proxy}/${slot}`;
      const retired = this.#retired.get(key) ?? new Set<number>();
      this.#retired.set(key, retired);
      const last = this.#ordered.get(key);
      if (last !== undefined && last !== generation) retired.add(last);
      if (generation === undefined) this.#ordered.delete(key);
      else this.#ordered.set(key, generation);
      if (generation !== undefined && retired.has(generation)) {
        this.#break('fenced', `generation ${generation} was ordered away from ${key} before`);
      }
    }
  }

  #break(invariant: JudgedInvariant, what: string): never {
    throw new InvariantBroken(invariant, what);
  }
}
