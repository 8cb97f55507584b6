/** Pools small enough to try everything, and what may be asked of them. */
import type { Demand } from '#placement/demand';
import type {
  BarFacts,
  BoxFacts,
  HostFacts,
  HostSlotFacts,
  NodeFacts,
  PathFacts,
  WindowFacts,
} from '#placement/facts';
import { PoolIndex } from '#placement/pool-index';
import { fc } from './properties.ts';

export interface SmallPool {
  readonly boxes: readonly BoxFacts[];
  readonly nodes: readonly NodeFacts[];
  readonly hosts: readonly HostFacts[];
}

export const MIB = 2 ** 20;
const GIB = 2 ** 30;

/** `a` to `b` MiB behind `from`, the end not included. */
export function windowOf(from: number, a: number, b: number): WindowFacts {
  return { base: from + a * MIB, limit: from + b * MIB - 1 };
}

export function bar(mib: number, kind: 'low' | 'low64' | 'low-prefetchable' | 'high'): BarFacts {
  return {
    sizeBytes: mib * MIB,
    prefetchable: kind === 'high' || kind === 'low-prefetchable',
    is64: kind === 'high' || kind === 'low64',
  };
}

const LOW = 0xe000_0000;
const HIGH = 2 ** 38;

const anyLowWindow = fc.constantFrom(
  windowOf(LOW, 0, 4),
  windowOf(LOW, 1, 4),
  windowOf(LOW, 16, 24),
  windowOf(LOW, 33, 34),
);
const anyHighWindow = fc.constantFrom(
  windowOf(HIGH, 0, 8),
  windowOf(HIGH, 3, 8),
  windowOf(HIGH, 16, 32),
  windowOf(HIGH, 31, 49),
  { base: HIGH, limit: HIGH - 1 },
);
const anyBars = fc.constantFrom<readonly BarFacts[]>(
  [bar(1, 'low')],
  [bar(1, 'low'), bar(8, 'high')],
  [bar(2, 'low-prefetchable'), bar(4, 'high'), bar(4, 'high')],
  [bar(4, 'low64'), bar(2, 'high')],
  [bar(1, 'low'), bar(16, 'high')],
);

/** In tight hosts few slots take much. */
function anyHostSlot(slot: number, tight: boolean): fc.Arbitrary<HostSlotFacts> {
  return fc.record({
    slot: fc.constant(slot),
    free: mostly(8, true, false),
    nonPrefetchable: tight ? anyLowWindow : fc.constant(windowOf(LOW, 0, 8)),
    prefetchable: tight ? anyHighWindow : fc.constant(windowOf(HIGH, 0, 32)),
  });
}

/** `usual` as `weight` to 1. */
function mostly<T>(weight: number, usual: T, ...others: readonly T[]): fc.Arbitrary<T> {
  return fc.oneof(
    { weight, arbitrary: fc.constant(usual) },
    { weight: 1, arbitrary: fc.constantFrom(...others) },
  );
}

/** Of `count` numbered things most. */
function most<T>(count: number, one: (number: number) => fc.Arbitrary<T>): fc.Arbitrary<T[]> {
  const present = Array.from({ length: count }, (_, number) =>
    fc.oneof(
      { weight: 6, arbitrary: one(number) },
      { weight: 1, arbitrary: fc.constant(undefined) },
    ),
  );
  return fc.tuple(...present).map((all) => all.filter((each) => each !== undefined));
}

export function anyNode(box: string, slot: number): fc.Arbitrary<NodeFacts> {
  return fc.record({
    box: fc.constant(box),
    slot: fc.constant(slot),
    uuid: fc.constantFrom(`GPU-${box}-${slot}`, `GPU-${box}-${slot}-other`),
    model: mostly(4, 'A100', 'H100'),
    memoryBytes: mostly(4, 40 * GIB, 80 * GIB),
    nvlinkGroup: fc.constantFrom('g1', 'g1', 'g1', 'g2', ''),
    bars: anyBars,
    state: mostly<NodeFacts['state']>(5, 'free', 'bound', 'scrubbing', 'quarantined', 'gone'),
  });
}

export function anyBox(id: string): fc.Arbitrary<BoxFacts> {
  return fc.record({
    id: fc.constant(id),
    kind: fc.constantFrom<BoxFacts['kind']>('pcie', 'nvswitch'),
    reachable: mostly(12, true, false),
  });
}

export function anyPath(box: string, path: string): fc.Arbitrary<PathFacts> {
  return fc.record({
    box: fc.constant(box),
    path: fc.constant(path),
    up: mostly(5, true, false),
    rttNs: fc.constantFrom(0, 1000, 2000, 5000),
  });
}

export function anyHost(id: string, boxes: readonly string[]): fc.Arbitrary<HostFacts> {
  return fc.record({
    id: fc.constant(id),
    reachable: mostly(20, true, false),
    slots: fc
      .record({ count: mostly(4, 4, 0, 1, 2, 3), tight: fc.boolean() })
      .chain(({ count, tight }) =>
        fc.tuple(...Array.from({ length: count }, (_, slot) => anyHostSlot(slot, tight))),
      ),
    paths: fc
      .tuple(...boxes.map((box) => most(2, (path) => anyPath(box, `p${path}`))))
      .map((lists) => lists.flat()),
  });
}

export const SMALL_BOXES = ['b1', 'b2', 'b3'] as const;
export const SMALL_HOSTS = ['h1', 'h2'] as const;

/** At most 3 boxes of 4 GPU nodes, 2 hosts of 4 slots, 2 paths between each of them. */
export const anyPool: fc.Arbitrary<SmallPool> = most(SMALL_BOXES.length, (number) => {
  const id = SMALL_BOXES[number] ?? '';
  return fc.record({ box: anyBox(id), nodes: most(4, (slot) => anyNode(id, slot)) });
}).chain((boxes) =>
  fc.record({
    boxes: fc.constant(boxes.map(({ box }) => box)),
    nodes: fc.constant(boxes.flatMap(({ nodes }) => nodes)),
    // Paths may lead to boxes that are not there.
    hosts: fc.tuple(...SMALL_HOSTS.map((id) => anyHost(id, SMALL_BOXES))),
  }),
);

/** Every combination of constraints, those that ask for nothing more often. */
export const anyDemand: fc.Arbitrary<Demand> = fc.record({
  gpus: fc.constantFrom(1, 2, 2, 3, 3, 4),
  host: mostly(20, 'h1', 'h2', 'h9'),
  model: mostly<string | undefined>(5, undefined, 'A100', 'H100', 'V100'),
  memoryBytes: mostly<number | undefined>(5, undefined, 40 * GIB, 80 * GIB),
  sameBox: mostly(2, false, true),
  nvlink: mostly(3, false, true),
  boxKind: mostly<Demand['boxKind']>(5, undefined, 'pcie', 'nvswitch'),
  maxRttNs: mostly<number | undefined>(5, undefined, 1000, 3000),
});

export function indexOf(pool: SmallPool): PoolIndex {
  const index = new PoolIndex();
  for (const box of pool.boxes) index.setBox(box);
  for (const node of pool.nodes) index.setNode(node);
  for (const host of pool.hosts) index.setHost(host);
  return index;
}
