/** The pooled design: CPU and memory of one host, GPUs of the boxes it reaches. */
import type { Prng } from '#base/prng';
import { type BoxChoice, chooseBoxes } from './box-choice.ts';
import { ChangeLog } from './change-log.ts';
import { askedMilli, type Demand, isShared, WHOLE_GPU } from './demand.ts';
import type { Design, Placement, Unit, Units, UnplacedReason } from './design.ts';
import { HostTallies } from './host-tallies.ts';
import { Pool } from './pool.ts';
import { fgdInPool } from './pool-fgd.ts';
import type { PoolHardware } from './pool-hardware.ts';
import { placementInPool } from './pool-placement.ts';
import {
  bestFitInPool,
  dotProductInPool,
  firstFitInPool,
  gpuClusteringInPool,
  gpuPackingInPool,
  type MakePoolPolicy,
  type PoolPolicy,
  randomInPool,
} from './pool-policy.ts';
import { NO_ROOM, Ranks } from './ranks.ts';
import { spares } from './spares.ts';
import { shuffled, type Workload } from './workload.ts';

/** The policies by the names they are asked for. `placement` is the manager's own. */
export const POOL_POLICIES: Readonly<Record<string, MakePoolPolicy>> = {
  random: randomInPool,
  'dot-product': dotProductInPool,
  'gpu-clustering': gpuClusteringInPool,
  'gpu-packing': gpuPackingInPool,
  'best-fit': bestFitInPool,
  fgd: fgdInPool,
  'first-fit': firstFitInPool,
  placement: placementInPool,
};

interface Found {
  readonly host: number;
  readonly score: number;
}

interface Best extends Found {
  /** The boxes it takes GPUs from; `undefined` for a part of a GPU the host shares out already. */
  readonly boxes: BoxChoice | undefined;
}

const NO_BOX: BoxChoice = { score: 0, takes: [] };

/** Kinds times hosts; beyond it rankings would take gigabytes, and hosts are looked at one by one. */
const MOST_RANKS = 30_000_000;

export class PoolDesign implements Design {
  readonly name = 'pool';
  readonly pool: Pool;
  readonly capacityMilli: number;
  readonly #policy: PoolPolicy;
  /** The kinds that are ranked: none if the policy's scores do not last. */
  readonly #ranked: ReadonlySet<Demand>;
  /** By group, what its hosts come to; both read the log of their changes. */
  readonly #hosts: readonly { log: ChangeLog; ranks: Ranks; tallies: HostTallies }[];
  readonly #groupRanks: Ranks;
  /** Kinds as they are if any model would do; kept while rankings are small enough to be. */
  readonly #anyModels = new Map<Demand, Demand>();

  /** The order of hosts is drawn from `prng`, for a whole run: among equals the first wins. */
  constructor(hardware: PoolHardware, workload: Workload, makePolicy: MakePoolPolicy, prng: Prng) {
    const order = shuffled(hardware.hosts.keys(), prng);
    const hosts = order.map((at) => hardware.hosts[at] as PoolHardware['hosts'][number]);
    this.pool = new Pool({ ...hardware, hosts });
    this.capacityMilli = this.pool.capacityMilli;
    this.#policy = makePolicy({ pool: this.pool, workload, prng });
    const { pool } = this;
    const isSmall = workload.kinds.length * pool.hostCount <= MOST_RANKS;
    this.#ranked = new Set(this.#policy.keepsHosts && isSmall ? workload.kinds : []);
    for (const kind of isSmall ? workload.kinds : []) {
      this.#anyModels.set(kind, kind.models.length === 0 ? kind : { ...kind, models: [] });
    }
    this.#hosts = pool.hostsOf.map((members) => {
      const log = new ChangeLog(members.length);
      const ranks = new Ranks(members.length, log, (place, demand, shares) =>
        this.#scoreHost(members[place] as number, demand, shares),
      );
      return { log, ranks, tallies: new HostTallies(pool, members, log) };
    });
    const groupLog = new ChangeLog(pool.groups);
    this.#groupRanks = new Ranks(
      pool.groups,
      groupLog,
      (group, demand) => this.#bestOf(group, demand)?.score ?? NO_ROOM,
    );
    pool.watch({
      hostChanged: (h) => {
        const group = pool.hostGroup[h] as number;
        this.#hosts[group]?.log.changed(pool.placeInGroup[h] as number);
        groupLog.changed(group);
      },
      groupChanged: (group) => groupLog.changed(group),
    });
  }

  place(demand: Demand): Placement | undefined {
    const best = this.#best(demand);
    if (best === undefined) return undefined;
    const placement = this.pool.take(best.host, demand, this.#gpus(best, demand));
    this.#policy.moved?.(placement, 1);
    return placement;
  }

  release(placement: Placement): void {
    this.#policy.moved?.(placement, -1);
    this.pool.give(placement);
  }

  retake(placement: Placement): void {
    this.pool.retake(placement);
    this.#policy.moved?.(placement, 1);
  }

  get units(): Units {
    const { pool } = this;
    const gpus = pool.hardware.boxes.flatMap(({ gpus: has }, b) =>
      Array.from({ length: has }, (_, gpu) => b * pool.stride + gpu),
    );
    return { gpus, servers: pool.hostCount, boxes: pool.boxCount };
  }

  setFailed({ kind, index }: Unit, failed: boolean): void {
    if (kind === 'gpu') this.pool.setGpuDown(index, failed);
    else if (kind === 'box') this.pool.setBoxDown(index, failed);
    else this.pool.setHostDown(index, failed);
  }

  hits({ kind, index }: Unit, { host, gpus }: Placement): boolean {
    if (kind === 'server') return host === index;
    return gpus.some((gpu) => (kind === 'gpu' ? gpu : this.pool.boxOf(gpu)) === index);
  }

  rebind(placement: Placement): Placement | undefined {
    const gpus = spares(this.pool, placement);
    if (gpus === undefined) return undefined;
    this.release(placement);
    const moved = { ...placement, gpus };
    this.retake(moved);
    return moved;
  }

  whyNot(demand: Demand): UnplacedReason {
    const { pool } = this;
    const kept = this.#anyModels.get(demand);
    const anyModel = kept ?? { ...demand, models: [] };
    let free = demand.gpus === 0;
    let slotMissing = false;
    let besideMilli = 0;
    for (const [group, { tallies }] of this.#hosts.entries()) {
      const inBoxes = this.#boxes(group, demand) !== undefined;
      const ofAnyModel = inBoxes || this.#boxes(group, anyModel) !== undefined;
      const tally = tallies.of(demand, anyModel, kept !== undefined);
      if (ofAnyModel && !inBoxes && tally.withSlots > 0) return 'model';
      if (tally.sharesAnyModel > 0) return 'model';
      free ||= inBoxes || tally.shares > 0;
      slotMissing ||= inBoxes && tally.withoutSlots > 0;
      besideMilli += tally.besideMilli;
      if (tally.room === 0) continue;
      for (const model of pool.accepted(demand)) {
        besideMilli += pool.shelves.free(group, model) * WHOLE_GPU;
      }
    }
    if (slotMissing) return 'no-slot';
    if (free) return 'no-cpu-beside-gpu';
    return besideMilli >= askedMilli(demand) ? 'fragmentation' : 'no-gpu-beside-cpu';
  }

  #best(demand: Demand): Best | undefined {
    const { groups } = this.pool;
    if (groups > 1 && this.#ranked.has(demand)) {
      const winner = this.#groupRanks.best(demand, false);
      return winner && this.#bestOf(winner.place, demand);
    }
    let best: Best | undefined;
    for (let group = 0; group < groups; group++) {
      const here = this.#bestOf(group, demand);
      if (here !== undefined && here.score > (best?.score ?? NO_ROOM)) best = here;
    }
    return best;
  }

  #bestOf(group: number, demand: Demand): Best | undefined {
    const sharing = isShared(demand) ? this.#bestHost(group, demand, true) : undefined;
    const boxes = this.#boxes(group, demand);
    const binding = boxes && this.#bestHost(group, demand, false);
    const shared = sharing && {
      host: sharing.host,
      score: sharing.score + this.#scoreGroup(group, demand, true),
      boxes: undefined,
    };
    if (boxes === undefined || binding === undefined) return shared;
    const score = binding.score + boxes.score + this.#scoreGroup(group, demand, false);
    return shared !== undefined && shared.score >= score
      ? shared
      : { host: binding.host, score, boxes };
  }

  #scoreGroup(group: number, demand: Demand, shares: boolean): number {
    return this.#policy.scoreGroup?.(group, demand, shares) ?? 0;
  }

  #boxes(group: number, demand: Demand): BoxChoice | undefined {
    return demand.gpus === 0 ? NO_BOX : chooseBoxes(this.pool, this.#policy, group, demand);
  }

  #gpus({ host, boxes }: Best, demand: Demand): readonly number[] {
    if (demand.gpus === 0) return [];
    if (boxes === undefined) return [this.pool.tightestPart(host, demand)];
    const chosen = this.#policy.gpusFor?.(host, demand);
    return chosen ?? boxes.takes.flatMap(({ box, take }) => this.pool.freeGpus(box, take));
  }

  #bestHost(group: number, demand: Demand, shares: boolean): Found | undefined {
    const hosts = this.pool.hostsOf[group] as readonly number[];
    if (this.#ranked.has(demand)) {
      const best = this.#hosts[group]?.ranks.best(demand, shares);
      return best && { host: hosts[best.place] as number, score: best.score };
    }
    let host = -1;
    let score = NO_ROOM;
    for (const h of hosts) {
      const here = this.#scoreHost(h, demand, shares);
      if (here > score) [host, score] = [h, here];
    }
    return host < 0 ? undefined : { host, score };
  }

  #scoreHost(h: number, demand: Demand, shares: boolean): number {
    const { pool } = this;
    if (!pool.hasHostRoom(h, demand)) return NO_ROOM;
    const has = shares
      ? pool.tightestPart(h, demand) >= 0
      : (pool.slotsLeft[h] as number) >= demand.gpus;
    return has ? this.#policy.scoreHost(h, demand, shares) : NO_ROOM;
  }
}
