/** What there is for a demand that cannot be met, in numbers: no GPU node is looked at one by one. */
import type { BoxEntry, Lot, NodeClass } from './box-entry.ts';
import { freeOf, groupsOf } from './box-scan.ts';
import { REASONS, type Reason } from './demand.ts';
import { type DemandView, endOfBox } from './demand-view.ts';
import type { HostEntry } from './host-entry.ts';
import { TALLIES } from './pool-index.ts';

export interface Shortage {
  /** GPU nodes by the first reason that rules them out. */
  readonly counts: Record<Reason, number>;
  /** That would do by themselves. */
  readonly usable: number;
  /** Of those, as many as can be had at the same time; with `sameBox` or `nvlink` all the same. */
  readonly together: number;
  /** The most that one box (with `nvlink` one group) has. */
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
  const usableLots: Lot[] = [];
  const { paths } = host;
  for (let first = 0, end = 0; first < paths.size; first = end) {
    end = endOfBox(paths, first);
    const box = paths.boxes[first];
    if (box === undefined || !box.reachable || box.free === 0 || !view.acceptsKind(box)) continue;
    const lots = box.lots.filter(
      (lot) => lot.free > 0 && view.classView(lot.nodeClass).reason === undefined,
    );
    const free = freeOf(lots);
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
      const fitting = lots.filter((lot) => view.accepts(lot));
      if (fitting.length < lots.length) {
        misfit ??= lots.find((lot) => !view.accepts(lot))?.nodeClass;
        counts.window += free - freeOf(fitting);
      }
      usable += freeOf(fitting);
      usableLots.push(...fitting);
      mostInOne = Math.max(mostInOne, mostTogether(view, box));
    }
  }
  counts['no-path'] = wanted - behindPaths;
  const fromOne = demand.sameBox || demand.nvlink;
  if (fromOne) counts.fragmented = usable;
  return {
    counts,
    usable,
    together: fromOne ? usable : view.rank(usableLots),
    mostInOne,
    otherModels,
    lessMemoryBytes,
    lowestRttNs,
    misfit,
  };
}

/** The most GPU nodes that a demand can have of this box, in one of its groups with `nvlink`. */
export function mostTogether(view: DemandView, box: BoxEntry): number {
  if (!view.demand.nvlink) return view.rank(box.lots);
  return Math.max(0, ...groupsOf(box.lots).map((lots) => view.rank(lots)));
}
