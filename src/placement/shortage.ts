/** What there is for a demand that cannot be met, in numbers: no GPU node is looked at one by one. */
import type { BoxEntry, Lot, NodeClass } from './box-entry.ts';
import { visitGroups } from './box-scan.ts';
import { REASONS, type Reason } from './demand.ts';
import type { DemandView } from './demand-view.ts';
import type { HostEntry } from './host-entry.ts';
import { TALLIES } from './pool-index.ts';
import { SlotMatching } from './slot-matching.ts';

export interface Shortage {
  /** GPU nodes by the first reason that rules them out. */
  readonly counts: Record<Reason, number>;
  /** That would do by themselves. */
  readonly usable: number;
  /** Of those, as many as can be had at the same time; with `sameBox` or `nvlink` all the same. */
  readonly together: number;
  /** The most that one box (with `nvlink` one group) has; 0 unless one must have all. */
  readonly mostInOne: number;
  /** Of other models than the one asked for: free ones. */
  readonly otherModels: ReadonlyMap<string, number>;
  /** The most that those with too little memory have. */
  readonly lessMemoryBytes: number;
  /** Over paths beyond the limit: Infinity when none was measured. */
  readonly lowestRttNs: number;
  /** One of those that fit no free slot. */
  readonly misfit: NodeClass | undefined;
}

/** Costs what the host's paths and the pool's classes cost. */
export function shortageOf(view: DemandView, host: HostEntry): Shortage {
  const { index, demand } = view;
  const counts = Object.fromEntries(REASONS.map((reason) => [reason, 0])) as Record<Reason, number>;
  for (const tally of TALLIES) counts[tally] = index.tally(tally);
  const otherModels = new Map<string, number>();
  let lessMemoryBytes = 0;
  // Free, reachable, and of a class and kind that would do: those behind no path are what is left.
  let wanted = 0;
  for (const nodeClass of index.classes()) {
    const { free, model, memoryBytes } = nodeClass;
    const all = free.pcie + free.nvswitch;
    if (all === 0) continue;
    const { reason } = view.classView(nodeClass);
    if (reason === 'model') otherModels.set(model, (otherModels.get(model) ?? 0) + all);
    if (reason === 'memory') lessMemoryBytes = Math.max(lessMemoryBytes, memoryBytes);
    if (reason !== undefined) {
      counts[reason] += all;
      continue;
    }
    const ofKind = demand.boxKind === undefined ? all : free[demand.boxKind];
    counts['box-kind'] += all - ofKind;
    wanted += ofKind;
  }

  let behindPaths = 0;
  let usable = 0;
  let mostInOne = 0;
  let lowestRttNs = Infinity;
  let misfit: NodeClass | undefined;
  const fromOne = demand.sameBox || demand.nvlink;
  const matching = new SlotMatching();
  const { paths } = host;
  const { boxNumbers, table } = paths;
  for (let first = 0, end = 0; wanted > 0 && first < boxNumbers.length; first = end) {
    end = paths.endOfBox(first);
    const number = boxNumbers[first] ?? 0;
    if (table.offered[number] === 0) continue;
    const box = table.at(number);
    if (!view.acceptsKind(box)) continue;
    let free = 0;
    let fitting = 0;
    for (const lot of box.lots) {
      const { reason, shape } = view.classView(lot.nodeClass);
      if (lot.free === 0 || reason !== undefined) continue;
      free += lot.free;
      if (shape.fitting.length > 0) fitting += lot.free;
    }
    if (free === 0) continue;
    behindPaths += free;
    const best = view.bestPath(paths, first, end);
    const rttNs = best < 0 ? 0 : (paths.rttNs[best] ?? 0);
    if (best < 0) {
      counts['path-down'] += free;
    } else if (!view.withinRtt(rttNs)) {
      counts['round-trip'] += free;
      if (rttNs > 0) lowestRttNs = Math.min(lowestRttNs, rttNs);
    } else {
      if (fitting < free) {
        counts.window += free - fitting;
        misfit ??= box.lots.find((lot) => isMisfit(view, lot))?.nodeClass;
      }
      usable += fitting;
      if (fromOne) mostInOne = Math.max(mostInOne, mostTogether(view, box));
      else for (const lot of box.lots) view.addAll(matching, lot);
    }
  }
  counts['no-path'] = wanted - behindPaths;
  if (fromOne) counts.fragmented = usable;
  return {
    counts,
    usable,
    together: fromOne ? usable : matching.size,
    mostInOne,
    otherModels,
    lessMemoryBytes,
    lowestRttNs,
    misfit,
  };
}

function isMisfit(view: DemandView, lot: Lot): boolean {
  const { reason, shape } = view.classView(lot.nodeClass);
  return lot.free > 0 && reason === undefined && shape.fitting.length === 0;
}

/** The most GPU nodes that a demand can have of this box, in one of its groups with `nvlink`. */
function mostTogether(view: DemandView, box: BoxEntry): number {
  if (!view.demand.nvlink) return view.rank(box.lots);
  let most = 0;
  visitGroups(box.lots, (first, end) => {
    most = Math.max(most, view.rank(box.lots, first, end));
  });
  return most;
}
