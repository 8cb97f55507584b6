/**
 * Which event-record call a wait refers to. Exports tell the event of each record and of each wait;
 * newer ones tell besides which of an event's records is meant.
 */
import { appendTo } from '#base/append-to';

export interface EventRecord {
  /** Of the call that recorded the event. */
  readonly correlation: number;
  /** Tells the records of one event apart; -1 where the export does not. */
  readonly syncId: number;
  /** Index of the stream it was recorded on. */
  readonly stream: number;
}

export class EventRecords {
  readonly #ofEvent = new Map<string, EventRecord[]>();
  readonly #bySyncId = new Map<string, EventRecord>();
  #isSorted = true;

  /** `event` names the event within its context and process. */
  add(event: string, record: EventRecord): void {
    appendTo(this.#ofEvent, event, record);
    if (record.syncId >= 0) this.#bySyncId.set(`${event}#${record.syncId}`, record);
    this.#isSorted = false;
  }

  /**
   * The record with that sync id; without one, the last record before the call of `correlation`, as ids
   * count up with time.
   */
  find(event: string, correlation: number, syncId: number): EventRecord | undefined {
    const told = syncId < 0 ? undefined : this.#bySyncId.get(`${event}#${syncId}`);
    return told ?? this.#lastBefore(event, correlation);
  }

  #lastBefore(event: string, correlation: number): EventRecord | undefined {
    if (!this.#isSorted) {
      for (const list of this.#ofEvent.values()) list.sort((a, b) => a.correlation - b.correlation);
      this.#isSorted = true;
    }
    const records = this.#ofEvent.get(event) ?? [];
    let low = 0;
    let high = records.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((records[middle]?.correlation ?? 0) < correlation) low = middle + 1;
      else high = middle;
    }
    return records[low - 1];
  }
}
