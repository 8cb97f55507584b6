/**
 * TLPs of one direction at one place as bursts: those that follow each other within a gap are one. There
 * are never more bursts than the limit; where there would be, the gap is doubled and bursts are joined
 * until half of them are left. So nothing is left out, it is only told less finely.
 */

export const TLP_SORT = { read: 0, write: 1, completion: 2, other: 3 } as const;
export type TlpSort = (typeof TLP_SORT)[keyof typeof TLP_SORT];

export interface Burst {
  readonly startNs: number;
  readonly endNs: number;
  /** TLPs by `TlpSort`. */
  readonly tlps: readonly [number, number, number, number];
  /** Of the TLPs, headers included, framing not. */
  readonly bytes: number;
}

const FIRST_GAP_NS = 16;
/** Numbers kept of a burst: start, end, bytes, and TLPs of each sort. */
const FIELDS = 7;
const [START, END, BYTES, TLPS] = [0, 1, 2, 3];

export class BurstTrack {
  /** Bursts closer than this have been joined. */
  gapNs = FIRST_GAP_NS;
  readonly #limit: number;
  readonly #values: number[] = [];

  /** `limit` is at least 1. */
  constructor(limit: number) {
    this.#limit = limit;
  }

  get count(): number {
    return this.#values.length / FIELDS;
  }

  /** In order of time: `startNs` is not before that of the one before. */
  add(startNs: number, endNs: number, sort: TlpSort, bytes: number): void {
    const values = this.#values;
    const last = values.length - FIELDS;
    if (last >= 0 && startNs - at(values, last + END) <= this.gapNs) {
      if (endNs > at(values, last + END)) values[last + END] = endNs;
      values[last + BYTES] = at(values, last + BYTES) + bytes;
      values[last + TLPS + sort] = at(values, last + TLPS + sort) + 1;
      return;
    }
    values.push(startNs, endNs, bytes, 0, 0, 0, 0);
    values[last + FIELDS + TLPS + sort] = 1;
    if (this.count <= this.#limit) return;
    while (this.count > Math.max(1, this.#limit / 2)) this.#join();
  }

  *bursts(): Generator<Burst> {
    const values = this.#values;
    for (let from = 0; from < values.length; from += FIELDS) {
      yield {
        startNs: at(values, from + START),
        endNs: at(values, from + END),
        bytes: at(values, from + BYTES),
        tlps: [
          at(values, from + TLPS),
          at(values, from + TLPS + 1),
          at(values, from + TLPS + 2),
          at(values, from + TLPS + 3),
        ],
      };
    }
  }

  /** Doubles the gap. */
  #join(): void {
    this.gapNs *= 2;
    const values = this.#values;
    let kept = 0;
    for (let from = FIELDS; from < values.length; from += FIELDS) {
      if (at(values, from + START) - at(values, kept + END) <= this.gapNs) {
        values[kept + END] = Math.max(at(values, kept + END), at(values, from + END));
        for (let field = BYTES; field < FIELDS; field += 1) {
          values[kept + field] = at(values, kept + field) + at(values, from + field);
        }
      } else {
        kept += FIELDS;
        for (let field = 0; field < FIELDS; field += 1) {
          values[kept + field] = at(values, from + field);
        }
      }
    }
    values.length = kept + FIELDS;
  }
}

function at(values: readonly number[], index: number): number {
  return values[index] ?? 0;
}
