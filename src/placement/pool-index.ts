/** What placement plans on: the facts of the whole pool, with summaries that spare it a scan. */
import type { BoxFacts, HostFacts, HostSlotFacts, NodeFacts, PathFacts } from './facts.ts';

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
  /** Keeps the box's GPU nodes. Reachability is looked up here alone. */
  setBox(_facts: BoxFacts): void {
    throw new Error('not yet');
  }

  /** With its GPU nodes. Paths of hosts to it are kept, and count again when it is back. */
  removeBox(_id: string): void {
    throw new Error('not yet');
  }

  /** The box must have been set. */
  setNode(_facts: NodeFacts): void {
    throw new Error('not yet');
  }

  /** As `setNode` with another state; the quickest call there is. The node must have been set. */
  setNodeState(_box: string, _slot: number, _state: NodeFacts['state']): void {
    throw new Error('not yet');
  }

  removeNode(_box: string, _slot: number): void {
    throw new Error('not yet');
  }

  /** Replaces the host with all its slots and paths: what `facts` does not name is gone. */
  setHost(_facts: HostFacts): void {
    throw new Error('not yet');
  }

  /** Keeps slots and paths. The host must have been set. */
  setHostReachable(_host: string, _reachable: boolean): void {
    throw new Error('not yet');
  }

  removeHost(_id: string): void {
    throw new Error('not yet');
  }

  /** The host must have been set. */
  setHostSlot(_host: string, _facts: HostSlotFacts): void {
    throw new Error('not yet');
  }

  removeHostSlot(_host: string, _slot: number): void {
    throw new Error('not yet');
  }

  /** The host must have been set; the box need not be known (yet). Keyed by box and path. */
  setPath(_host: string, _facts: PathFacts): void {
    throw new Error('not yet');
  }

  removePath(_host: string, _box: string, _path: string): void {
    throw new Error('not yet');
  }
}
