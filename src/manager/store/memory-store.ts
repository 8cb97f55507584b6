import { DxpuError } from '#base/errors';
import type { Batch, Counters, Snapshot } from '../domain/batch.ts';
import type {
  BindingRecord,
  BoxRecord,
  BoxSlotRecord,
  HostRecord,
  HostSlotRecord,
  LogRecord,
  PathRecord,
  RequestRecord,
} from '../domain/records.ts';
import { bindingOf } from './log-subject.ts';
import { boxSlotKey, hostSlotKey, Ownership } from './ownership.ts';
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
  readonly #bindings = new Map<string, BindingRecord>();
  readonly #boxes = new Map<string, BoxRecord>();
  readonly #boxSlots = new Map<string, BoxSlotRecord>();
  readonly #hosts = new Map<string, HostRecord>();
  readonly #hostSlots = new Map<string, HostSlotRecord>();
  readonly #paths = new Map<string, PathRecord>();
  readonly #requests = new Map<string, RequestRecord>();
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
      bindings: [...this.#bindings.values()],
      boxes: [...this.#boxes.values()],
      boxSlots: [...this.#boxSlots.values()],
      hosts: [...this.#hosts.values()],
      hostSlots: [...this.#hostSlots.values()],
      paths: [...this.#paths.values()],
      requests: [...this.#requests.values()],
      counters: this.#counters,
    };
  }

  commit(batch: Batch): void {
    const fault = this.#faults.shift();
    if (fault !== undefined) throw new DxpuError(fault, `this commit was to fail: ${fault}`);
    this.#owners.check(
      {
        bindings: this.#bindings,
        boxes: this.#boxes,
        boxSlots: this.#boxSlots,
        hosts: this.#hosts,
        hostSlots: this.#hostSlots,
        counters: this.#counters,
      },
      batch,
    );
    for (const one of batch.boxes) this.#boxes.set(one.id, plainCopy(one));
    for (const one of batch.boxSlots) {
      this.#boxSlots.set(boxSlotKey(one.box, one.slot), plainCopy(one));
    }
    for (const one of batch.hosts) this.#hosts.set(one.id, plainCopy(one));
    for (const one of batch.hostSlots) {
      this.#hostSlots.set(hostSlotKey(one.host, one.slot), plainCopy(one));
    }
    for (const one of batch.paths) {
      this.#paths.set(JSON.stringify([one.host, one.box, one.path]), plainCopy(one));
    }
    for (const id of batch.removedBindings) {
      this.#owners.move(this.#bindings.get(id), undefined);
      this.#bindings.delete(id);
    }
    for (const one of batch.bindings) {
      const copy = plainCopy(one);
      this.#owners.move(this.#bindings.get(one.id), copy);
      this.#bindings.set(one.id, copy);
    }
    this.#forgetRequests(batch.forgetRequestsBeforeMs);
    for (const one of batch.requests) {
      this.#requests.set(JSON.stringify([one.caller, one.requestId]), plainCopy(one));
    }
    for (const entry of batch.log) this.#log.push(plainCopy(entry));
    this.#counters = plainCopy(batch.counters);
  }

  #forgetRequests(beforeMs: number | undefined): void {
    if (beforeMs === undefined) return;
    for (const [key, request] of this.#requests) {
      if (request.atMs < beforeMs) this.#requests.delete(key);
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
