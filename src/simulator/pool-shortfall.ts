/** Why a pool has no place for a demand: what its hosts lack, kept up to date host by host. */
import { ChangeLog, UNREAD } from './change-log.ts';
import { askedMilli, type Demand, isShared, WHOLE_GPU } from './demand.ts';
import type { UnplacedReason } from './design.ts';
import type { Pool } from './pool.ts';

// What a host has for a demand.
const ROOM = 1;
const SLOTS = 2;
/** A GPU it shares out has enough left, of a model that will do. */
const SHARES = 4;
/** The same of any model. */
const SHARES_ANY = 8;
const COMBINATIONS = 16;

/** Kinds times hosts; beyond it what is kept would take gigabytes, and hosts are looked at anew. */
const MOST_KEPT = 30_000_000;

class Tally {
  readonly demand: Demand;
  readonly anyModel: Demand;
  /** By group and by what they have: so many hosts. */
  readonly hosts: Uint32Array;
  /** By group: what hosts with room have left in GPUs they share out, in 1/1000. */
  readonly milli: Float64Array;
  read = UNREAD;
  readonly look: (host: number) => void;
  readonly #pool: Pool;
  readonly #has: Uint8Array;
  readonly #milli: Uint32Array;

  constructor(pool: Pool, demand: Demand) {
    this.demand = demand;
    this.anyModel = { ...demand, models: [] };
    this.hosts = new Uint32Array(pool.groups * COMBINATIONS);
    this.milli = new Float64Array(pool.groups);
    this.#pool = pool;
    this.#has = new Uint8Array(pool.hostCount);
    this.#milli = new Uint32Array(pool.hostCount);
    for (let h = 0; h < pool.hostCount; h++) this.#count(pool.hostGroup[h] as number, 0, 1);
    this.look = (host) => this.#look(host);
  }

  /** So many hosts of a group that have all of `wanted` and nothing of `unwanted`. */
  hostsWith(group: number, wanted: number, unwanted = 0): number {
    let count = 0;
    for (let has = 0; has < COMBINATIONS; has++) {
      if ((has & wanted) !== wanted || (has & unwanted) !== 0) continue;
      count += this.hosts[group * COMBINATIONS + has] as number;
    }
    return count;
  }

  #look(h: number): void {
    const group = this.#pool.hostGroup[h] as number;
    this.#count(group, this.#has[h] as number, -1);
    const has = this.#hasNow(h);
    this.#count(group, has, 1);
    const milli = (has & ROOM) === 0 ? 0 : this.#leftInParts(h);
    this.milli[group] = (this.milli[group] as number) + milli - (this.#milli[h] as number);
    this.#has[h] = has;
    this.#milli[h] = milli;
  }

  #hasNow(h: number): number {
    const { demand, anyModel } = this;
    const pool = this.#pool;
    let has = 0;
    if (pool.hasHostRoom(h, demand)) has |= ROOM;
    if ((pool.slotsLeft[h] as number) >= demand.gpus) has |= SLOTS;
    if (!isShared(demand)) return has;
    if (pool.tightestPart(h, demand) >= 0) has |= SHARES;
    if (pool.tightestPart(h, anyModel) >= 0) has |= SHARES_ANY;
    return has;
  }

  #leftInParts(h: number): number {
    let milli = 0;
    for (const gpu of this.#pool.parts[h] ?? []) {
      if (!this.#pool.isDown(gpu)) milli += this.#pool.gpuLeft[gpu] as number;
    }
    return milli;
  }

  #count(group: number, has: number, by: 1 | -1): void {
    const at = group * COMBINATIONS + has;
    this.hosts[at] = (this.hosts[at] as number) + by;
  }
}

export class PoolShortfall {
  readonly #pool: Pool;
  readonly #hasBoxes: (group: number, demand: Demand) => boolean;
  readonly #keeps: boolean;
  readonly #tallies = new Map<Demand, Tally>();
  readonly #log: ChangeLog;

  /** For demands of so many kinds. `hasBoxes`: whether boxes of a group have the GPUs of a demand. */
  constructor(pool: Pool, kinds: number, hasBoxes: (group: number, demand: Demand) => boolean) {
    this.#pool = pool;
    this.#hasBoxes = hasBoxes;
    this.#keeps = kinds * pool.hostCount <= MOST_KEPT;
    this.#log = new ChangeLog(pool.hostCount);
    pool.watch({ hostChanged: (h) => this.#log.changed(h) });
  }

  /** Of a demand that has just found no place. */
  whyNot(demand: Demand): UnplacedReason {
    const tally = this.#tally(demand);
    const pool = this.#pool;
    let free = demand.gpus === 0;
    let slotMissing = false;
    let besideMilli = 0;
    for (let group = 0; group < pool.groups; group++) {
      const inBoxes = this.#hasBoxes(group, demand);
      const ofAnyModel = inBoxes || this.#hasBoxes(group, tally.anyModel);
      if (ofAnyModel && !inBoxes && tally.hostsWith(group, ROOM | SLOTS) > 0) return 'model';
      if (tally.hostsWith(group, ROOM | SHARES_ANY) > 0) return 'model';
      if (inBoxes && tally.hostsWith(group, ROOM, SLOTS) > 0) slotMissing = true;
      free ||= inBoxes || tally.hostsWith(group, SHARES) > 0;
      besideMilli += tally.milli[group] as number;
      if (tally.hostsWith(group, ROOM) === 0) continue;
      for (const model of pool.accepted(demand)) {
        besideMilli += pool.shelves.free(group, model) * WHOLE_GPU;
      }
    }
    if (slotMissing) return 'no-slot';
    if (free) return 'no-cpu-beside-gpu';
    return besideMilli >= askedMilli(demand) ? 'fragmentation' : 'no-gpu-beside-cpu';
  }

  #tally(demand: Demand): Tally {
    let tally = this.#tallies.get(demand);
    if (tally === undefined) {
      tally = new Tally(this.#pool, demand);
      if (this.#keeps) this.#tallies.set(demand, tally);
    }
    tally.read = this.#log.catchUp(tally.read, tally.look);
    return tally;
  }
}
