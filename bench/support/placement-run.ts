/** Fills a pool by planning, and measures plans while others bind and give back. */
import type { Prng } from '#base/prng';
import type { Demand, Pick, Plan } from '#placement/demand';
import type { HostFacts } from '#placement/facts';
import { holds } from '#placement/holds';
import { plan } from '#placement/plan';
import { anyDemand } from './placement-demands.ts';
import type { BenchPool } from './placement-pool.ts';
import { NodeScan } from './placement-scan.ts';
import { now, Spent } from './spent.ts';

interface Grant {
  readonly host: string;
  readonly pick: Pick;
}

/** Of one fill level, one of each a call. */
export interface Measured {
  readonly granted: Spent;
  readonly refused: Spent;
  readonly scans: Spent;
  readonly holds: Spent;
  /** Each a GPU node's state and a virtual slot. */
  readonly updates: Spent;
}

export class PlacementRun {
  readonly pool: BenchPool;
  readonly scan: NodeScan;
  readonly #prng: Prng;
  readonly #hosts = new Map<string, HostFacts>();
  readonly #freeSlots = new Map<string, number>();
  readonly #grants: Grant[] = [];
  /** Of those in reachable boxes. */
  readonly #capacity: number;

  constructor(pool: BenchPool, prng: Prng) {
    this.pool = pool;
    this.#prng = prng;
    this.scan = new NodeScan(pool);
    for (const host of pool.hosts) {
      this.#hosts.set(host.id, host);
      this.#freeSlots.set(host.id, host.slots.length);
    }
    const reachable = new Set(pool.boxes.filter((box) => box.reachable).map((box) => box.id));
    this.#capacity = pool.nodes.filter((node) => reachable.has(node.box)).length;
  }

  /** A host that is not of the pool from the beginning; it is not among those drawn. */
  addHost(host: HostFacts): void {
    this.pool.index.setHost(host);
    this.scan.addHost(host);
    this.#hosts.set(host.id, host);
    this.#freeSlots.set(host.id, host.slots.length);
  }

  /** Up to this part of the GPU nodes, then a fifth of them given back and taken anew. */
  fill(part: number): void {
    const wanted = Math.floor(this.#capacity * part);
    this.#fillTo(wanted);
    for (let times = Math.floor(wanted / 5); times > 0; times--) this.#release();
    this.#fillTo(wanted);
  }

  /**
   * At the level it is filled to: what is granted is bound, and as many others are given back; with
   * `forOneHost` the same ones, for it has no slots for more.
   */
  measure(
    demands: number,
    demandOf: (prng: Prng, host: string) => Demand = anyDemand,
    forOneHost = false,
  ): Measured {
    const level = this.#grants.length;
    const measured: Measured = {
      granted: new Spent(),
      refused: new Spent(),
      scans: new Spent(),
      holds: new Spent(),
      updates: new Spent(),
    };
    for (let count = 0; count < demands; count++) {
      const demand = demandOf(this.#prng, this.#anyHost());
      const begin = now();
      const answer = plan(this.pool.index, demand);
      (answer.ok ? measured.granted : measured.refused).since(begin);
      // The scan takes long: one in eight is enough, all through the run.
      if (count % 8 === 0) {
        const from = now();
        this.scan.scan(demand);
        measured.scans.since(from);
      }
      if (!answer.ok) continue;
      const from = now();
      holds(this.pool.index, answer);
      measured.holds.since(from);
      this.#commit(answer, measured.updates);
      while (this.#grants.length > level) this.#release(measured.updates, forOneHost);
    }
    return measured;
  }

  #fillTo(wanted: number): void {
    // Near the end most demands are refused: those for one GPU node of any kind fill the rest.
    for (let tries = 0; this.#grants.length < wanted && tries < 40 * wanted; tries++) {
      const demand = anyDemand(this.#prng, this.#anyHost());
      const answer = plan(this.pool.index, tries < wanted ? demand : { ...demand, gpus: 1 });
      if (answer.ok && this.#grants.length + answer.picks.length <= wanted) this.#commit(answer);
    }
  }

  /** One with 9 free slots, so that no demand is refused for want of slots, which is quick. */
  #anyHost(): string {
    for (let tries = 0; tries < 1000; tries++) {
      const { id } = this.#prng.pick(this.pool.hosts);
      if ((this.#freeSlots.get(id) ?? 0) >= 9) return id;
    }
    return this.#prng.pick(this.pool.hosts).id;
  }

  #commit({ demand, picks }: Plan, times?: Spent): void {
    for (const pick of picks) {
      this.#set({ host: demand.host, pick }, false, times);
      this.#grants.push({ host: demand.host, pick });
    }
  }

  #release(times?: Spent, newest = false): void {
    const at = newest ? this.#grants.length - 1 : this.#prng.below(this.#grants.length);
    const grant = this.#grants[at];
    const last = this.#grants.pop();
    if (grant === undefined || last === undefined) return;
    if (at < this.#grants.length) this.#grants[at] = last;
    this.#set(grant, true, times);
  }

  #set({ host, pick }: Grant, free: boolean, times?: Spent): void {
    const slot = this.#hosts.get(host)?.slots.find((one) => one.slot === pick.hostSlot);
    if (slot === undefined) return;
    const begin = now();
    this.pool.index.setNodeState(pick.box, pick.slot, free ? 'free' : 'bound');
    this.pool.index.setHostSlot(host, { ...slot, free });
    times?.since(begin);
    this.scan.setFree(pick.box, pick.slot, free);
    this.#freeSlots.set(host, (this.#freeSlots.get(host) ?? 0) + (free ? 1 : -1));
  }
}
