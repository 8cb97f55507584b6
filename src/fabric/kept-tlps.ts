/**
 * TLPs that have to wait for the link to take completions again, as their bytes, first in first out.
 * Each is looked at anew when its turn comes, so that whatever has changed meanwhile (memory taken
 * back, a new table) holds for it too. Who keeps requests here keeps their credits, which is what
 * bounds the queue.
 */
import type { ArrivedTlp } from './link-user.ts';

/** Header of 16 bytes, two operands of 16, ECRC: all non-posted requests that are handled. */
const USUAL_BYTES = 52;

export class KeptTlp implements ArrivedTlp {
  slot = 0;
  generation = 0;
  bytes = new Uint8Array(USUAL_BYTES);
  readonly offset = 0;
  length = 0;
  payloadBytes = 0;
  /** Bytes of its answer that have been sent. */
  answered = 0;
}

export class KeptTlps {
  #entries: KeptTlp[] = [];
  #head = 0;
  readonly #pool: KeptTlp[] = [];

  get size(): number {
    return this.#entries.length - this.#head;
  }

  get first(): KeptTlp | undefined {
    return this.#entries[this.#head];
  }

  push(tlp: ArrivedTlp, payloadBytes: number, answered: number): void {
    const { slot, generation, bytes, offset, length } = tlp;
    const entry = this.#pool.pop() ?? new KeptTlp();
    if (length > entry.bytes.length) entry.bytes = new Uint8Array(length);
    entry.slot = slot;
    entry.generation = generation;
    for (let index = 0; index < length; index++) {
      entry.bytes[index] = bytes[offset + index] as number;
    }
    entry.length = length;
    entry.payloadBytes = payloadBytes;
    entry.answered = answered;
    this.#entries.push(entry);
  }

  /** Forgets the first; its record is reused. */
  shift(): void {
    const entry = this.#entries[this.#head];
    if (entry === undefined) return;
    this.#pool.push(entry);
    this.#head++;
    // Amortised: an entry is moved at most once for each one that has left.
    if (this.#head * 2 >= this.#entries.length) {
      this.#entries = this.#entries.slice(this.#head);
      this.#head = 0;
    }
  }

  clear(): void {
    this.#entries = [];
    this.#head = 0;
  }
}
