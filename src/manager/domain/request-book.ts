/**
 * Requests that were acknowledged, so that a repeated one acts no second time. They are forgotten in
 * the order they came, after `keepRequestsMs`, or when there are too many.
 *
 * A wall clock may jump. A request of this core is timed by the monotonic clock; one that the store
 * remembers is old by the wall clock alone, so it is kept for an hour whatever the clock says. Their
 * times go up strictly where the clock does not, so that the store forgets the same ones.
 */
import type { Nanos } from '#base/units';
import type { Command } from './commands.ts';
import type { Journal } from './journal.ts';
import { requestKey } from './record-tables.ts';
import type { RequestRecord } from './records.ts';

/** Far more than are under way at once; each takes about half a KiB. */
const MOST_REQUESTS = 500_000;
const LEAST_KEPT_NS = 3600e9;

interface Kept {
  readonly record: RequestRecord;
  /** When this core learned of it. */
  readonly sinceNs: number;
  readonly isRestored: boolean;
}

export class RequestBook {
  readonly #journal: Journal;
  readonly #keepMs: number;
  readonly #most: number;
  /** The oldest first. */
  readonly #kept = new Map<string, Kept>();
  #lastMs = -Infinity;

  constructor(
    journal: Journal,
    restored: readonly RequestRecord[],
    keepMs: number,
    most = MOST_REQUESTS,
  ) {
    this.#journal = journal;
    this.#keepMs = keepMs;
    this.#most = most;
    for (const record of [...restored].sort((a, b) => a.atMs - b.atMs)) {
      this.#kept.set(requestKey(record.caller, record.requestId), {
        record,
        sinceNs: Infinity,
        isRestored: true,
      });
      this.#lastMs = record.atMs;
    }
  }

  get size(): number {
    return this.#kept.size;
  }

  /** The core's time begins: what was restored is kept for an hour from now at least. */
  begin(now: Nanos): void {
    for (const [key, kept] of this.#kept) this.#kept.set(key, { ...kept, sinceNs: now });
  }

  find(caller: string, requestId: string): RequestRecord | undefined {
    return this.#kept.get(requestKey(caller, requestId))?.record;
  }

  remember(now: Nanos, request: Omit<RequestRecord, 'atMs'>): void {
    const wallMs = this.#journal.nowMs;
    const atMs = wallMs >= this.#lastMs ? wallMs : this.#lastMs + 1;
    this.#lastMs = atMs;
    const record = { ...request, atMs };
    const kept = { record, sinceNs: now, isRestored: false };
    this.#kept.set(requestKey(request.caller, request.requestId), kept);
    this.#journal.put('requests', record);
    this.#forget(now, wallMs);
  }

  /** At most two a call: no more come in a call either. */
  #forget(now: Nanos, wallMs: number): void {
    let isForgotten = false;
    for (let count = 0; count < 2; count++) {
      const [oldest] = this.#kept;
      if (oldest === undefined) break;
      const [key, kept] = oldest;
      if (this.#kept.size <= this.#most && !this.#isOld(kept, now, wallMs)) break;
      this.#kept.delete(key);
      isForgotten = true;
    }
    const [oldest] = this.#kept;
    if (isForgotten && oldest !== undefined) {
      this.#journal.forgetRequestsBefore(oldest[1].record.atMs);
    }
  }

  #isOld({ record, sinceNs, isRestored }: Kept, now: Nanos, wallMs: number): boolean {
    const heldNs = now - sinceNs;
    if (!isRestored) return heldNs > this.#keepMs * 1e6;
    return heldNs > LEAST_KEPT_NS && wallMs - record.atMs > this.#keepMs;
  }
}

/** Everything a command asks for, but for its id: equal for a repetition of it alone. */
export function fingerprintOf(command: Command): string {
  switch (command.kind) {
    case 'bind': {
      const { gpus, host, model, memoryBytes, sameBox, nvlink, boxKind, maxRttNs } = command.demand;
      return JSON.stringify([
        'bind',
        gpus,
        host,
        model ?? null,
        memoryBytes ?? null,
        sameBox,
        nvlink,
        boxKind ?? null,
        maxRttNs ?? null,
        command.retries,
      ]);
    }
    case 'unbind':
      return JSON.stringify(['unbind', command.bindings, command.force]);
    case 'retry':
      return JSON.stringify(['retry', command.bindings]);
  }
}
