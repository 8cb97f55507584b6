import type { Batch, Counters } from './batch.ts';
import {
  emptyTables,
  keyOf,
  type RecordKind,
  type RecordKinds,
  recordLists,
} from './record-tables.ts';
import type { BindingRecord, LogRecord } from './records.ts';

/**
 * What the turn has changed so far: of each key the last write, and the log in order. Whoever changes
 * something of the pool that must survive says so here, in the same breath.
 */
export class Journal {
  readonly #wallMs: () => number;
  readonly #tables = emptyTables();
  /** Made in this turn: the store does not have them. */
  readonly #created = new Set<string>();
  readonly #removed = new Set<string>();
  #forgetBeforeMs: number | undefined;
  #log: LogRecord[] = [];
  #generation: number;
  #binding: number;
  #position: number;
  #isChanged = false;

  constructor(counters: Counters, wallMs: () => number) {
    this.#wallMs = wallMs;
    this.#generation = counters.generation;
    this.#binding = counters.binding;
    this.#position = counters.position;
  }

  get nowMs(): number {
    return this.#wallMs();
  }

  get position(): number {
    return this.#position;
  }

  /** The highest generation given out or reported. */
  get generation(): number {
    return this.#generation;
  }

  nextGeneration(): number {
    this.#isChanged = true;
    return ++this.#generation;
  }

  /** Generations go on above this one. */
  raiseGeneration(to: number): void {
    this.#isChanged = true;
    this.#generation = to;
  }

  nextBinding(): string {
    this.#isChanged = true;
    return `b${++this.#binding}`;
  }

  put<K extends RecordKind>(kind: K, record: RecordKinds[K]): void {
    this.#isChanged = true;
    this.#tables[kind].set(keyOf(kind, record), record);
  }

  createBinding(record: BindingRecord): void {
    this.#created.add(record.id);
    this.put('bindings', record);
  }

  removeBinding(id: string): void {
    this.#isChanged = true;
    this.#tables.bindings.delete(id);
    if (!this.#created.delete(id)) this.#removed.add(id);
  }

  forgetRequestsBefore(ms: number): void {
    this.#isChanged = true;
    this.#forgetBeforeMs = ms;
  }

  /** One more entry of the log. */
  log(
    entry: Pick<LogRecord, 'actor' | 'subjectKind' | 'subject' | 'action' | 'message'> & {
      readonly requestId?: string;
      readonly binding?: LogRecord['binding'];
    },
  ): void {
    this.#isChanged = true;
    const { actor, subjectKind, subject, action, message, requestId = '', binding } = entry;
    this.#log.push({
      position: ++this.#position,
      atMs: this.nowMs,
      actor,
      requestId,
      subjectKind,
      subject,
      action,
      message,
      binding,
    });
  }

  /** Everything since the last call; `undefined` when there is nothing. */
  take(): Batch | undefined {
    if (!this.#isChanged) return undefined;
    this.#isChanged = false;
    const batch: Batch = {
      ...recordLists((kind) => drain(this.#tables[kind])),
      removedBindings: [...this.#removed],
      forgetRequestsBeforeMs: this.#forgetBeforeMs,
      log: this.#log,
      counters: {
        generation: this.#generation,
        binding: this.#binding,
        position: this.#position,
      },
    };
    this.#created.clear();
    this.#removed.clear();
    this.#forgetBeforeMs = undefined;
    this.#log = [];
    return batch;
  }
}

function drain<T>(map: Map<string, T>): readonly T[] {
  const values = [...map.values()];
  map.clear();
  return values;
}
