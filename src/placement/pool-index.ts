/** What placement plans on: the facts of the whole pool, with summaries that spare it a scan. */
import { assertDefined } from '#base/assert';
import { barNeeds, type BarNeeds } from './bar-needs.ts';
import {
  type BoxEntry,
  findNode,
  lotOf,
  nodeAt,
  type NodeClass,
  type NodeEntry,
  type NodeState,
} from './box-entry.ts';
import { BoxTable } from './box-table.ts';
import type {
  BarFacts,
  BoxFacts,
  HostFacts,
  HostSlotFacts,
  NodeFacts,
  PathFacts,
} from './facts.ts';
import { type HostEntry, HostPaths, putSlot } from './host-entry.ts';

/** Under which of these a GPU node is out for every demand; free ones are counted by class. */
export const TALLIES = ['gone', 'unreachable', 'quarantined', 'scrubbing', 'bound'] as const;
export type Tally = (typeof TALLIES)[number];

/**
 * Kept true by the pool's owner, one call a change. Planning reads it and changes nothing; within one
 * turn of the owner it is an immutable view.
 *
 * `set…` inserts or replaces by key, `remove…` of what is not there does nothing. Facts handed over
 * must not be changed afterwards. What the index holds depends on the last call of each key alone,
 * never on the order of calls, so that an index kept up to date answers as one built afresh does.
 *
 * Cost of a call: what its fact touches (a box's nodes at most; `setHost` its slots and paths).
 */
export class PoolIndex {
  readonly #boxes = new BoxTable();
  readonly #hosts = new Map<string, HostEntry>();
  readonly #classes = new Map<string, NodeClass>();
  readonly #unusedClassNumbers: number[] = [];
  readonly #tallies: Record<Tally, number> = {
    gone: 0,
    unreachable: 0,
    quarantined: 0,
    scrubbing: 0,
    bound: 0,
  };
  #nodes = 0;

  /** Keeps the box's GPU nodes. Reachability is looked up here alone. */
  setBox(facts: BoxFacts): void {
    const box = this.#boxes.of(facts.id);
    for (const node of box.nodes) this.#count(box, node, -1);
    box.known = true;
    box.kind = facts.kind;
    box.reachable = facts.reachable;
    for (const node of box.nodes) this.#count(box, node, 1);
  }

  /** With its GPU nodes. Paths of hosts to it are kept, and count again when it is back. */
  removeBox(id: string): void {
    const box = this.#boxes.get(id);
    if (box === undefined) return;
    for (const node of box.nodes.slice()) this.#drop(box, node);
    box.known = false;
    box.kind = 'pcie';
    box.reachable = false;
    this.#forgetUnused(box);
  }

  /** The box must have been set. */
  setNode(facts: NodeFacts): void {
    const box = this.#knownBox(facts.box);
    const found = findNode(box, facts.slot);
    const old = box.nodes[found];
    const nodeClass = this.#classOf(facts.model, facts.memoryBytes, facts.bars);
    const lot = lotOf(box, nodeClass, facts.nvlinkGroup);
    const node: NodeEntry = { facts, state: facts.state, lot };
    nodeClass.nodes++;
    lot.nodes++;
    this.#nodes++;
    this.#count(box, node, 1);
    if (old !== undefined) {
      this.#drop(box, old);
      box.nodes.splice(found, 0, node);
    } else {
      box.nodes.splice(-1 - found, 0, node);
    }
  }

  /** As `setNode` with another state; the quickest call there is. The node must have been set. */
  setNodeState(boxId: string, slot: number, state: NodeState): void {
    const box = this.#knownBox(boxId);
    const node = assertDefined(
      nodeAt(box, slot),
      `slot ${slot} of box ${boxId} has no GPU node whose state could change`,
    );
    this.#count(box, node, -1);
    node.state = state;
    this.#count(box, node, 1);
  }

  removeNode(boxId: string, slot: number): void {
    const box = this.#boxes.get(boxId);
    const node = box === undefined ? undefined : nodeAt(box, slot);
    if (box !== undefined && node !== undefined) this.#drop(box, node);
  }

  /** Replaces the host with all its slots and paths: what `facts` does not name is gone. */
  setHost(facts: HostFacts): void {
    this.removeHost(facts.id);
    const host: HostEntry = {
      id: facts.id,
      reachable: facts.reachable,
      slots: [],
      paths: new HostPaths(this.#boxes),
    };
    this.#hosts.set(facts.id, host);
    for (const slot of facts.slots) putSlot(host, slot);
    // In their order each goes to the end: no insertion moves others.
    for (const path of [...facts.paths].sort(comparePaths)) this.#putPath(host, path);
  }

  /** Keeps slots and paths. The host must have been set. */
  setHostReachable(host: string, reachable: boolean): void {
    this.#knownHost(host).reachable = reachable;
  }

  removeHost(id: string): void {
    const host = this.#hosts.get(id);
    if (host === undefined) return;
    this.#hosts.delete(id);
    const { paths } = host;
    for (let at = 0; at < paths.size; at++) this.#leave(paths.boxAt(at));
  }

  /** The host must have been set. */
  setHostSlot(host: string, facts: HostSlotFacts): void {
    putSlot(this.#knownHost(host), facts);
  }

  removeHostSlot(hostId: string, slot: number): void {
    const host = this.#hosts.get(hostId);
    if (host !== undefined) host.slots = host.slots.filter((one) => one.slot !== slot);
  }

  /** The host must have been set; the box need not be known (yet). Keyed by box and path. */
  setPath(host: string, facts: PathFacts): void {
    this.#putPath(this.#knownHost(host), facts);
  }

  removePath(hostId: string, boxId: string, path: string): void {
    const paths = this.#hosts.get(hostId)?.paths;
    const position = paths?.find(boxId, path) ?? -1;
    if (paths === undefined || position < 0) return;
    const box = paths.boxAt(position);
    paths.removeAt(position);
    this.#leave(box);
  }

  /** Of any state. */
  get nodes(): number {
    return this.#nodes;
  }

  /** For planning, as are all below: to be read, and not kept beyond the turn. */
  host(id: string): HostEntry | undefined {
    return this.#hosts.get(id);
  }

  /** `undefined` for one that was not set. */
  box(id: string): BoxEntry | undefined {
    const box = this.#boxes.get(id);
    return box?.known === true ? box : undefined;
  }

  /** In the order of ids, all that were set. Sorts. */
  boxes(): BoxEntry[] {
    const known = [...this.#boxes.values()].filter((box) => box.known);
    return known.sort((a, b) => (a.id < b.id ? -1 : 1));
  }

  /** In no order. */
  classes(): IterableIterator<NodeClass> {
    return this.#classes.values();
  }

  tally(of: Tally): number {
    return this.#tallies[of];
  }

  #knownBox(id: string): BoxEntry {
    return assertDefined(this.box(id), `box ${id} was not set before what belongs to it`);
  }

  #knownHost(id: string): HostEntry {
    return assertDefined(this.host(id), `host ${id} was not set before what belongs to it`);
  }

  #classOf(model: string, memoryBytes: number, bars: readonly BarFacts[]): NodeClass {
    const needs: BarNeeds = barNeeds(bars);
    const key = JSON.stringify([model, memoryBytes, needs.key]);
    let nodeClass = this.#classes.get(key);
    if (nodeClass === undefined) {
      const number = this.#unusedClassNumbers.pop() ?? this.#classes.size;
      const free = { pcie: 0, nvswitch: 0 };
      nodeClass = { key, number, model, memoryBytes, needs, nodes: 0, free };
      this.#classes.set(key, nodeClass);
    }
    return nodeClass;
  }

  #putPath(host: HostEntry, { box: boxId, path, up, rttNs }: PathFacts): void {
    const box = this.#boxes.of(boxId);
    if (host.paths.set(box, path, up, rttNs)) box.paths++;
  }

  #leave(box: BoxEntry): void {
    box.paths--;
    this.#forgetUnused(box);
  }

  #forgetUnused(box: BoxEntry): void {
    if (!box.known && box.paths === 0) this.#boxes.delete(box);
  }

  #drop(box: BoxEntry, node: NodeEntry): void {
    this.#count(box, node, -1);
    this.#nodes--;
    box.nodes.splice(box.nodes.indexOf(node), 1);
    const { lot } = node;
    if (--lot.nodes === 0) box.lots.splice(box.lots.indexOf(lot), 1);
    if (--lot.nodeClass.nodes === 0) {
      this.#classes.delete(lot.nodeClass.key);
      this.#unusedClassNumbers.push(lot.nodeClass.number);
    }
  }

  #count(box: BoxEntry, { state, lot }: NodeEntry, by: 1 | -1): void {
    if (state === 'free') {
      box.free += by;
      lot.free += by;
      this.#boxes.updateOffer(box);
    }
    if (state === 'gone') this.#tallies.gone += by;
    else if (!box.reachable) this.#tallies.unreachable += by;
    else if (state === 'free') lot.nodeClass.free[box.kind] += by;
    else this.#tallies[state] += by;
  }
}

function comparePaths(a: PathFacts, b: PathFacts): number {
  if (a.box !== b.box) return a.box < b.box ? -1 : 1;
  return a.path < b.path ? -1 : a.path > b.path ? 1 : 0;
}
