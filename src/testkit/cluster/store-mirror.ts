/** What a store must hold: kept from the batches that were committed, independently of the store. */
import type { Batch, Counters, Snapshot } from '#manager/domain/batch';
import type { BindingRecord, LogRecord, RequestRecord } from '#manager/domain/records';

/** What the store says, as far as the truth is held against it. */
export interface StoreFacts {
  /** The binding that has this generation now. */
  bindingOf(generation: number): BindingRecord | undefined;
  /** The store forgot, or remembers wrongly, what was under this generation: an older copy came back. */
  isLost(generation: number): boolean;
  /** Somebody gave it back without waiting for its host. */
  wasForced(generation: number): boolean;
}

export function requestKey(caller: string, requestId: string): string {
  return `${caller} ${requestId}`;
}

export class StoreMirror implements StoreFacts {
  readonly bindings = new Map<string, BindingRecord>();
  readonly requests = new Map<string, RequestRecord>();
  /** Windows of virtual slots, as the manager recorded them. */
  readonly hostSlots = new Map<string, Batch['hostSlots'][number]>();
  readonly boxSlots = new Map<string, Batch['boxSlots'][number]>();
  readonly log: LogRecord[] = [];
  /** Every batch that was committed. */
  readonly journal: Batch[] = [];
  counters: Counters = { generation: 0, binding: 0, position: 0 };
  /** Bindings that ended in the newest batch. */
  freed = new Set<string>();
  readonly #byGeneration = new Map<number, BindingRecord>();
  readonly #lost = new Set<number>();
  readonly #forced = new Set<number>();
  /** Which binding each generation was given to. */
  readonly #given = new Map<number, string>();

  bindingOf(generation: number): BindingRecord | undefined {
    return this.#byGeneration.get(generation);
  }

  isLost(generation: number): boolean {
    return this.#lost.has(generation);
  }

  wasForced(generation: number): boolean {
    return this.#forced.has(generation);
  }

  /** Whom a generation was given to before, if to anybody, as far as this copy of the store goes back. */
  givenTo(generation: number): string | undefined {
    return this.#given.get(generation);
  }

  apply(batch: Batch): void {
    this.journal.push(batch);
    for (const id of batch.removedBindings) {
      const gone = this.bindings.get(id);
      if (gone !== undefined) this.#byGeneration.delete(gone.generation);
      this.bindings.delete(id);
    }
    for (const record of batch.bindings) {
      const before = this.bindings.get(record.id);
      if (before !== undefined) this.#byGeneration.delete(before.generation);
      this.bindings.set(record.id, record);
      this.#byGeneration.set(record.generation, record);
      this.#given.set(record.generation, record.id);
      if (record.force) this.#forced.add(record.generation);
    }
    const { forgetRequestsBeforeMs } = batch;
    if (forgetRequestsBeforeMs !== undefined) {
      for (const [key, { atMs }] of this.requests) {
        if (atMs < forgetRequestsBeforeMs) this.requests.delete(key);
      }
    }
    for (const request of batch.requests) {
      this.requests.set(requestKey(request.caller, request.requestId), request);
    }
    for (const slot of batch.hostSlots) this.hostSlots.set(`${slot.host} ${slot.slot}`, slot);
    for (const slot of batch.boxSlots) this.boxSlots.set(`${slot.box} ${slot.slot}`, slot);
    this.log.push(...batch.log);
    this.freed = new Set();
    for (const { binding } of batch.log) {
      if (binding?.state === 'free') this.freed.add(binding.id);
    }
    this.counters = batch.counters;
  }

  /** Goes back to what the first `batches` of the journal made. */
  restore(batches: number): void {
    const before = new Map(this.#byGeneration);
    const journal = this.journal.slice(0, batches);
    for (const map of [this.bindings, this.requests, this.hostSlots, this.boxSlots]) map.clear();
    this.#byGeneration.clear();
    this.#given.clear();
    this.journal.length = 0;
    this.log.length = 0;
    this.counters = { generation: 0, binding: 0, position: 0 };
    for (const batch of journal) this.apply(batch);
    for (const [generation, record] of before) {
      const now = this.#byGeneration.get(generation);
      if (now?.state !== record.state || now.goal !== record.goal) this.#lost.add(generation);
    }
    for (const generation of this.#byGeneration.keys()) {
      if (!before.has(generation)) this.#lost.add(generation);
    }
  }

  /** What a snapshot has wrong; '' when it is as it must be. */
  compare(snapshot: Snapshot): string {
    const { bindings, requests, counters } = snapshot;
    if (bindings.length !== this.bindings.size) {
      return `${bindings.length} bindings in place of ${this.bindings.size}`;
    }
    for (const record of bindings) {
      const mine = this.bindings.get(record.id);
      if (mine === undefined || !isSame(mine, record)) return `binding ${record.id} differs`;
    }
    if (requests.length !== this.requests.size) {
      return `${requests.length} requests in place of ${this.requests.size}`;
    }
    for (const request of requests) {
      const mine = this.requests.get(requestKey(request.caller, request.requestId));
      if (mine === undefined || !isSame(mine, request))
        return `request ${request.requestId} differs`;
    }
    const isOld =
      counters.generation !== this.counters.generation ||
      counters.binding !== this.counters.binding ||
      counters.position !== this.counters.position;
    return isOld ? `counters ${JSON.stringify(counters)}` : '';
  }
}

/** Of plain values, whatever the order of their keys and whether `undefined` is spelt out. */
export function isSame(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false;
  const left = a as Record<string, unknown>;
  const right = b as Record<string, unknown>;
  for (const key of Object.keys(left)) if (!isSame(left[key], right[key])) return false;
  for (const key of Object.keys(right)) {
    if (right[key] !== undefined && left[key] === undefined) return false;
  }
  return true;
}
