/**
 * Deadlines of many things, each of which has at most one. There are few different durations, and time
 * runs forward, so those of one duration are in order as they come: a list each, where setting and
 * clearing cost the same however many there are and nothing stale is left behind.
 */
import type { Nanos } from '#base/units';

/** What can have a deadline; `DeadlineLists` alone writes these. Begins with Infinity and `undefined`. */
export interface Due {
  dueNs: number;
  dueList: DueList | undefined;
  dueBefore: Due | undefined;
  dueBehind: Due | undefined;
}

interface DueList {
  first: Due | undefined;
  last: Due | undefined;
}

export class DeadlineLists<T extends Due> {
  readonly #lists = new Map<number, DueList>();

  /** `now` never runs backwards from call to call. Replaces the deadline it had. */
  set(item: T, now: Nanos, durationMs: number): void {
    this.clear(item);
    let list = this.#lists.get(durationMs);
    if (list === undefined) {
      list = { first: undefined, last: undefined };
      this.#lists.set(durationMs, list);
    }
    item.dueNs = now + durationMs * 1e6;
    item.dueList = list;
    item.dueBefore = list.last;
    if (list.last === undefined) list.first = item;
    else list.last.dueBehind = item;
    list.last = item;
  }

  /** Takes its deadline away: `dueNs` is Infinity afterwards. */
  clear(item: T): void {
    this.#unlink(item);
    item.dueNs = Infinity;
  }

  nextNs(): number {
    let next = Infinity;
    for (const { first } of this.#lists.values()) {
      if (first !== undefined && first.dueNs < next) next = first.dueNs;
    }
    return next;
  }

  /** Takes out all that are due. They keep their `dueNs`, so that one sees that they were. */
  takeDue(now: Nanos): T[] {
    const due: T[] = [];
    for (const list of this.#lists.values()) {
      while (list.first !== undefined && list.first.dueNs <= now) {
        const item = list.first as T;
        this.#unlink(item);
        due.push(item);
      }
    }
    return due;
  }

  #unlink(item: Due): void {
    const { dueList: list, dueBefore: before, dueBehind: behind } = item;
    if (list === undefined) return;
    if (before === undefined) list.first = behind;
    else before.dueBehind = behind;
    if (behind === undefined) list.last = before;
    else behind.dueBefore = before;
    item.dueList = undefined;
    item.dueBefore = undefined;
    item.dueBehind = undefined;
  }
}
