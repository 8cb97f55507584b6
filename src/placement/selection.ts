/**
 * Rank and select. In this order of weight:
 *
 * 1. one box rather than several, and otherwise as few as can be;
 * 2. the box that has the fewest free GPU nodes left afterwards, so that whole ones stay for larger
 *    demands (with `nvlink` first the group that has the fewest left);
 * 3. the fewest left in NVLink groups that are broken up;
 * 4. the lower round trip, what was not measured last;
 * 5. ids.
 */
import { assert } from '#base/assert';
import type { BoxEntry, Lot, NodeEntry } from './box-entry.ts';
import { freeOf, visitBoxes, visitGroups } from './box-scan.ts';
import type { Pick } from './demand.ts';
import { type DemandView, rttRank } from './demand-view.ts';
import type { HostEntry } from './host-entry.ts';
import { assignSlots } from './slot-assignment.ts';
import { SlotMatching } from './slot-matching.ts';
import { takingOrder } from './taking-order.ts';

/** GPU nodes of one box that may be taken together. */
interface Unit {
  readonly box: BoxEntry;
  readonly path: number;
  readonly lots: readonly Lot[];
  /** How many of them the host's slots take. */
  readonly usable: number;
  /** The smaller comes first, number by number. */
  readonly rank: readonly number[];
}

interface Taken {
  readonly unit: Unit;
  readonly node: NodeEntry;
}

/** Which GPU nodes, slots and paths; `undefined` when no set satisfies the demand. */
export function select(view: DemandView, host: HostEntry): Pick[] | undefined {
  const { gpus, sameBox, nvlink } = view.demand;
  const single = bestUnit(view, host);
  if (single !== undefined) {
    const taken = take(view, [single]);
    assert(taken.length === gpus, 'a box that has enough gave too few');
    return picks(view, host, taken);
  }
  if (sameBox || nvlink) return undefined;
  const taken = take(view, severalUnits(view, host));
  return taken.length === gpus ? picks(view, host, taken) : undefined;
}

/** The best of those that have enough by themselves. */
function bestUnit(view: DemandView, host: HostEntry): Unit | undefined {
  return view.demand.nvlink ? bestGroup(view, host) : bestBox(view, host);
}

function bestBox(view: DemandView, host: HostEntry): Unit | undefined {
  const { gpus } = view.demand;
  let best: Unit | undefined;
  visitBoxes(view, host, gpus, (box, path) => {
    const rtt = rttRank(host.paths.rttNs[path] ?? 0);
    const [bestFree = Infinity, bestLeft = Infinity, bestRtt = Infinity] = best?.rank ?? [];
    // Most of those with as few free end here: what follows costs more.
    if (box.free === bestFree && bestLeft === 0 && rtt >= bestRtt) return bestFree;
    const { lots } = box;
    const usable = view.rank(lots);
    if (usable < gpus) return bestFree;
    const { leftBehind } = takingOrder(view, lots, gpus);
    const rank = [box.free, leftBehind, rtt];
    if (best === undefined || compareRanks(rank, best.rank) < 0) {
      best = { box, path, lots, usable, rank };
    }
    return best.box.free;
  });
  return best;
}

function bestGroup(view: DemandView, host: HostEntry): Unit | undefined {
  const { gpus } = view.demand;
  let best: Unit | undefined;
  visitBoxes(view, host, gpus, (box, path) => {
    visitGroups(box.lots, (first, end) => {
      const free = freeOf(box.lots, first, end);
      if (free < gpus || (best !== undefined && free > (best.rank[0] ?? 0))) return;
      const usable = view.rank(box.lots, first, end);
      if (usable < gpus) return;
      const rank = [free, box.free, rttRank(host.paths.rttNs[path] ?? 0)];
      if (best === undefined || compareRanks(rank, best.rank) < 0) {
        best = { box, path, lots: box.lots.slice(first, end), usable, rank };
      }
    });
    // While no group is used up, one in a box with more free may fit better.
    return best !== undefined && best.rank[0] === gpus ? best.box.free : Infinity;
  });
  return best;
}

/**
 * The fewest boxes that have enough together come first: the largest ones, until what is missing fits
 * into one more, and that the best for it. Others follow, in case the slots' windows need them.
 */
function severalUnits(view: DemandView, host: HostEntry): Unit[] {
  const units: Unit[] = [];
  visitBoxes(view, host, 1, (box, path) => {
    const { lots } = box;
    const usable = view.rank(lots);
    const rank = [-usable, box.free, rttRank(host.paths.rttNs[path] ?? 0)];
    if (usable > 0) units.push({ box, path, lots, usable, rank });
    return Infinity;
  });
  units.sort((a, b) => compareRanks(a.rank, b.rank));
  let missing = view.demand.gpus;
  let whole = 0;
  for (const unit of units) {
    if (unit.usable >= missing) break;
    missing -= unit.usable;
    whole++;
  }
  let enough = whole;
  while ((units[enough]?.usable ?? 0) >= missing) enough++;
  const last = units.slice(whole, enough).map((unit) => {
    const { leftBehind } = takingOrder(view, unit.lots, missing);
    return { ...unit, rank: [unit.box.free, leftBehind, unit.rank[2] ?? 0] };
  });
  last.sort((a, b) => compareRanks(a.rank, b.rank));
  return [...units.slice(0, whole), ...last, ...units.slice(enough)];
}

/** As many as are asked for, unit by unit: those for which the host's slots have room. */
function take(view: DemandView, units: readonly Unit[]): Taken[] {
  const { gpus } = view.demand;
  const matching = new SlotMatching();
  const taken: Taken[] = [];
  for (const unit of units) {
    if (taken.length === gpus) break;
    const { lots } = takingOrder(view, unit.lots, gpus - taken.length);
    for (const lot of lots) {
      if (!view.accepts(lot)) continue;
      const { shape } = view.classView(lot.nodeClass);
      for (const node of unit.box.nodes) {
        if (taken.length === gpus) return taken;
        if (node.lot !== lot || node.state !== 'free') continue;
        if (!matching.add(shape)) break;
        taken.push({ unit, node });
      }
    }
  }
  return taken;
}

function picks(view: DemandView, host: HostEntry, taken: readonly Taken[]): Pick[] {
  const shapes = taken.map(({ node }) => view.classView(node.lot.nodeClass).shape);
  const positions = assignSlots(shapes);
  return taken.map(({ unit, node }, index) => ({
    box: unit.box.id,
    slot: node.facts.slot,
    uuid: node.facts.uuid,
    model: node.facts.model,
    hostSlot: view.slots[positions[index] ?? -1]?.slot ?? -1,
    path: host.paths.names[unit.path] ?? '',
    rttNs: host.paths.rttNs[unit.path] ?? 0,
  }));
}

/** Ranks are of one length; what was not measured is Infinity and equals its like. */
function compareRanks(a: readonly number[], b: readonly number[]): number {
  for (const [index, value] of a.entries()) {
    const other = b[index] ?? 0;
    if (value !== other) return value < other ? -1 : 1;
  }
  return 0;
}
