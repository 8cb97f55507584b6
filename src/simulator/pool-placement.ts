/**
 * The manager's own placement as a policy: the host as FGD chooses it (the manager is told its host),
 * the GPUs by `#placement/plan`, the code that the manager runs. Hosts of a group reach the same boxes
 * and have windows for any GPU, so one host a group stands for them all in its index, with as many free
 * slots as the one in question.
 */
import { assertDefined } from '#base/assert';
import { plan } from '#placement/plan';
import { PoolIndex } from '#placement/pool-index';
import type { Demand } from './demand.ts';
import type { Pool } from './pool.ts';
import { fgdInPool } from './pool-fgd.ts';
import type { MakePoolPolicy } from './pool-policy.ts';

const PATH = 'lan';
const NO_WINDOW = { base: 1, limit: 0 };
const MEMORY_BYTES = 2 ** 30;

const boxId = (box: number): string => `box-${box}`;
const hostId = (group: number): string => `group-${group}`;

export const placementInPool: MakePoolPolicy = (input) => {
  const { pool } = input;
  const index = indexOf(pool);
  const standIns = new StandIns(pool, index);
  pool.watch({
    gpuChanged: (gpu, state) => {
      const box = pool.boxOf(gpu);
      index.setNodeState(boxId(box), gpu % pool.stride, state === 'broken' ? 'gone' : state);
    },
    boxChanged: (box, down) => index.setBox(boxFacts(pool, box, !down)),
  });
  return {
    ...fgdInPool(input),
    gpusFor: (h, demand) => {
      standIns.setFree(pool.hostGroup[h] as number, pool.slotsLeft[h] as number);
      const gpus = modelsFor(pool, h, demand)
        .map((model) => planned(pool, index, h, demand, model))
        .find((found) => found !== undefined);
      return assertDefined(gpus, 'placement refuses what the pool has');
    },
  };
};

/** Any model at once for a single GPU; otherwise one after another, the one with most free first. */
function modelsFor(pool: Pool, h: number, demand: Demand): (string | undefined)[] {
  if (demand.gpus === 1 && demand.models.length === 0) return [undefined];
  const group = pool.hostGroup[h] as number;
  return pool
    .accepted(demand)
    .toSorted((a, b) => pool.shelves.free(group, b) - pool.shelves.free(group, a))
    .map((model) => pool.models[model]);
}

function planned(
  pool: Pool,
  index: PoolIndex,
  h: number,
  demand: Demand,
  model: string | undefined,
): number[] | undefined {
  const { together } = pool.hardware;
  const answer = plan(index, {
    gpus: demand.gpus,
    host: hostId(pool.hostGroup[h] as number),
    model,
    memoryBytes: undefined,
    sameBox: demand.gpus > 1 && together === 'same-box',
    nvlink: demand.gpus > 1 && together === 'nvlink',
    boxKind: undefined,
    maxRttNs: undefined,
  });
  if (!answer.ok) return undefined;
  return answer.picks.map(({ box, slot }) => Number(box.slice(4)) * pool.stride + slot);
}

function indexOf(pool: Pool): PoolIndex {
  const index = new PoolIndex();
  for (let box = 0; box < pool.boxCount; box++) {
    const model = pool.boxModel[box] as number;
    const nvlink = pool.hasNvlink(model);
    index.setBox(boxFacts(pool, box, true));
    for (let slot = 0; slot < (pool.boxSize[box] as number); slot++) {
      index.setNode({
        box: boxId(box),
        slot,
        uuid: `GPU-${box}-${slot}`,
        model: pool.models[model] ?? '',
        memoryBytes: MEMORY_BYTES,
        nvlinkGroup: nvlink ? boxId(box) : '',
        bars: [],
        state: 'free',
      });
    }
  }
  return index;
}

function boxFacts(pool: Pool, box: number, reachable: boolean) {
  const nvlink = pool.hasNvlink(pool.boxModel[box] as number);
  return { id: boxId(box), kind: nvlink ? 'nvswitch' : 'pcie', reachable } as const;
}

class StandIns {
  readonly #index: PoolIndex;
  readonly #free: number[];

  constructor(pool: Pool, index: PoolIndex) {
    const slots = pool.hardware.hosts.reduce((most, host) => Math.max(most, host.slots), 0);
    this.#index = index;
    this.#free = new Array<number>(pool.groups).fill(slots);
    for (let group = 0; group < pool.groups; group++) {
      index.setHost({
        id: hostId(group),
        reachable: true,
        slots: Array.from({ length: slots }, (_, slot) => slotFacts(slot, true)),
        paths: (pool.boxesOf[group] ?? []).map((box) => ({
          box: boxId(box),
          path: PATH,
          up: true,
          rttNs: 0,
        })),
      });
    }
  }

  setFree(group: number, count: number): void {
    const before = this.#free[group] as number;
    this.#free[group] = count;
    for (let slot = Math.min(before, count); slot < Math.max(before, count); slot++) {
      this.#index.setHostSlot(hostId(group), slotFacts(slot, count > before));
    }
  }
}

function slotFacts(slot: number, free: boolean) {
  return { slot, free, nonPrefetchable: NO_WINDOW, prefetchable: NO_WINDOW };
}
