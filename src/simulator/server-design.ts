/** The server-centric design: a request takes CPU, memory and GPUs of one machine. */
import { assert } from '#base/assert';
import type { Prng } from '#base/prng';
import { askedMilli, type Demand, isShared, type Machine } from './demand.ts';
import type { Design, Placement, Unit, Units, UnplacedReason } from './design.ts';
import { fgd } from './fgd.ts';
import {
  bestFit,
  dotProduct,
  firstFit,
  gpuClustering,
  gpuPacking,
  type MakeServerPolicy,
  random,
  type ServerPolicy,
} from './server-policy.ts';
import { Servers } from './servers.ts';
import { shuffled, type Workload } from './workload.ts';

/** The policies by the names they are asked for. */
export const SERVER_POLICIES: Readonly<Record<string, MakeServerPolicy>> = {
  random,
  'dot-product': dotProduct,
  'gpu-clustering': gpuClustering,
  'gpu-packing': gpuPacking,
  'best-fit': bestFit,
  fgd,
  'first-fit': firstFit,
};

export class ServerDesign implements Design {
  readonly name = 'server';
  readonly servers: Servers;
  readonly capacityMilli: number;
  readonly #policy: ServerPolicy;

  /** The order of machines is drawn from `prng`, for a whole run: among equals the first wins. */
  constructor(
    machines: readonly Machine[],
    workload: Workload,
    makePolicy: MakeServerPolicy,
    prng: Prng,
  ) {
    const order = shuffled(machines.keys(), prng);
    this.servers = new Servers(order.map((at) => machines[at] as Machine));
    this.capacityMilli = this.servers.capacityMilli;
    this.#policy = makePolicy({ servers: this.servers, workload, prng });
  }

  place(demand: Demand): Placement | undefined {
    const { servers } = this;
    let best = -1;
    let bestScore = -Infinity;
    for (let s = 0; s < servers.count; s++) {
      if (!servers.fits(s, demand)) continue;
      const score = this.#policy.score(s, demand);
      if (score > bestScore) {
        best = s;
        bestScore = score;
      }
    }
    if (best < 0) return undefined;
    return servers.take(best, demand, isShared(demand) ? this.#policy.gpuFor(best, demand) : -1);
  }

  release(placement: Placement): void {
    this.servers.give(placement);
  }

  retake(placement: Placement): void {
    this.servers.retake(placement);
  }

  get units(): Units {
    const { machines, stride, count } = this.servers;
    const gpus = machines.flatMap(({ gpus: has }, s) =>
      Array.from({ length: has }, (_, gpu) => s * stride + gpu),
    );
    return { gpus, servers: count, boxes: 0 };
  }

  /** A GPU cannot be replaced while its server runs: the whole server is out. */
  setFailed(unit: Unit, failed: boolean): void {
    this.servers.setDown(this.#serverOf(unit), failed);
  }

  hits(unit: Unit, placement: Placement): boolean {
    return placement.host === this.#serverOf(unit);
  }

  rebind(): undefined {
    return undefined;
  }

  whyNot(demand: Demand): UnplacedReason {
    const { servers } = this;
    let free = false;
    let besideMilli = 0;
    for (let s = 0; s < servers.count; s++) {
      const room = servers.hasHostRoom(s, demand);
      const gpus = servers.hasGpus(s, demand);
      if (room && gpus) return 'model';
      if (!servers.accepts(s, demand)) continue;
      free ||= gpus;
      if (room) besideMilli += servers.leftSum[s] as number;
    }
    if (free || demand.gpus === 0) return 'no-cpu-beside-gpu';
    return besideMilli >= askedMilli(demand) ? 'fragmentation' : 'no-gpu-beside-cpu';
  }

  #serverOf({ kind, index }: Unit): number {
    assert(kind !== 'box', 'servers have no boxes');
    return kind === 'gpu' ? Math.floor(index / this.servers.stride) : index;
  }
}
