/**
 * One demand put to one state of the index: which classes of GPU nodes would do, which path leads to
 * a box, how many of a box the host's free slots take. Made for one call and thrown away.
 */
import type { BarNeeds } from './bar-needs.ts';
import type { BoxEntry, Lot, NodeClass, NodeEntry } from './box-entry.ts';
import type { Demand, Reason } from './demand.ts';
import type { HostSlotFacts } from './facts.ts';
import type { HostEntry, HostPaths } from './host-entry.ts';
import type { PoolIndex } from './pool-index.ts';
import { type Shape, shapeOf, SlotMatching } from './slot-matching.ts';

/** What the demand says to a class; `undefined` means it would do. */
export interface ClassView {
  readonly reason: 'model' | 'memory' | undefined;
  /** Fits nowhere while there is a reason. */
  readonly shape: Shape;
}

export class DemandView {
  readonly index: PoolIndex;
  readonly demand: Demand;
  readonly host: HostEntry | undefined;
  /** Of the host. */
  readonly freeSlots: number;
  /** The host's free slots, or all while none is free; the smallest windows first. */
  readonly slots: readonly HostSlotFacts[];
  /** By the class's number. */
  readonly #classes: (ClassView | undefined)[] = [];
  readonly #shapes = new Map<string, Shape>();

  constructor(index: PoolIndex, demand: Demand) {
    this.index = index;
    this.demand = demand;
    this.host = index.host(demand.host);
    const slots = this.host?.slots ?? [];
    const free = slots.filter((slot) => slot.free);
    this.freeSlots = free.length;
    this.slots = free.length > 0 ? free : slots;
  }

  classView(nodeClass: NodeClass): ClassView {
    let view = this.#classes[nodeClass.number];
    if (view === undefined) {
      const reason = this.#classReason(nodeClass);
      const { needs } = nodeClass;
      view = { reason, shape: reason === undefined ? this.#shape(needs) : { needs, fitting: [] } };
      this.#classes[nodeClass.number] = view;
    }
    return view;
  }

  /** Whether the lot's GPU nodes would do but for their box, and fit a free slot each by itself. */
  accepts(lot: Lot): boolean {
    return this.classView(lot.nodeClass).shape.fitting.length > 0;
  }

  acceptsKind(box: BoxEntry): boolean {
    return this.demand.boxKind === undefined || this.demand.boxKind === box.kind;
  }

  /**
   * The best of the box's paths, which begin at `first`: up, with the lowest measured round trip, the
   * first name among equals. −1 when none is up.
   */
  bestPath(paths: HostPaths, first: number, end: number): number {
    let best = -1;
    let bestRank = Infinity;
    for (let position = first; position < end; position++) {
      if (paths.up[position] !== true) continue;
      const rank = rttRank(paths.rttNs[position] ?? 0);
      if (best < 0 || rank < bestRank) {
        best = position;
        bestRank = rank;
      }
    }
    return best;
  }

  withinRtt(rttNs: number): boolean {
    const { maxRttNs } = this.demand;
    return maxRttNs === undefined || (rttNs > 0 && rttNs <= maxRttNs);
  }

  /** How many free GPU nodes of these lots, `from` to `end`, the host's slots take at the same time. */
  rank(lots: readonly Lot[], from = 0, end = lots.length): number {
    let count = 0;
    let only: Shape | undefined;
    let mixed = false;
    for (let at = from; at < end; at++) {
      const lot = lots[at];
      if (lot === undefined || lot.free === 0) continue;
      const { shape } = this.classView(lot.nodeClass);
      if (shape.fitting.length === 0) continue;
      count += lot.free;
      only ??= shape;
      // Two shapes that every slot takes are as good as one.
      mixed ||= only !== shape && !(this.#fitsAll(only) && this.#fitsAll(shape));
    }
    if (!mixed) return Math.min(count, only?.fitting.length ?? 0);
    const matching = new SlotMatching();
    for (const lot of lots.slice(from, end)) this.addAll(matching, lot);
    return matching.size;
  }

  /** Adds as many of the lot's free GPU nodes as there are slots for. */
  addAll(matching: SlotMatching, lot: Lot): void {
    const { shape } = this.classView(lot.nodeClass);
    for (let left = lot.free; left > 0 && matching.add(shape); left--);
  }

  /** Whether the whole pool has enough, wherever they are. */
  get poolHasEnough(): boolean {
    const { boxKind, gpus } = this.demand;
    let count = 0;
    for (const nodeClass of this.index.classes()) {
      if (this.classView(nodeClass).shape.fitting.length === 0) continue;
      const { pcie, nvswitch } = nodeClass.free;
      count += boxKind === undefined ? pcie + nvswitch : nodeClass.free[boxKind];
      if (count >= gpus) return true;
    }
    return false;
  }

  #fitsAll(shape: Shape): boolean {
    return shape.fitting.length === this.slots.length;
  }

  /** The first reason that holds for the GPU node by itself; whether its box has enough is not asked. */
  reason(box: BoxEntry, node: NodeEntry): Reason | undefined {
    if (node.state === 'gone') return 'gone';
    if (!box.reachable) return 'unreachable';
    if (node.state !== 'free') return node.state;
    const view = this.classView(node.lot.nodeClass);
    if (view.reason !== undefined) return view.reason;
    if (!this.acceptsKind(box)) return 'box-kind';
    return this.pathReason(box) ?? (view.shape.fitting.length === 0 ? 'window' : undefined);
  }

  pathReason(box: BoxEntry): 'no-path' | 'path-down' | 'round-trip' | undefined {
    const paths = this.host?.paths;
    if (paths === undefined) return 'no-path';
    const first = paths.firstOf(box.id);
    if (paths.boxNumbers[first] !== box.number) return 'no-path';
    const best = this.bestPath(paths, first, paths.endOfBox(first));
    if (best < 0) return 'path-down';
    return this.withinRtt(paths.rttNs[best] ?? 0) ? undefined : 'round-trip';
  }

  #classReason(nodeClass: NodeClass): 'model' | 'memory' | undefined {
    const { model, memoryBytes } = this.demand;
    if (model !== undefined && model !== nodeClass.model) return 'model';
    return memoryBytes !== undefined && nodeClass.memoryBytes < memoryBytes ? 'memory' : undefined;
  }

  #shape(needs: BarNeeds): Shape {
    let shape = this.#shapes.get(needs.key);
    if (shape === undefined) {
      shape = shapeOf(needs, this.slots);
      this.#shapes.set(needs.key, shape);
    }
    return shape;
  }
}

/** What was not measured comes last. */
export function rttRank(rttNs: number): number {
  return rttNs > 0 ? rttNs : Infinity;
}
