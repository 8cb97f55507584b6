/** What a `VirtualClock` runs, and the heap in which it waits. */
import type { Nanos } from './units.ts';

const NOWHERE = -1;

/** Made once by who wants it often, and scheduled again after it has run. */
export class ClockEvent {
  readonly fire: (now: Nanos) => void;
  /** The clock's to set, as all below. Cancelled it keeps its place in the queue until that comes up. */
  isScheduled = false;
  // Not whole numbers at first: V8 then keeps them as what they will be.
  atNs = Infinity;
  takenNs = Infinity;
  turn = Infinity;
  /** Index in the queue. */
  place = NOWHERE;

  constructor(fire: (now: Nanos) => void) {
    this.fire = fire;
  }

  cancel(): void {
    this.isScheduled = false;
  }
}

/** A binary heap of events by (time, time at which the turn was taken, turn), each in it once at most. */
export class ClockQueue {
  readonly #events: ClockEvent[] = [];

  /** The first, cancelled or not. */
  get first(): ClockEvent | undefined {
    return this.#events[0];
  }

  /** Puts in `event`, or moves it to where it belongs now. */
  put(event: ClockEvent): void {
    const events = this.#events;
    if (event.place === NOWHERE) {
      events.push(event);
      this.#rise(event, events.length - 1);
    } else if (!this.#rise(event, event.place)) {
      this.#sink(event, event.place);
    }
  }

  remove(event: ClockEvent): void {
    const { place } = event;
    if (place === NOWHERE) return;
    event.place = NOWHERE;
    const last = this.#events.pop();
    if (last === undefined || last === event) return;
    if (!this.#rise(last, place)) this.#sink(last, place);
  }

  /** Towards the top from `place`, which is free or its own. Returns whether it moved. */
  #rise(event: ClockEvent, place: number): boolean {
    const events = this.#events;
    let index = place;
    while (index > 0) {
      const parent = (index - 1) >> 1;
      const above = events[parent] as ClockEvent;
      if (!isBefore(event, above)) break;
      events[index] = above;
      above.place = index;
      index = parent;
    }
    events[index] = event;
    event.place = index;
    return index !== place;
  }

  #sink(event: ClockEvent, place: number): void {
    const events = this.#events;
    const size = events.length;
    let index = place;
    for (;;) {
      let child = 2 * index + 1;
      if (child >= size) break;
      let below = events[child] as ClockEvent;
      if (child + 1 < size) {
        const right = events[child + 1] as ClockEvent;
        if (isBefore(right, below)) {
          below = right;
          child += 1;
        }
      }
      if (isBefore(event, below)) break;
      events[index] = below;
      below.place = index;
      index = child;
    }
    events[index] = event;
    event.place = index;
  }
}

function isBefore(one: ClockEvent, other: ClockEvent): boolean {
  if (one.atNs !== other.atNs) return one.atNs < other.atNs;
  if (one.takenNs !== other.takenNs) return one.takenNs < other.takenNs;
  return one.turn < other.turn;
}
