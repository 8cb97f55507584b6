import { DxpuError } from '#base/errors';
import type { Batch, Counters, Snapshot } from '../domain/batch.ts';
import {
  emptyTables,
  keyOf,
  RECORD_KINDS,
  type RecordKind,
  type RecordLists,
  recordLists,
} from '../domain/record-tables.ts';
import type { LogRecord } from '../domain/records.ts';
import { bindingOf } from './log-subject.ts';
import { Ownership } from './ownership.ts';
import { plainCopy } from './plain-copy.ts';
import type { Store } from './store.ts';

/** How a commit can be made to fail; the codes are those of `Store.commit`. */
export type CommitFault = 'resource_exhausted' | 'unavailable';

/**
 * A store for virtual time, with the rules of `SqliteStore`. The object is the disk: a manager whose
 * memory is dropped leaves it at its last commit, and the next one loads that. What goes in is copied,
 * what comes out is frozen.
 */
export class MemoryStore implements Store {
  readonly #tables = emptyTables();
  readonly #log: LogRecord[] = [];
  readonly #owners = new Ownership();
  readonly #faults: CommitFault[] = [];
  #counters: Counters = { generation: 0, binding: 0, position: 0 };

  /** The next commit fails so, with nothing of its batch there; called twice, the next two do. */
  failNextCommit(fault: CommitFault): void {
    this.#faults.push(fault);
  }

  load(): Snapshot {
    return {
      ...recordLists((kind) => [...this.#tables[kind].values()]),
      counters: this.#counters,
    };
  }

  commit(batch: Batch): void {
    const fault = this.#faults.shift();
    if (fault !== undefined) throw new DxpuError(fault, `this commit was to fail: ${fault}`);
    this.#owners.check(this.#tables, this.#counters, batch);
    for (const id of batch.removedBindings) {
      this.#owners.release(id);
      this.#tables.bindings.delete(id);
    }
    this.#forgetRequests(batch.forgetRequestsBeforeMs);
    for (const kind of RECORD_KINDS) this.#put(kind, batch);
    for (const one of batch.bindings) this.#owners.own(one);
    for (const entry of batch.log) this.#log.push(plainCopy(entry));
    this.#counters = plainCopy(batch.counters);
  }

  #put<K extends RecordKind>(kind: K, batch: RecordLists): void {
    for (const one of batch[kind]) this.#tables[kind].set(keyOf(kind, one), plainCopy(one));
  }

  #forgetRequests(beforeMs: number | undefined): void {
    if (beforeMs === undefined) return;
    const { requests } = this.#tables;
    for (const [key, request] of requests) {
      if (request.atMs < beforeMs) requests.delete(key);
    }
  }

  log(after: number, limit: number, binding?: string): LogRecord[] {
    // Position p is at index p - 1.
    if (binding === undefined) return this.#log.slice(after, after + limit);
    const found: LogRecord[] = [];
    for (let index = after; index < this.#log.length && found.length < limit; index++) {
      const entry = this.#log[index];
      if (entry !== undefined && bindingOf(entry) === binding) found.push(entry);
    }
    return found;
  }

  close(): void {
    // Nothing is held: the next manager loads from this same object.
  }
}
