/**
 * Walks bindings through `TRANSITIONS`. It owns their records and deadlines once they are made, and
 * tells the order books what their slots should hold; that all of it follows from states and
 * observations, at whatever moment one looks, is what makes it safe to look at any time and often.
 *
 * Only what something has happened to is looked at: whoever changes a slot or a binding `touch`es it,
 * and `settle` at the end of each call looks at what was touched.
 */
import { assert } from '#base/assert';
import type { Nanos } from '#base/units';
import { DeadlineLists } from './deadline-lists.ts';
import type { FactsKeeper } from './facts-keeper.ts';
import type { Binding, BoxSlot, HostSlot, Inventory } from './inventory.ts';
import type { Journal } from './journal.ts';
import type { Observation } from './observation.ts';
import { observe } from './observe.ts';
import type { PoolFaults, PoolTimeouts } from './pool-options.ts';
import type { BindingRecord, BindingState, LoggedBinding } from './records.ts';
import { startGeneration, stepChanges, stepDurationMs } from './step-changes.ts';
import { nextTransition, type Transition } from './transitions.ts';
import { settleOrders } from './wanted-orders.ts';

/** More steps than any binding can take on one look. */
const MOST_STEPS = 12;

export interface ReconcilerParts {
  readonly inventory: Inventory;
  readonly journal: Journal;
  readonly facts: FactsKeeper;
  readonly timeouts: PoolTimeouts;
  readonly faults: PoolFaults;
  readonly onTransition: ((name: string, binding: string) => void) | undefined;
  /** A binding's record is gone; its slots have no owner any more. */
  readonly onFreed: (binding: Binding) => void;
}

export class Reconciler {
  readonly #parts: ReconcilerParts;
  readonly #deadlines = new DeadlineLists<Binding>();
  readonly #touched: Binding[] = [];
  readonly #touchedBoxSlots: BoxSlot[] = [];
  readonly #touchedHostSlots: HostSlot[] = [];
  /** Nobody confirmed their generation yet: the ones a restored store may give out again. */
  readonly #unconfirmed = new Set<Binding>();
  /** New ones, by where the batch is that makes them durable. */
  #made: Binding[] = [];
  #sealed: Binding[] = [];
  /** How many there are in each state. */
  readonly counts = new Map<BindingState, number>();

  constructor(parts: ReconcilerParts) {
    this.#parts = parts;
  }

  /** Takes charge of a binding that the store remembers. */
  adopt(binding: Binding): void {
    this.#count(binding.record.state, 1);
  }

  /** The time of the step it is in begins. */
  begin(now: Nanos, binding: Binding): void {
    this.#enter(now, binding);
    // What was ordered before is not remembered. A row that may have been ordered away must not come
    // back, and one that may have been ordered must not go for a while: both would be the same
    // generation put in force twice.
    if (binding.record.state === 'detaching') binding.boxReleasing = true;
    if (binding.record.state === 'programming') binding.boxInForce = true;
    this.touch(binding);
  }

  /** Takes charge of a new binding, which is looked at once it is durable. */
  reserve(now: Nanos, binding: Binding): void {
    this.adopt(binding);
    this.#enter(now, binding);
    this.#made.push(binding);
  }

  /** A batch was taken: with all bindings made so far. */
  seal(): void {
    this.#sealed.push(...this.#made);
    this.#made = [];
  }

  /** Those batches are durable: `settle` takes their new bindings on. */
  committed(): void {
    for (const binding of this.#sealed) this.touch(binding);
    this.#sealed = [];
  }

  touch(binding: Binding): void {
    if (binding.isTouched) return;
    binding.isTouched = true;
    this.#touched.push(binding);
  }

  touchBoxSlot(slot: BoxSlot): void {
    if (slot.binding !== undefined) return this.touch(slot.binding);
    if (slot.isTouched) return;
    slot.isTouched = true;
    this.#touchedBoxSlots.push(slot);
  }

  touchHostSlot(slot: HostSlot): void {
    if (slot.binding !== undefined) return this.touch(slot.binding);
    if (slot.isTouched) return;
    slot.isTouched = true;
    this.#touchedHostSlots.push(slot);
  }

  /** 0 while something was touched: then it is time at once. */
  nextDeadlineNs(): number {
    return this.#touched.length > 0 ? 0 : this.#deadlines.nextNs();
  }

  /** Touches the bindings whose time is over. */
  tick(now: Nanos): void {
    for (const binding of this.#deadlines.takeDue(now)) this.touch(binding);
  }

  /** Looks at everything that was touched, until nothing more follows. */
  settle(now: Nanos): void {
    // By index: more may come meanwhile.
    for (let index = 0; index < this.#touched.length; index++) {
      const binding = this.#touched[index] as Binding;
      binding.isTouched = false;
      if (this.#parts.inventory.bindings.get(binding.record.id) === binding) {
        this.#look(now, binding);
      }
    }
    this.#touched.length = 0;
    for (const slot of this.#touchedBoxSlots) {
      slot.isTouched = false;
      if (slot.binding === undefined) this.#settleBoxSlot(slot);
    }
    this.#touchedBoxSlots.length = 0;
    for (const slot of this.#touchedHostSlots) {
      slot.isTouched = false;
      if (slot.binding === undefined) this.#settleHostSlot(slot);
    }
    this.#touchedHostSlots.length = 0;
  }

  /** Changes what was asked for a binding. Its state stays; the table sees to what follows. */
  amend(
    binding: Binding,
    change: Partial<Pick<BindingRecord, 'goal' | 'force' | 'attempts' | 'attachment'>>,
  ): void {
    this.#put(binding, change);
    this.touch(binding);
  }

  /**
   * The counter was behind what proxies hold: the store is older than they are, and every generation
   * that nobody has confirmed to this core may have been used before.
   */
  distrustGenerations(): void {
    for (const binding of this.#unconfirmed) {
      if (binding.record.state === 'reserved') {
        this.#renumber(binding);
      } else {
        binding.superseded = true;
      }
      this.touch(binding);
    }
  }

  /**
   * A proxy has had generations up to `highest`. What is reserved in its slots was told to nobody yet by
   * this store; an older copy of it may be what says so.
   */
  renumberReserved(
    slots: Iterable<{ readonly binding: Binding | undefined }>,
    highest: number,
  ): void {
    for (const { binding } of slots) {
      if (binding?.record.state !== 'reserved' || binding.record.generation > highest) continue;
      this.#renumber(binding);
      this.touch(binding);
    }
  }

  #renumber(binding: Binding): void {
    this.#put(binding, { generation: this.#parts.journal.nextGeneration() });
    const message = 'its generation may have been given out before the store was restored';
    this.#log(binding.record, 'renumbered', message);
  }

  #look(now: Nanos, binding: Binding): void {
    const { facts, faults } = this.#parts;
    for (let steps = 0; ; steps++) {
      assert(steps < MOST_STEPS, `binding ${binding.record.id} runs in circles`);
      settleOrders(binding);
      const seen = observe(now, binding, faults);
      const row = nextTransition(binding.record.state, seen);
      if (row === undefined) break;
      this.#take(now, binding, row, seen);
      if (row.to === 'free') return;
    }
    binding.boxRestarted = false;
    binding.hostRestarted = false;
    facts.boxSlot(binding.boxSlot, false);
    facts.hostSlot(binding.hostSlot);
  }

  #take(now: Nanos, binding: Binding, row: Transition, seen: Observation): void {
    this.#parts.onTransition?.(row.name, binding.record.id);
    if (row.to === 'free') {
      this.#free(binding);
      return;
    }
    const { record } = binding;
    this.#count(record.state, -1);
    this.#count(row.to, 1);
    this.#put(binding, { state: row.to, ...this.#changes(binding, row, seen) });
    if (row.from === 'failed' && row.to === 'programming') startGeneration(binding);
    this.#enter(now, binding);
    const { failure } = binding.record;
    const message = row.to === 'failed' ? `${failure?.reason}: ${failure?.message}` : row.condition;
    this.#log(binding.record, row.to, message);
  }

  #log(binding: LoggedBinding, action: string, message: string): void {
    const { id, requestId } = binding;
    this.#parts.journal.log({
      actor: 'manager',
      subjectKind: 'binding',
      subject: id,
      requestId,
      action,
      message,
      binding,
    });
  }

  #changes(binding: Binding, row: Transition, seen: Observation): Partial<BindingRecord> {
    const { journal, faults } = this.#parts;
    return stepChanges(binding, row, seen, () =>
      faults.reusesGeneration === true ? binding.record.generation : journal.nextGeneration(),
    );
  }

  /** What begins with a state: flags that are of it alone, and its time. */
  #enter(now: Nanos, binding: Binding): void {
    const { record } = binding;
    binding.hostReleased = false;
    if (record.state === 'reserved' || record.state === 'programming') {
      this.#unconfirmed.add(binding);
    } else {
      this.#unconfirmed.delete(binding);
    }
    const durationMs = stepDurationMs(record, this.#parts.timeouts);
    if (durationMs === undefined) this.#deadlines.clear(binding);
    else this.#deadlines.set(binding, now, durationMs);
  }

  #free(binding: Binding): void {
    const { inventory, journal } = this.#parts;
    const { record, boxSlot, hostSlot } = binding;
    this.#count(record.state, -1);
    this.#deadlines.clear(binding);
    this.#unconfirmed.delete(binding);
    inventory.removeBinding(binding);
    journal.removeBinding(record.id);
    this.#log(
      { ...record, state: 'free', failure: undefined, changedMs: journal.nowMs },
      'free',
      `GPU ${record.uuid} of box ${record.box}, slot ${record.boxSlot}, has no owner`,
    );
    this.#settleBoxSlot(boxSlot);
    this.#settleHostSlot(hostSlot);
    this.#parts.onFreed(binding);
  }

  #settleBoxSlot(slot: BoxSlot): void {
    slot.box.session?.book.want(slot.slot, undefined);
    this.#parts.facts.boxSlot(slot, false);
  }

  #settleHostSlot(slot: HostSlot): void {
    slot.host.session?.book.want(slot.slot, undefined);
    this.#parts.facts.hostSlot(slot);
  }

  #put(binding: Binding, changes: Partial<BindingRecord>): void {
    const { journal } = this.#parts;
    binding.record = { ...binding.record, ...changes, changedMs: journal.nowMs };
    journal.put('bindings', binding.record);
  }

  #count(state: BindingState, by: number): void {
    this.counts.set(state, (this.counts.get(state) ?? 0) + by);
  }
}
