/**
 * A model of placement that tries everything: no index, no summaries, no matching, nothing shared with the
 * code it is held against.
 */
import type { Demand, Plan, Reason } from '#placement/demand';
import type {
  BarFacts,
  HostFacts,
  HostSlotFacts,
  NodeFacts,
  PathFacts,
  WindowFacts,
} from '#placement/facts';
import { MIB, type SmallPool } from './small-pool.ts';

export function hostOf(pool: SmallPool, demand: Demand): HostFacts | undefined {
  return pool.hosts.find((host) => host.id === demand.host);
}

/** Tries every place of every BAR. Sizes and windows are whole MiB. */
export function fitsByTrial(bars: readonly BarFacts[], slot: HostSlotFacts): boolean {
  const placeAll = (sizes: readonly number[], window: WindowFacts, end: number): boolean => {
    const taken: [number, number][] = [];
    const place = (at: number): boolean => {
      const size = sizes[at];
      if (size === undefined) return true;
      for (let from = window.base; from + size <= end; from += MIB) {
        if (from % size !== 0) continue;
        if (taken.some(([a, b]) => from < b && a < from + size)) continue;
        taken.push([from, from + size]);
        if (place(at + 1)) return true;
        taken.pop();
      }
      return false;
    };
    return place(0);
  };
  const high = bars.filter((one) => one.prefetchable && one.is64);
  const low = bars.filter((one) => !high.includes(one));
  const { nonPrefetchable, prefetchable } = slot;
  return (
    placeAll(
      low.map((one) => one.sizeBytes),
      nonPrefetchable,
      Math.min(nonPrefetchable.limit + 1, 2 ** 32),
    ) &&
    placeAll(
      high.map((one) => one.sizeBytes),
      prefetchable,
      prefetchable.limit + 1,
    )
  );
}

function goodPath(path: PathFacts, { maxRttNs }: Demand): boolean {
  return path.up && (maxRttNs === undefined || (path.rttNs !== 0 && path.rttNs <= maxRttNs));
}

/** The first reason that rules the GPU node out by itself, before anything is said of its box. */
export function reasonByHand(pool: SmallPool, demand: Demand, node: NodeFacts): Reason | undefined {
  const box = pool.boxes.find((one) => one.id === node.box);
  const host = hostOf(pool, demand);
  const paths = host?.paths.filter((path) => path.box === node.box) ?? [];
  const free = host?.slots.filter((slot) => slot.free) ?? [];
  const slots = free.length > 0 ? free : (host?.slots ?? []);
  if (node.state === 'gone') return 'gone';
  if (box?.reachable !== true) return 'unreachable';
  if (node.state !== 'free') return node.state;
  if (demand.model !== undefined && demand.model !== node.model) return 'model';
  if (demand.memoryBytes !== undefined && node.memoryBytes < demand.memoryBytes) return 'memory';
  if (demand.boxKind !== undefined && demand.boxKind !== box.kind) return 'box-kind';
  if (paths.length === 0) return 'no-path';
  if (paths.every((path) => !path.up)) return 'path-down';
  if (!paths.some((path) => goodPath(path, demand))) return 'round-trip';
  return slots.some((slot) => fitsByTrial(node.bars, slot)) ? undefined : 'window';
}

/** Every set of `gpus` GPU nodes that satisfies the demand, found by trying all of them. */
export function solutions(pool: SmallPool, demand: Demand): NodeFacts[][] {
  const host = hostOf(pool, demand);
  if (host?.reachable !== true) return [];
  const usable = pool.nodes.filter((node) => reasonByHand(pool, demand, node) === undefined);
  const free = host.slots.filter((slot) => slot.free);
  const found: NodeFacts[][] = [];
  const choose = (from: number, chosen: NodeFacts[]): void => {
    if (chosen.length === demand.gpus) {
      if (together(chosen, demand) && haveSlots(chosen, free)) found.push([...chosen]);
      return;
    }
    for (const [at, node] of usable.entries()) {
      if (at >= from) choose(at + 1, [...chosen, node]);
    }
  };
  choose(0, []);
  return found;
}

function together(nodes: readonly NodeFacts[], demand: Demand): boolean {
  const [first] = nodes;
  const oneBox = nodes.every((node) => node.box === first?.box);
  const oneGroup =
    first?.nvlinkGroup !== '' && nodes.every((node) => node.nvlinkGroup === first?.nvlinkGroup);
  return (!demand.sameBox || oneBox) && (!demand.nvlink || (oneBox && oneGroup));
}

function haveSlots(nodes: readonly NodeFacts[], slots: readonly HostSlotFacts[]): boolean {
  const [first, ...others] = nodes;
  if (first === undefined) return true;
  return slots.some(
    (slot) =>
      fitsByTrial(first.bars, slot) &&
      haveSlots(
        others,
        slots.filter((one) => one !== slot),
      ),
  );
}

/** What a plan breaks, as words; empty when it is a complete answer in this pool. */
export function violations(pool: SmallPool, { demand, picks }: Plan): string[] {
  const found: string[] = [];
  const check = (holds: boolean, name: string): void => {
    if (!holds) found.push(name);
  };
  const host = hostOf(pool, demand);
  check(host?.reachable === true, 'host reachable');
  check(picks.length === demand.gpus, 'complete');
  const boxSlots = picks.map((pick) => `${pick.box}/${pick.slot}`);
  check(new Set(boxSlots).size === picks.length, 'no box slot twice');
  check(new Set(picks.map((pick) => pick.hostSlot)).size === picks.length, 'no host slot twice');
  const nodes: NodeFacts[] = [];
  for (const pick of picks) {
    const node = pool.nodes.find((one) => one.box === pick.box && one.slot === pick.slot);
    const slot = host?.slots.find((one) => one.slot === pick.hostSlot);
    const path = host?.paths.find((one) => one.box === pick.box && one.path === pick.path);
    check(node?.uuid === pick.uuid && node.model === pick.model, 'the same GPU node');
    check(slot?.free === true, 'host slot free');
    check(path !== undefined && goodPath(path, demand), 'path up and near');
    if (node === undefined) continue;
    nodes.push(node);
    check(reasonByHand(pool, demand, node) === undefined, 'satisfies the demand');
    check(slot !== undefined && fitsByTrial(node.bars, slot), 'fits its slot');
  }
  check(together(nodes, demand), 'together');
  return found;
}
