/**
 * A box in the index: its GPU nodes, and how many of each sort are free.
 *
 * `PoolIndex` owns every entry and is the only one to change them. A `NodeClass` is shared by all
 * boxes; a `Lot` belongs to one box.
 */
import type { BarNeeds } from './bar-needs.ts';
import type { NodeFacts } from './facts.ts';

export type BoxKind = 'pcie' | 'nvswitch';
export type NodeState = NodeFacts['state'];

/** GPU nodes that no demand tells apart, but for the place they are in. */
export interface NodeClass {
  readonly key: string;
  /** Small, and given out anew once the class is gone. */
  readonly number: number;
  readonly model: string;
  readonly memoryBytes: number;
  readonly needs: BarNeeds;
  /** Of any state, in the whole pool. */
  nodes: number;
  /** Free ones in reachable boxes. */
  readonly free: Record<BoxKind, number>;
}

/** The GPU nodes of one class in one NVLink group ('' for none) of one box. */
export interface Lot {
  readonly nodeClass: NodeClass;
  readonly group: string;
  nodes: number;
  free: number;
}

export interface NodeEntry {
  readonly facts: NodeFacts;
  /** In place of that in `facts`. */
  state: NodeState;
  readonly lot: Lot;
}

export interface BoxEntry {
  readonly id: string;
  /** Its place in the columns of `BoxTable`; given out anew once the box is forgotten. */
  readonly number: number;
  /** False while it is known by hosts' paths alone; then it has no GPU nodes. */
  known: boolean;
  kind: BoxKind;
  reachable: boolean;
  /** Ascending by slot. */
  readonly nodes: NodeEntry[];
  /** By group, then the smaller memory first: those of a group are neighbours. */
  readonly lots: Lot[];
  /** Free GPU nodes, whether or not the box is reachable. */
  free: number;
  /** Hosts' paths that lead here. */
  paths: number;
}

export function newBox(id: string, number: number): BoxEntry {
  return {
    id,
    number,
    known: false,
    kind: 'pcie',
    reachable: false,
    nodes: [],
    lots: [],
    free: 0,
    paths: 0,
  };
}

/** Where the slot's node is in `box.nodes`, or as −1 − position where it would be. */
export function findNode(box: BoxEntry, slot: number): number {
  let low = 0;
  let high = box.nodes.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((box.nodes[middle]?.facts.slot ?? 0) < slot) low = middle + 1;
    else high = middle;
  }
  return box.nodes[low]?.facts.slot === slot ? low : -1 - low;
}

export function nodeAt(box: BoxEntry, slot: number): NodeEntry | undefined {
  return box.nodes[findNode(box, slot)];
}

/** The box's lot of this class and group, made when there is none. */
export function lotOf(box: BoxEntry, nodeClass: NodeClass, group: string): Lot {
  let index = 0;
  for (const lot of box.lots) {
    if (lot.nodeClass === nodeClass && lot.group === group) return lot;
    if (precedes(lot, nodeClass, group)) index++;
  }
  const lot: Lot = { nodeClass, group, nodes: 0, free: 0 };
  box.lots.splice(index, 0, lot);
  return lot;
}

function precedes(lot: Lot, nodeClass: NodeClass, group: string): boolean {
  if (lot.group !== group) return lot.group < group;
  if (lot.nodeClass.memoryBytes !== nodeClass.memoryBytes) {
    return lot.nodeClass.memoryBytes < nodeClass.memoryBytes;
  }
  return lot.nodeClass.key < nodeClass.key;
}
