import { DxpuError } from '#base/errors';
import type { Batch, Counters } from '../domain/batch.ts';
import type { BindingRecord } from '../domain/records.ts';

export const boxSlotKey = (box: string, slot: number): string => `${slot} ${box}`;
export const hostSlotKey = (host: string, slot: number): string => `${slot} ${host}`;

/** What a store holds when a batch comes, as far as its rules ask. */
export interface Held {
  readonly bindings: ReadonlyMap<string, BindingRecord>;
  readonly boxes: ReadonlyMap<string, unknown>;
  readonly boxSlots: ReadonlyMap<string, unknown>;
  readonly hosts: ReadonlyMap<string, unknown>;
  readonly hostSlots: ReadonlyMap<string, unknown>;
  readonly counters: Counters;
}

/** Who owns what, of the bindings held: the unique keys of the SQLite schema, kept by hand. */
export class Ownership {
  readonly #owners = new Map<string, string>();

  static #keys(binding: BindingRecord): readonly string[] {
    return [
      `box slot ${boxSlotKey(binding.box, binding.boxSlot)}`,
      `host slot ${hostSlotKey(binding.host, binding.hostSlot)}`,
      `generation ${binding.generation}`,
    ];
  }

  /** Moves to `next` what `before` owns. Either may be `undefined`. */
  move(before: BindingRecord | undefined, next: BindingRecord | undefined): void {
    if (before !== undefined) for (const key of Ownership.#keys(before)) this.#owners.delete(key);
    if (next !== undefined) for (const key of Ownership.#keys(next)) this.#owners.set(key, next.id);
  }

  /** Fails with `aborted` where `batch` breaks a rule of the schema; changes nothing. */
  check(held: Held, batch: Batch): void {
    this.#checkBindings(held, batch);
    checkReferences(held, batch);
    let position = held.counters.position;
    for (const entry of batch.log) {
      if (entry.position !== ++position) refuse('the log goes on behind its last position');
    }
    const { counters } = batch;
    if (
      counters.generation < held.counters.generation ||
      counters.binding < held.counters.binding ||
      counters.position !== position ||
      batch.bindings.some((binding) => binding.generation > counters.generation)
    ) {
      refuse('the counters rise with what they count');
    }
  }

  #checkBindings(held: Held, batch: Batch): void {
    const ids = new Map<string, BindingRecord | undefined>();
    const owners = new Map<string, string | undefined>();
    const release = (id: string): BindingRecord | undefined => {
      const before = ids.has(id) ? ids.get(id) : held.bindings.get(id);
      if (before === undefined) return undefined;
      for (const key of Ownership.#keys(before)) owners.set(key, undefined);
      ids.set(id, undefined);
      return before;
    };
    for (const id of batch.removedBindings) release(id);
    for (const binding of batch.bindings) {
      const before = release(binding.id);
      for (const key of Ownership.#keys(binding)) {
        const owner = owners.has(key) ? owners.get(key) : this.#owners.get(key);
        if (owner !== undefined) refuse(`${key} is owned by ${owner}, not by ${binding.id}`);
        owners.set(key, binding.id);
      }
      const isNew = before?.generation !== binding.generation;
      if (isNew && binding.generation <= held.counters.generation) {
        refuse('a generation is given out once');
      }
      ids.set(binding.id, binding);
    }
  }
}

function checkReferences(held: Held, batch: Batch): void {
  const known = (stored: ReadonlyMap<string, unknown>, added: readonly string[]) => {
    const fresh = new Set(added);
    return (key: string, what: string): void => {
      if (!stored.has(key) && !fresh.has(key)) refuse(`there is no ${what}`);
    };
  };
  const box = known(
    held.boxes,
    batch.boxes.map((one) => one.id),
  );
  const host = known(
    held.hosts,
    batch.hosts.map((one) => one.id),
  );
  const boxSlot = known(
    held.boxSlots,
    batch.boxSlots.map((one) => boxSlotKey(one.box, one.slot)),
  );
  const hostSlot = known(
    held.hostSlots,
    batch.hostSlots.map((one) => hostSlotKey(one.host, one.slot)),
  );
  for (const one of batch.boxSlots) box(one.box, `box ${one.box}`);
  for (const one of batch.hostSlots) host(one.host, `host ${one.host}`);
  for (const one of batch.paths) host(one.host, `host ${one.host}`);
  for (const one of batch.bindings) {
    boxSlot(boxSlotKey(one.box, one.boxSlot), `slot ${one.boxSlot} of box ${one.box}`);
    hostSlot(hostSlotKey(one.host, one.hostSlot), `slot ${one.hostSlot} of host ${one.host}`);
  }
}

function refuse(rule: string): never {
  throw new DxpuError('aborted', `the store refuses the batch: ${rule}`);
}
