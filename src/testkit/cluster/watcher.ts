/** Somebody who watches the log: sees every entry once and in order, whatever becomes of the manager. */
import type { LogRecord } from '#manager/domain/records';
import type { Store } from '#manager/store/store';
import { ClusterInvariant, type ClusterOracle } from './cluster-oracle.ts';
import { isSame, type StoreMirror } from './store-mirror.ts';

const PAGE = 64;

export class Watcher {
  readonly #oracle: ClusterOracle;
  readonly #bindings = new Map<string, LogRecord['binding']>();
  #position = 0;

  constructor(oracle: ClusterOracle) {
    this.#oracle = oracle;
  }

  /** New entries, as they are pushed. */
  logged(entries: readonly LogRecord[]): void {
    for (const entry of entries) {
      if (entry.position !== this.#position + 1) {
        const message = `the watch goes from ${this.#position} to ${entry.position}`;
        this.#oracle.fail(ClusterInvariant.NOTHING_LOST, message);
      }
      this.#position = entry.position;
      const { binding } = entry;
      if (binding?.state === 'free') this.#bindings.delete(binding.id);
      else if (binding !== undefined) this.#bindings.set(binding.id, binding);
    }
  }

  /** The stream was lost: goes on from its position, in pages. */
  resume(store: Store, newest: number): void {
    if (newest < this.#position) {
      // An older copy of the store: what was seen is no longer so.
      this.#position = 0;
      this.#bindings.clear();
    }
    for (;;) {
      const page = store.log(this.#position, PAGE);
      this.logged(page);
      if (page.length < PAGE) return;
    }
  }

  /** At rest: what the log told is what there is. */
  check(mirror: StoreMirror): void {
    const isEqual =
      this.#bindings.size === mirror.bindings.size &&
      [...mirror.bindings.values()].every((record) =>
        isSameLife(this.#bindings.get(record.id), record),
      );
    if (isEqual && this.#position === mirror.counters.position) return;
    const message = `who watched to ${this.#position} knows ${this.#bindings.size} bindings`;
    this.#oracle.fail(
      ClusterInvariant.NOTHING_LOST,
      `${message}, there are ${mirror.bindings.size}`,
    );
  }
}

function isSameLife(a: LogRecord['binding'], b: LogRecord['binding']): boolean {
  return (
    a?.state === b?.state &&
    a?.goal === b?.goal &&
    a?.generation === b?.generation &&
    isSame(a?.failure, b?.failure)
  );
}
