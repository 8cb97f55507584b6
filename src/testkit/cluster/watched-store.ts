/**
 * The store of a cluster, as the manager sees it: a real one, watched. It can be full, be set back to an
 * older copy, and, planted, be worse than it should.
 */
import { DxpuError } from '#base/errors';
import { type Batch, EMPTY_BATCH, type Snapshot } from '#manager/domain/batch';
import type { LogRecord } from '#manager/domain/records';
import { MemoryStore } from '#manager/store/memory-store';
import type { Store } from '#manager/store/store';
import { ClusterInvariant, type ClusterOracle } from './cluster-oracle.ts';
import type { StoreChecks, Turn } from './store-checks.ts';
import type { StoreMirror } from './store-mirror.ts';

export interface StoreFaults {
  /** What was committed last is gone when the process dies soon after. */
  readonly losesLastCommit?: boolean;
  /** The schema refuses no second owner. */
  readonly noUniqueOwners?: boolean;
  /** One of the rows of a batch now and then is not written. */
  readonly tearsBatches?: boolean;
}

export class WatchedStore implements Store {
  readonly #oracle: ClusterOracle;
  readonly #mirror: StoreMirror;
  readonly #checks: StoreChecks;
  readonly #faults: StoreFaults;
  #inner: Store = new MemoryStore();
  /** Commits that fail from now on. */
  fullFor = 0;
  /** What the turn being committed was made of. */
  turn: Turn = { commands: [], wallMs: 0 };

  constructor(
    oracle: ClusterOracle,
    mirror: StoreMirror,
    checks: StoreChecks,
    faults: StoreFaults,
  ) {
    this.#oracle = oracle;
    this.#mirror = mirror;
    this.#checks = checks;
    this.#faults = faults;
  }

  load(): Snapshot {
    const snapshot = this.#inner.load();
    const wrong = this.#mirror.compare(snapshot);
    if (wrong !== '') {
      this.#oracle.fail(ClusterInvariant.NOTHING_LOST, `the store comes back wrong: ${wrong}`);
    }
    return snapshot;
  }

  commit(batch: Batch): void {
    if (this.fullFor > 0) {
      this.fullFor--;
      this.#oracle.counts.up('disk full');
      throw new DxpuError('resource_exhausted', 'the disk is full, on purpose');
    }
    this.#checks.judge(batch, this.turn);
    this.#write(this.#torn(batch));
    this.#mirror.apply(batch);
    this.#oracle.counts.up('commits');
  }

  log(after: number, limit: number, binding?: string): LogRecord[] {
    return this.#inner.log(after, limit, binding);
  }

  close(): void {}

  /** The process that has it open is gone. */
  crashed(): void {
    if (this.#faults.losesLastCommit !== true) return;
    this.#refill(this.#mirror.journal.slice(0, -1));
  }

  /** An operator puts back the copy made after so many commits. */
  restore(batches: number): void {
    this.#mirror.restore(batches);
    this.#refill(this.#mirror.journal);
  }

  /** Whether the store refuses by itself what must not be. */
  probe(): void {
    const [binding] = this.#mirror.bindings.values();
    if (binding === undefined) return;
    const { counters } = this.#mirror;
    const id = `b${counters.binding + 1}`;
    const generation = counters.generation + 1;
    const next = { generation, binding: counters.binding + 1, position: counters.position };
    const free = { box: binding.box, boxSlot: 98, host: binding.host, hostSlot: 98 };
    const tries: [string, Batch['bindings'][number]][] = [
      ['box slot', { ...binding, ...free, boxSlot: binding.boxSlot, id, generation }],
      ['virtual slot', { ...binding, ...free, hostSlot: binding.hostSlot, id, generation }],
      ['generation', { ...binding, ...free, id }],
    ];
    for (const [what, record] of tries) {
      // Where it would go exists, so that nothing but the owner speaks against it.
      const boxSlot = [...this.#mirror.boxSlots.values()].find((one) => one.box === record.box);
      const hostSlot = [...this.#mirror.hostSlots.values()].find((one) => one.host === record.host);
      if (boxSlot === undefined || hostSlot === undefined) return;
      const batch: Batch = {
        ...EMPTY_BATCH,
        bindings: [record],
        boxSlots: [{ ...boxSlot, slot: record.boxSlot }],
        hostSlots: [{ ...hostSlot, slot: record.hostSlot }],
        counters: next,
      };
      try {
        this.#write(batch);
        const message = `the store took a second owner of a ${what}`;
        this.#oracle.fail(ClusterInvariant.SINGLE_OWNER, message);
      } catch (error) {
        if (!(error instanceof DxpuError) || error.code !== 'aborted') throw error;
      }
    }
  }

  #torn(batch: Batch): Batch {
    if (this.#faults.tearsBatches !== true || batch.bindings.length < 2) return batch;
    return { ...batch, bindings: batch.bindings.slice(1) };
  }

  #write(batch: Batch): void {
    try {
      this.#inner.commit(batch);
    } catch (error) {
      if (this.#faults.noUniqueOwners !== true) throw error;
    }
  }

  #refill(journal: readonly Batch[]): void {
    this.#inner = new MemoryStore();
    for (const batch of journal) this.#inner.commit(batch);
  }
}
