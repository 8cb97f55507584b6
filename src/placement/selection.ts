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

const NONE: ReadonlySet<BoxEntry> = new Set();

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
  const { nvlink, gpus } = view.demand;
  return nvlink ? bestGroup(view, host) : bestBox(view, host, gpus, NONE);
}

function bestBox(
  view: DemandView,
  host: HostEntry,
  count: number,
  except: ReadonlySet<BoxEntry>,
): Unit | undefined {
  let best: Unit | undefined;
  visitBoxes(view, host, count, (box, path) => {
    const rtt = rttRank(host.paths.rttNs[path] ?? 0);
    const [bestFree = Infinity, bestLeft = Infinity, bestRtt = Infinity] = best?.rank ?? [];
    // Most of those with as few free end here: what follows costs more.
    if (box.free === bestFree && bestLeft === 0 && rtt >= bestRtt) return bestFree;
    if (except.has(box)) return bestFree;
    const { lots } = box;
    const usable = view.rank(lots);
    if (usable < count) return bestFree;
    const { leftBehind } = takingOrder(view, lots, count);
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
 * The fewest boxes that have enough together: the largest ones, until what is missing fits into one
 * more, and that the best for it. Others follow, in case the slots' windows need them. Boxes with few
 * free GPU nodes are not looked at unless they are needed.
 */
function* severalUnits(view: DemandView, host: HostEntry): Iterable<Unit> {
  const { gpus } = view.demand;
  const pathsByFree: number[][] = [];
  let usable = 0;
  visitBoxes(view, host, 1, (box, path) => {
    (pathsByFree[box.free] ??= []).push(path);
    if (usable < gpus) usable += view.rank(box.lots);
    return Infinity;
  });
  if (usable < gpus) return;
  const unitsByUsable: Unit[][] = [];
  const given = new Set<BoxEntry>();
  let missing = gpus;
  for (let free = pathsByFree.length - 1; free > 0; free--) {
    for (const path of pathsByFree[free] ?? []) {
      const unit = unitAt(view, host, path);
      (unitsByUsable[unit.usable] ??= []).push(unit);
    }
    // Whoever has so many usable ones has at least so many free, and was looked at.
    const units = unitsByUsable[free] ?? [];
    units.sort((a, b) => compareRanks(a.rank, b.rank));
    for (const unit of units) {
      if (free >= missing && missing > 0) {
        const last = bestBox(view, host, missing, given);
        missing = 0;
        if (last !== undefined) {
          given.add(last.box);
          yield last;
        }
      }
      if (given.has(unit.box)) continue;
      given.add(unit.box);
      missing -= free;
      yield unit;
    }
  }
}

function unitAt(view: DemandView, { paths }: HostEntry, path: number): Unit {
  const box = paths.boxAt(path);
  const { lots } = box;
  const rank = [box.free, rttRank(paths.rttNs[path] ?? 0), path];
  return { box, path, lots, usable: view.rank(lots), rank };
}

/** As many as are asked for, unit by unit: those for which the host's slots have room. */
function take(view: DemandView, units: Iterable<Unit>): Taken[] {
  const { gpus } = view.demand;
  const matching = new SlotMatching();
  const taken: Taken[] = [];
  for (const unit of units) {
    const { lots } = takingOrder(view, unit.lots, gpus - taken.length);
    for (const lot of lots) {
      if (!view.accepts(lot)) continue;
      const { shape } = view.classView(lot.nodeClass);
      for (const node of unit.box.nodes) {
        if (node.lot !== lot || node.state !== 'free') continue;
        if (!matching.add(shape)) break;
        taken.push({ unit, node });
        if (taken.length === gpus) return taken;
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
  for (let at = 0; at < a.length; at++) {
    const one = a[at] ?? 0;
    const other = b[at] ?? 0;
    if (one !== other) return one < other ? -1 : 1;
  }
  return 0;
}
