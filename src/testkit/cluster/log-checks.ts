/** Judges what the log of a batch tells, before it counts: all that changes, and only what may. */
import type { Batch } from '#manager/domain/batch';
import type { BindingRecord, LogRecord } from '#manager/domain/records';
import { FIRST_TRANSITION, TRANSITIONS } from '#manager/domain/transitions';
import { ClusterInvariant, type ClusterOracle } from './cluster-oracle.ts';
import { isSame, type StoreMirror } from './store-mirror.ts';

const { STORE_OWNS, NOTHING_LOST } = ClusterInvariant;

const STEPS = new Set([FIRST_TRANSITION, ...TRANSITIONS.map(({ name }) => name)]);

export class LogChecks {
  readonly #oracle: ClusterOracle;
  readonly #mirror: StoreMirror;

  constructor(oracle: ClusterOracle, mirror: StoreMirror) {
    this.#oracle = oracle;
    this.#mirror = mirror;
  }

  /** `batch` is about to count; the mirror is still as before. */
  judge(batch: Batch): void {
    this.#judgeSteps(batch);
    this.#judgeLog(batch);
  }

  /** Each step the log tells of is one of the table. */
  #judgeSteps({ log }: Batch): void {
    const before = new Map<string, LogRecord['binding']>();
    for (const { binding } of log) {
      if (binding === undefined) continue;
      const { id, state, failure } = binding;
      const last = before.get(id) ?? this.#mirror.bindings.get(id);
      before.set(id, binding);
      const from = last?.state ?? 'free';
      if (from === state && last?.failure?.reason === failure?.reason) continue;
      const to = state === 'failed' ? `failed(${failure?.reason})` : state;
      const step = `${from}>${to}`;
      this.#oracle.counts.up(step);
      if (!STEPS.has(step)) this.#fail(STORE_OWNS, `${id} goes ${step}, which is no step`);
    }
  }

  #judgeLog(batch: Batch): void {
    let { position } = this.#mirror.counters;
    const last = new Map<string, LogRecord>();
    for (const entry of batch.log) {
      if (entry.position !== ++position) {
        this.#fail(NOTHING_LOST, `the log has ${entry.position} where ${position} comes next`);
      }
      if (entry.binding !== undefined) last.set(entry.binding.id, entry);
    }
    if (batch.counters.position !== position) {
      this.#fail(NOTHING_LOST, `the log ends at ${position}, not at ${batch.counters.position}`);
    }
    for (const record of batch.bindings) {
      const entry = last.get(record.id);
      const before = this.#mirror.bindings.get(record.id);
      if (entry === undefined && before !== undefined && isSameLife(before, record)) continue;
      if (entry?.binding === undefined || !isSame(entry.binding, record)) {
        this.#fail(NOTHING_LOST, `the log does not tell how ${record.id} became ${record.state}`);
      }
    }
    for (const id of batch.removedBindings) {
      if (last.get(id)?.binding?.state === 'free') continue;
      this.#fail(NOTHING_LOST, `the log does not tell that ${id} is gone`);
    }
  }

  #fail(invariant: ClusterInvariant, message: string): void {
    this.#oracle.fail(invariant, message);
  }
}

function isSameLife(a: BindingRecord, b: BindingRecord): boolean {
  return a.state === b.state && a.goal === b.goal && a.generation === b.generation;
}
