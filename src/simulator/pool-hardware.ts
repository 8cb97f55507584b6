/** Machines taken apart: hosts that keep CPU and memory, boxes that hold the GPUs. */
import { appendTo } from '#base/append-to';
import { type Machine, machineKey } from './demand.ts';

export const REACHES = ['rack', 'pod', 'datacenter'] as const;
export type Reach = (typeof REACHES)[number];

/** Where the GPUs of one request may come from; all of them are of one model in any case. */
export const TOGETHER = ['any', 'same-box', 'nvlink'] as const;
export type Together = (typeof TOGETHER)[number];

export interface PoolShape {
  /** Which boxes a host has paths to: those of its rack, of its pod of racks, or all. */
  readonly reach: Reach;
  /** Virtual slots a host: so many GPUs may be bound to it at a time. */
  readonly slotsPerHost: number;
  readonly gpusPerBox: number;
  /** Machines that stood beside each other in the list were in one rack. */
  readonly machinesPerRack: number;
  readonly racksPerPod: number;
  readonly together: Together;
  /** Models whose boxes have NVLink between all GPUs. */
  readonly nvlinkModels: readonly string[];
}

export const DEFAULT_SHAPE: PoolShape = {
  reach: 'datacenter',
  slotsPerHost: 16,
  gpusPerBox: 8,
  machinesPerRack: 16,
  racksPerPod: 16,
  together: 'any',
  nvlinkModels: [],
};

/** Hosts and boxes of one group reach each other, and nothing else. */
export interface PoolHost {
  readonly cpuMilli: number;
  readonly memoryMib: number;
  readonly slots: number;
  readonly group: number;
}

export interface PoolBox {
  readonly model: string;
  readonly gpus: number;
  readonly nvlink: boolean;
  readonly group: number;
}

export interface PoolHardware {
  readonly hosts: readonly PoolHost[];
  readonly boxes: readonly PoolBox[];
  readonly groups: number;
  readonly gpusPerBox: number;
  readonly together: Together;
}

/** A machine and the place in the list that says which rack it stood in. */
export interface PlacedMachine {
  readonly machine: Machine;
  readonly position: number;
}

/**
 * Every machine of `hosts` becomes a host; the GPUs of `sources`, up to `gpus` of them, go to boxes
 * of one model in the group they stood in. The last box of a model in a group may be partly filled.
 */
export function takeApart(
  hosts: readonly PlacedMachine[],
  sources: readonly PlacedMachine[],
  shape: PoolShape,
  gpus = Infinity,
): PoolHardware {
  const perGroup =
    shape.reach === 'datacenter'
      ? Infinity
      : shape.machinesPerRack * (shape.reach === 'pod' ? shape.racksPerPod : 1);
  const groups = new Map<number, number>();
  const groupOf = (position: number): number => {
    const at = Number.isFinite(perGroup) ? Math.floor(position / perGroup) : 0;
    const group = groups.get(at) ?? groups.size;
    groups.set(at, group);
    return group;
  };
  const poolHosts = hosts.map(({ machine: { cpuMilli, memoryMib }, position }) => ({
    cpuMilli,
    memoryMib,
    slots: shape.slotsPerHost,
    group: groupOf(position),
  }));
  const counts = new Map<string, { model: string; group: number; gpus: number }>();
  let left = gpus;
  for (const { machine, position } of sources) {
    const taken = Math.min(machine.gpus, left);
    left -= taken;
    if (taken === 0) continue;
    const group = groupOf(position);
    const key = `${group},${machine.model}`;
    const entry = counts.get(key) ?? { model: machine.model, group, gpus: 0 };
    entry.gpus += taken;
    counts.set(key, entry);
  }
  const boxes = [...counts.values()].flatMap((entry) => boxesOf(entry, shape));
  const { gpusPerBox, together } = shape;
  return { hosts: poolHosts, boxes, groups: groups.size, gpusPerBox, together };
}

function boxesOf(
  { model, group, gpus }: { readonly model: string; readonly group: number; readonly gpus: number },
  { gpusPerBox, nvlinkModels }: PoolShape,
): PoolBox[] {
  const nvlink = nvlinkModels.includes(model);
  return Array.from({ length: Math.ceil(gpus / gpusPerBox) }, (_, i) => ({
    model,
    gpus: Math.min(gpusPerBox, gpus - i * gpusPerBox),
    nvlink,
    group,
  }));
}

export function placed(machines: readonly Machine[]): PlacedMachine[] {
  return machines.map((machine, position) => ({ machine, position }));
}

/**
 * The machines in an order of which every beginning has nearly the mix of the whole; after the last
 * it starts again, in racks of its own. Equal machines are one kind.
 */
export function spreadMachines(machines: readonly Machine[], count: number): PlacedMachine[] {
  const kinds = new Map<string, PlacedMachine[]>();
  for (const each of placed(machines)) {
    appendTo(kinds, machineKey(each.machine), each);
  }
  const order = [...kinds.values()]
    .flatMap((kind) => kind.map((each, i) => ({ each, at: (i + 0.5) / kind.length })))
    .toSorted((a, b) => a.at - b.at || a.each.position - b.each.position)
    .map(({ each }) => each);
  return Array.from({ length: count }, (_, i) => {
    const { machine, position } = order[i % order.length] as PlacedMachine;
    return { machine, position: position + Math.floor(i / order.length) * machines.length };
  });
}

/** Which indexes have each group. */
export function membersOf(groups: Uint32Array, count: number): number[][] {
  const lists: number[][] = Array.from({ length: count }, () => []);
  for (const [at, group] of groups.entries()) lists[group]?.push(at);
  return lists;
}
