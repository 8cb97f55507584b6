import type { Batch, Counters } from './batch.ts';
import type {
  BindingRecord,
  BoxRecord,
  BoxSlotRecord,
  HostRecord,
  HostSlotRecord,
  LogRecord,
  PathRecord,
  RequestRecord,
} from './records.ts';

/**
 * What the turn has changed so far: of each key the last write, and the log in order. Whoever changes
 * something of the pool that must survive says so here, in the same breath.
 */
export class Journal {
  readonly #wallMs: () => number;
  readonly #bindings = new Map<string, BindingRecord>();
  /** Made in this turn: the store does not have them. */
  readonly #created = new Set<string>();
  readonly #removed = new Set<string>();
  readonly #boxes = new Map<string, BoxRecord>();
  readonly #boxSlots = new Map<string, BoxSlotRecord>();
  readonly #hosts = new Map<string, HostRecord>();
  readonly #hostSlots = new Map<string, HostSlotRecord>();
  readonly #paths = new Map<string, PathRecord>();
  #requests: RequestRecord[] = [];
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

  createBinding(record: BindingRecord): void {
    this.#created.add(record.id);
    this.putBinding(record);
  }

  putBinding(record: BindingRecord): void {
    this.#isChanged = true;
    this.#bindings.set(record.id, record);
  }

  removeBinding(id: string): void {
    this.#isChanged = true;
    this.#bindings.delete(id);
    if (!this.#created.delete(id)) this.#removed.add(id);
  }

  putBox(record: BoxRecord): void {
    this.#isChanged = true;
    this.#boxes.set(record.id, record);
  }

  putBoxSlot(record: BoxSlotRecord): void {
    this.#isChanged = true;
    this.#boxSlots.set(`${record.slot} ${record.box}`, record);
  }

  putHost(record: HostRecord): void {
    this.#isChanged = true;
    this.#hosts.set(record.id, record);
  }

  putHostSlot(record: HostSlotRecord): void {
    this.#isChanged = true;
    this.#hostSlots.set(`${record.slot} ${record.host}`, record);
  }

  putPath(record: PathRecord): void {
    this.#isChanged = true;
    this.#paths.set(`${record.host} ${record.box} ${record.path}`, record);
  }

  putRequest(record: RequestRecord): void {
    this.#isChanged = true;
    this.#requests.push(record);
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
      bindings: drain(this.#bindings),
      removedBindings: [...this.#removed],
      boxes: drain(this.#boxes),
      boxSlots: drain(this.#boxSlots),
      hosts: drain(this.#hosts),
      hostSlots: drain(this.#hostSlots),
      paths: drain(this.#paths),
      requests: this.#requests,
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
    this.#requests = [];
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
