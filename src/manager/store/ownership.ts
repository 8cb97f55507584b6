import { DxpuError } from '#base/errors';
import type { Batch, Counters } from '../domain/batch.ts';
import {
  keyOf,
  type RecordKind,
  type RecordLists,
  type RecordTables,
  slotKey,
} from '../domain/record-tables.ts';
import type { BindingRecord } from '../domain/records.ts';

/** Who owns what, of the bindings held: the unique keys of the SQLite schema, kept by hand. */
export class Ownership {
  /** By what is owned: the id of the binding. */
  readonly #owners = new Map<string, string>();
  readonly #owned = new Map<string, readonly string[]>();

  static #keys(binding: BindingRecord): readonly string[] {
    return [
      `box slot ${slotKey(binding.box, binding.boxSlot)}`,
      `host slot ${slotKey(binding.host, binding.hostSlot)}`,
      `generation ${binding.generation}`,
    ];
  }

  /** In place of what it owned before. */
  own(binding: BindingRecord): void {
    this.release(binding.id);
    const keys = Ownership.#keys(binding);
    for (const key of keys) this.#owners.set(key, binding.id);
    this.#owned.set(binding.id, keys);
  }

  release(id: string): void {
    for (const key of this.#owned.get(id) ?? []) this.#owners.delete(key);
    this.#owned.delete(id);
  }

  /**
   * Fails with `aborted` where `batch` breaks a rule of the schema, given what is held when it comes;
   * changes nothing.
   */
  check(held: RecordTables, counted: Counters, batch: Batch): void {
    this.#checkBindings(held, counted, batch);
    checkReferences(held, batch);
    let position = counted.position;
    for (const entry of batch.log) {
      if (entry.position !== ++position) refuse('the log goes on behind its last position');
    }
    const { counters } = batch;
    // Of records of one key the last counts.
    const bindings = new Map(batch.bindings.map((binding) => [binding.id, binding]));
    if (
      counters.generation < counted.generation ||
      counters.binding < counted.binding ||
      counters.position !== position ||
      [...bindings.values()].some((binding) => binding.generation > counters.generation)
    ) {
      refuse('the counters rise with what they count');
    }
  }

  #checkBindings(held: RecordTables, counted: Counters, batch: Batch): void {
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
      if (isNew && binding.generation <= counted.generation) {
        refuse('a generation is given out once');
      }
      ids.set(binding.id, binding);
    }
  }
}

function checkReferences(held: RecordTables, batch: Batch): void {
  const box = known('boxes', held, batch);
  const host = known('hosts', held, batch);
  const boxSlot = known('boxSlots', held, batch);
  const hostSlot = known('hostSlots', held, batch);
  for (const one of batch.boxSlots) box(one.box, `box ${one.box}`);
  for (const one of batch.hostSlots) host(one.host, `host ${one.host}`);
  for (const one of batch.paths) host(one.host, `host ${one.host}`);
  for (const one of batch.bindings) {
    boxSlot(slotKey(one.box, one.boxSlot), `slot ${one.boxSlot} of box ${one.box}`);
    hostSlot(slotKey(one.host, one.hostSlot), `slot ${one.hostSlot} of host ${one.host}`);
  }
}

/** Refuses keys that neither the store nor the batch has. */
function known<K extends RecordKind>(
  kind: K,
  held: RecordTables,
  batch: RecordLists,
): (key: string, what: string) => void {
  const fresh = new Set(batch[kind].map((one) => keyOf(kind, one)));
  return (key, what) => {
    if (!held[kind].has(key) && !fresh.has(key)) refuse(`there is no ${what}`);
  };
}

function refuse(rule: string): never {
  throw new DxpuError('aborted', `the store refuses the batch: ${rule}`);
}
