/** What was ordered of the slots of one proxy in one stream, and which of it is in force. */

/** An order for one slot. One without a row is held as `undefined`. */
interface SlotOrder {
  readonly slot: number;
}

interface Ordered<O> {
  /** `undefined`: the slot shall hold nothing. */
  readonly order: O | undefined;
  readonly revision: number;
}

export interface NextOrder<O> {
  readonly revision: number;
  readonly whole: boolean;
  /** The whole one names slots with something in them alone. */
  readonly slots: readonly O[];
}

/**
 * Wishes may change many times in a turn; `take` makes one order of what differs from the last. A slot
 * that was never ordered anything counts as ordered empty by the first order, which is the whole one.
 */
export class OrderBook<O extends SlotOrder> {
  readonly #isSame: (a: O, b: O) => boolean;
  readonly #emptyOf: (slot: number) => O;
  readonly #onDirty: () => void;
  readonly #wanted = new Map<number, O>();
  readonly #ordered = new Map<number, Ordered<O>>();
  /** Slots whose wish differs from what was ordered last. */
  readonly #dirty = new Set<number>();
  /** Orders that are not known to be in force, oldest first. */
  readonly #awaited: { readonly revision: number; readonly slots: readonly number[] }[] = [];
  #revision = 0;
  #applied = 0;

  /** `emptyOf`: the order that a slot shall hold nothing. `onDirty`: there is an order to take. */
  constructor(
    isSame: (a: O, b: O) => boolean,
    emptyOf: (slot: number) => O,
    onDirty: () => void = () => undefined,
  ) {
    this.#isSame = isSame;
    this.#emptyOf = emptyOf;
    this.#onDirty = onDirty;
  }

  /** Of the newest order taken; 0 before the first. */
  get revision(): number {
    return this.#revision;
  }

  /** Of the newest order reported to be in force. */
  get applied(): number {
    return this.#applied;
  }

  get isDirty(): boolean {
    return this.#revision === 0 || this.#dirty.size > 0;
  }

  /** From now on the slot shall hold this; `undefined` for nothing. */
  want(slot: number, order: O | undefined): void {
    if (order === undefined) this.#wanted.delete(slot);
    else this.#wanted.set(slot, order);
    if (this.#revision === 0) return;
    const last = this.#ordered.get(slot)?.order;
    const isSame =
      order === undefined || last === undefined ? order === last : this.#isSame(order, last);
    if (isSame) {
      this.#dirty.delete(slot);
      return;
    }
    if (this.#dirty.size === 0) this.#onDirty();
    this.#dirty.add(slot);
  }

  /** What is wanted of the slot was ordered, and the order is reported to be in force. */
  isConfirmed(slot: number): boolean {
    if (this.#revision === 0 || this.#dirty.has(slot)) return false;
    return (this.#ordered.get(slot)?.revision ?? 1) <= this.#applied;
  }

  /** The next order: the whole, or what differs; `undefined` when nothing does (and `isForced` is not set). */
  take(isForced: boolean): NextOrder<O> | undefined {
    if (!this.isDirty && !isForced) return undefined;
    const revision = ++this.#revision;
    const whole = revision === 1;
    const slots = whole ? [...this.#wanted.keys()] : [...this.#dirty];
    this.#dirty.clear();
    for (const slot of slots) this.#ordered.set(slot, { order: this.#wanted.get(slot), revision });
    this.#awaited.push({ revision, slots });
    return {
      revision,
      whole,
      slots: slots.map((slot) => this.#wanted.get(slot) ?? this.#emptyOf(slot)),
    };
  }

  /**
   * The proxy says that this order, which was sent, is in force. Returns the slots it and those before
   * it were about; `undefined` stands for every slot there is.
   */
  confirm(applied: number): readonly number[] | undefined {
    this.#applied = applied;
    const slots: number[] = [];
    let isWhole = false;
    for (let next = this.#awaited[0]; next !== undefined; next = this.#awaited[0]) {
      if (next.revision > applied) break;
      this.#awaited.shift();
      if (next.revision === 1) isWhole = true;
      slots.push(...next.slots);
      for (const slot of next.slots) this.#forgetEmpty(slot);
    }
    return isWhole ? undefined : slots;
  }

  /**
   * The slots that get a row by the oldest order which is not in force, as far as none came after it:
   * when the proxy refuses, one of these is why.
   */
  suspects(): readonly number[] {
    const oldest = this.#awaited[0];
    if (oldest === undefined) return [];
    return oldest.slots.filter((slot) => {
      const last = this.#ordered.get(slot);
      return last?.revision === oldest.revision && last.order !== undefined;
    });
  }

  /** An empty slot is as good as one never ordered, once it is confirmed. */
  #forgetEmpty(slot: number): void {
    const last = this.#ordered.get(slot);
    if (last !== undefined && last.order === undefined && last.revision <= this.#applied) {
      this.#ordered.delete(slot);
    }
  }
}
