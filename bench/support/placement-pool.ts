/** A pool of the size wanted, from a seed: boxes of 8, hosts of 16 slots, 128 paths a host. */
import type { Prng } from '#base/prng';
import type { BarFacts, BoxFacts, HostFacts, HostSlotFacts, NodeFacts } from '#placement/facts';
import { PoolIndex } from '#placement/pool-index';

const MIB = 2 ** 20;
const GIB = 2 ** 30;
export const BOX_NODES = 8;
const HOST_SLOTS = 16;
const PATHS = 128;
export const MODELS = ['A100-SXM4', 'H100-SXM5', 'L40S'] as const;
export const MEMORY_BYTES = [40 * GIB, 80 * GIB] as const;

const BARS: Readonly<Record<string, readonly BarFacts[]>> = {
  'A100-SXM4': bars(64),
  'H100-SXM5': bars(128),
  L40S: bars(64),
};

function bars(gib: number): readonly BarFacts[] {
  return [
    { sizeBytes: 16 * MIB, prefetchable: false, is64: false },
    { sizeBytes: gib * GIB, prefetchable: true, is64: true },
    { sizeBytes: 32 * MIB, prefetchable: true, is64: true },
  ];
}

export interface BenchPool {
  readonly index: PoolIndex;
  readonly boxes: readonly BoxFacts[];
  readonly nodes: readonly NodeFacts[];
  readonly hosts: readonly HostFacts[];
}

/** A host for ten GPU nodes. */
export function benchPool(prng: Prng, gpuNodes: number): BenchPool {
  const index = new PoolIndex();
  const boxes: BoxFacts[] = [];
  const nodes: NodeFacts[] = [];
  for (let number = 0; number < gpuNodes / BOX_NODES; number++) {
    const id = `box-${String(number).padStart(5, '0')}`;
    const kind = prng.chance(0.5) ? 'pcie' : 'nvswitch';
    const box: BoxFacts = { id, kind, reachable: !prng.chance(0.01) };
    boxes.push(box);
    index.setBox(box);
    const model = prng.pick(MODELS);
    const memoryBytes = prng.pick(MEMORY_BYTES);
    // One NVSwitch for all 8, or two groups of 4.
    const groupNodes = prng.chance(0.5) ? BOX_NODES : BOX_NODES / 2;
    for (let slot = 0; slot < BOX_NODES; slot++) {
      const node: NodeFacts = {
        box: id,
        slot,
        uuid: `GPU-${number}-${slot}`,
        model,
        memoryBytes,
        nvlinkGroup: kind === 'pcie' ? '' : `nv${Math.floor(slot / groupNodes)}`,
        bars: BARS[model] ?? [],
        state: 'free',
      };
      nodes.push(node);
      index.setNode(node);
    }
  }
  const hosts: HostFacts[] = [];
  for (let number = 0; number < gpuNodes / 10; number++) {
    const host = anyHost(prng, `host-${String(number).padStart(5, '0')}`, boxes, PATHS);
    hosts.push(host);
    index.setHost(host);
  }
  return { index, boxes, nodes, hosts };
}

/** With paths to as many boxes, anywhere in the pool. */
export function anyHost(
  prng: Prng,
  id: string,
  boxes: readonly BoxFacts[],
  paths: number,
): HostFacts {
  const reached = new Set<BoxFacts>();
  if (paths >= boxes.length) for (const box of boxes) reached.add(box);
  while (reached.size < Math.min(paths, boxes.length)) reached.add(prng.pick(boxes));
  return {
    id,
    reachable: true,
    slots: Array.from({ length: HOST_SLOTS }, (_, slot) => hostSlot(slot)),
    paths: [...reached].map((box) => ({
      box: box.id,
      path: 'lan0',
      up: !prng.chance(0.02),
      rttNs: prng.chance(0.01) ? 0 : prng.between(1500, 12_000),
    })),
  };
}

/** A quarter of the slots take no BAR of 128 GiB. */
function hostSlot(slot: number): HostSlotFacts {
  const low = 0x8000_0000 + slot * 32 * MIB;
  const high = 2 ** 44 + slot * 256 * GIB;
  const highBytes = slot % 4 === 3 ? 128 * GIB : 256 * GIB;
  return {
    slot,
    free: true,
    nonPrefetchable: { base: low, limit: low + 32 * MIB - 1 },
    prefetchable: { base: high, limit: high + highBytes - 1 },
  };
}
