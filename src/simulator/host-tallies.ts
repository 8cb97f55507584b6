/**
 * What the hosts of a group have for a kind of demand, counted, so that the reason for which it found no
 * place need not be looked for host by host. Each count is brought up to date when it is asked for.
 */
import { type ChangeLog, type LogReader, NOTHING_READ } from './change-log.ts';
import { type Demand, isShared } from './demand.ts';
import type { Pool } from './pool.ts';

/** Numbers of hosts, and what is left of the GPUs that those with room share out. */
export interface HostTally {
  /** With CPU and memory enough, with slots enough beside them, and without. */
  room: number;
  withSlots: number;
  withoutSlots: number;
  /** That share out a GPU with enough left, with room or without. */
  shares: number;
  /** With room, and a shared GPU with enough left if any model would do. */
  sharesAnyModel: number;
  /** Thousandths of shared GPUs left on hosts with room. */
  besideMilli: number;
}

const ROOM = 1;
const SLOTS = 2;
const SHARES = 4;
const SHARES_ANY_MODEL = 8;

interface Kept extends LogReader {
  readonly tally: HostTally;
  /** What each host was counted as. */
  readonly flags: Uint8Array;
  readonly besideMilli: Float64Array;
}

export class HostTallies {
  readonly #pool: Pool;
  readonly #hosts: readonly number[];
  readonly #log: ChangeLog;
  readonly #kept = new Map<Demand, Kept>();

  /** `log` is told of every host of `hosts` that changed, by its place among them. */
  constructor(pool: Pool, hosts: readonly number[], log: ChangeLog) {
    this.#pool = pool;
    this.#hosts = hosts;
    this.#log = log;
  }

  /** `anyModel` is the demand if any model would do. With `keep` it is brought up to date, else made anew. */
  of(demand: Demand, anyModel: Demand, keep: boolean): Readonly<HostTally> {
    const kept = this.#kept.get(demand) ?? noneKept(this.#hosts.length);
    if (keep) this.#kept.set(demand, kept);
    this.#log.catchUp(kept, (place) => this.#count(kept, place, demand, anyModel));
    return kept.tally;
  }

  #count({ tally, flags, besideMilli }: Kept, place: number, demand: Demand, anyModel: Demand) {
    const h = this.#hosts[place] as number;
    const after = this.#flagsOf(h, demand, anyModel);
    const milli = (after & ROOM) === 0 ? 0 : this.#partsLeft(h);
    add(tally, flags[place] as number, -1);
    add(tally, after, 1);
    tally.besideMilli += milli - (besideMilli[place] as number);
    flags[place] = after;
    besideMilli[place] = milli;
  }

  #flagsOf(h: number, demand: Demand, anyModel: Demand): number {
    const pool = this.#pool;
    const parts = isShared(demand);
    const shares = parts && pool.tightestPart(h, demand) >= 0 ? SHARES : 0;
    if (!pool.hasHostRoom(h, demand)) return shares;
    const slots = (pool.slotsLeft[h] as number) >= demand.gpus ? SLOTS : 0;
    const ofAny = parts && pool.tightestPart(h, anyModel) >= 0 ? SHARES_ANY_MODEL : 0;
    return ROOM | slots | shares | ofAny;
  }

  #partsLeft(h: number): number {
    let milli = 0;
    for (const gpu of this.#pool.parts[h] ?? []) {
      if (!this.#pool.isDown(gpu)) milli += this.#pool.gpuLeft[gpu] as number;
    }
    return milli;
  }
}

function add(tally: HostTally, flags: number, by: 1 | -1): void {
  if ((flags & SHARES) !== 0) tally.shares += by;
  if ((flags & ROOM) === 0) return;
  tally.room += by;
  if ((flags & SLOTS) === 0) tally.withoutSlots += by;
  else tally.withSlots += by;
  if ((flags & SHARES_ANY_MODEL) !== 0) tally.sharesAnyModel += by;
}

function noneKept(hosts: number): Kept {
  return {
    tally: {
      room: 0,
      withSlots: 0,
      withoutSlots: 0,
      shares: 0,
      sharesAnyModel: 0,
      besideMilli: 0,
    },
    flags: new Uint8Array(hosts),
    besideMilli: new Float64Array(hosts),
    read: NOTHING_READ,
  };
}
