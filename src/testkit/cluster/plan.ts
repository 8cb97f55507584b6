/** What a cluster looks like, drawn from its seed before anything happens. */
import type { Prng } from '#base/prng';
import type { BarSize, BoxKind, GpuNodeReport } from '#proto/agent-messages';

export const HOSTS = 10;
export const BOXES = 10;
export const SLOTS_PER_BOX = 4;

const MIB = 2 ** 20;
const GIB = 2 ** 30;

export interface GpuModel {
  readonly name: string;
  readonly memoryBytes: number;
  readonly bars: readonly BarSize[];
}

const bar = (index: number, sizeBytes: number, prefetchable: boolean): BarSize => ({
  index,
  sizeBytes,
  prefetchable,
  is64: prefetchable,
});

export const MODELS: readonly GpuModel[] = [
  {
    name: 'small',
    memoryBytes: 16 * GIB,
    bars: [bar(0, 16 * MIB, false), bar(2, 256 * MIB, true)],
  },
  {
    name: 'middle',
    memoryBytes: 40 * GIB,
    bars: [bar(0, 16 * MIB, false), bar(2, 64 * GIB, true), bar(4, 32 * MIB, true)],
  },
  {
    name: 'large',
    memoryBytes: 80 * GIB,
    bars: [bar(0, 16 * MIB, false), bar(2, 128 * GIB, true), bar(4, 32 * MIB, true)],
  },
];

export interface BoxPlan {
  readonly id: string;
  readonly kind: BoxKind;
  readonly zone: string;
  readonly nodes: readonly (GpuNodeReport | undefined)[];
}

export interface WindowPlan {
  readonly secondaryBus: number;
  readonly nonPrefetchableBase: number;
  readonly nonPrefetchableBytes: number;
  readonly prefetchableBase: number;
  readonly prefetchableBytes: number;
}

export interface HostPlan {
  readonly id: string;
  readonly reach: readonly string[];
  readonly windows: readonly WindowPlan[];
}

export interface ClusterPlan {
  readonly hosts: readonly HostPlan[];
  readonly boxes: readonly BoxPlan[];
  /** Of the link between `hosts[h]` and `boxes[b]`. */
  readonly rttNs: (host: number, box: number) => number;
  readonly operations: number;
  readonly troubles: number;
  /** Over how long both happen. */
  readonly durationNs: number;
  /** Messages between agents and manager go through their encoding. */
  readonly onWire: boolean;
  /** A message from an agent to the manager, or back, usually takes at most so long. */
  readonly streamDelayNs: number;
  /** Between a call on the manager and the commit of its turn, at most. */
  readonly turnNs: number;
  /** After so long without an answer a side of a stream gives it up. */
  readonly keepAliveNs: number;
  /** The usual time of a reset and scrub. */
  readonly scrubNs: number;
  /** How often a scrub fails. */
  readonly scrubFails: number;
  /** How often a scrub takes longer than any manager waits. */
  readonly scrubHangs: number;
  /** How often a host cannot set a function up. */
  readonly unusable: number;
  /** The usual time a host takes to find a function. */
  readonly enumerationNs: number;
}

export function drawClusterPlan(prng: Prng): ClusterPlan {
  const zones = prng.chance(0.3) ? ['east', 'west'] : [''];
  const rtts = Array.from({ length: HOSTS * BOXES }, () => prng.pick([5e3, 20e3, 100e3, 400e3]));
  return {
    hosts: Array.from({ length: HOSTS }, (_, index) => drawHost(prng, index, zones)),
    boxes: Array.from({ length: BOXES }, (_, index) => drawBox(prng, index, zones)),
    rttNs: (host, box) => rtts[host * BOXES + box] ?? 0,
    operations: prng.between(10, 24),
    troubles: prng.between(4, 14),
    durationNs: prng.pick([5e9, 30e9, 120e9, 400e9]),
    onWire: prng.chance(0.04),
    streamDelayNs: prng.pick([0, 1e6, 20e6, 300e6]),
    turnNs: prng.pick([0, 2e6, 30e6]),
    keepAliveNs: prng.pick([2e9, 10e9]),
    scrubNs: prng.pick([0, 50e6, 2e9]),
    scrubFails: prng.chance(0.3) ? 0.05 : 0,
    scrubHangs: 0.02,
    unusable: prng.chance(0.2) ? 0.05 : 0,
    enumerationNs: prng.pick([5e6, 200e6, 3e9]),
  };
}

function drawHost(prng: Prng, index: number, zones: readonly string[]): HostPlan {
  const slots = prng.between(3, 6);
  return {
    id: `h${index}`,
    reach: zones.length > 1 && prng.chance(0.4) ? [prng.pick(zones)] : [],
    windows: Array.from({ length: slots }, (_, slot) => {
      const isTight = prng.chance(0.15);
      return {
        secondaryBus: slot + 1,
        nonPrefetchableBase: 0x8000_0000 + slot * 32 * MIB,
        nonPrefetchableBytes: 32 * MIB,
        prefetchableBase: (slot + 1) * 2 ** 40,
        prefetchableBytes: isTight ? 32 * GIB : 256 * GIB,
      };
    }),
  };
}

function drawBox(prng: Prng, index: number, zones: readonly string[]): BoxPlan {
  const kind = prng.chance(0.4) ? 'nvswitch' : 'pcie';
  const model = prng.pick(MODELS);
  return {
    id: `b${index}`,
    kind,
    zone: prng.pick(zones),
    nodes: Array.from({ length: SLOTS_PER_BOX }, (_, slot) => {
      if (prng.chance(0.03)) return undefined;
      const { name, memoryBytes, bars } = kind === 'nvswitch' ? model : prng.pick(MODELS);
      const pair = `pair${slot >> 1}`;
      const nvlinkGroup = kind === 'nvswitch' ? 'all' : prng.chance(0.5) ? pair : '';
      return { uuid: `GPU-${index}-${slot}`, model: name, memoryBytes, nvlinkGroup, bars };
    }),
  };
}
