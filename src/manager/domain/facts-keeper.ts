/**
 * Keeps the placement index true: what a slot is to placement follows from its binding and from what
 * was reported, and is worked out anew for each slot that something has happened to.
 */
import type { NodeFacts, WindowFacts } from '#placement/facts';
import { PoolIndex } from '#placement/pool-index';
import type { GpuNodeReport } from '#proto/agent-messages';
import {
  type Box,
  type BoxSlot,
  type Host,
  type HostSlot,
  isReporting,
  type Path,
} from './inventory.ts';
import type { PoolFaults } from './pool-options.ts';

const NO_WINDOW: WindowFacts = { base: 1, limit: 0 };

export class FactsKeeper {
  readonly index = new PoolIndex();
  readonly #faults: PoolFaults;
  /** Of all reporting boxes: GPU nodes that can be planned. */
  gpusFree = 0;
  /** Present, of all boxes. */
  gpus = 0;

  constructor(faults: PoolFaults) {
    this.#faults = faults;
  }

  /** The box is new, or reports or has ceased to. Its slots count as they were told last. */
  box(box: Box, wasReporting: boolean): void {
    const reachable = isReporting(box);
    this.index.setBox({ id: box.id, kind: box.record.boxKind, reachable });
    if (reachable && !wasReporting) this.gpusFree += box.gpusFree;
    if (!reachable && wasReporting) this.gpusFree -= box.gpusFree;
  }

  /** Something happened to the slot. `isNewNode`: its GPU node is not the one told before. */
  boxSlot(slot: BoxSlot, isNewNode: boolean): void {
    const { box, record } = slot;
    if (record === undefined) return;
    const state = this.nodeState(slot);
    const before = slot.told;
    if (before === state && !isNewNode) return;
    slot.told = state;
    const gpus = Number(state !== 'gone') - Number(before !== undefined && before !== 'gone');
    const free = Number(state === 'free') - Number(before === 'free');
    box.gpus += gpus;
    box.gpusFree += free;
    this.gpus += gpus;
    if (isReporting(box)) this.gpusFree += free;
    if (before === undefined || isNewNode) {
      this.index.setNode(nodeFacts(slot, record.node, state));
    } else {
      this.index.setNodeState(box.id, slot.slot, state);
    }
  }

  /** As placement is to see it, whether or not the box is reachable. */
  nodeState({ box, slot, record, report, binding }: BoxSlot): NodeFacts['state'] {
    if (record === undefined || !record.present) return 'gone';
    if (record.quarantine !== '') return 'quarantined';
    if (binding !== undefined) return binding.record.state === 'scrubbing' ? 'scrubbing' : 'bound';
    if (this.#faults.noConfirmation === true) return 'free';
    const isConfirmed = box.session?.book.isConfirmed(slot) === true;
    const isUnused = report?.row === undefined && report?.state === 'unused';
    const isClean = report?.clean === true || this.#faults.skipsScrub === true;
    return isConfirmed && isUnused && isClean ? 'free' : 'scrubbing';
  }

  host(host: Host): void {
    this.index.setHost({ id: host.id, reachable: isReporting(host), slots: [], paths: [] });
  }

  hostReachable(host: Host): void {
    this.index.setHostReachable(host.id, isReporting(host));
  }

  hostSlot(slot: HostSlot): void {
    const { host, record, isSound, told } = slot;
    if (record === undefined) return;
    const free = this.isFree(slot);
    const nonPrefetchable = isSound ? record.nonPrefetchable : NO_WINDOW;
    const prefetchable = isSound ? record.prefetchable : NO_WINDOW;
    const isKnown =
      told?.free === free &&
      told.nonPrefetchable === nonPrefetchable &&
      told.prefetchable === prefetchable;
    if (isKnown) return;
    slot.told = { slot: slot.slot, free, nonPrefetchable, prefetchable };
    this.index.setHostSlot(host.id, slot.told);
  }

  isFree({ host, slot, report, binding, isSound }: HostSlot): boolean {
    if (binding !== undefined || report === undefined || report.row !== undefined) return false;
    return isSound && host.session?.book.isConfirmed(slot) === true;
  }

  path(host: Host, { record, up }: Path): void {
    this.index.setPath(host.id, { box: record.box, path: record.path, up, rttNs: record.rttNs });
  }
}

function nodeFacts(slot: BoxSlot, node: GpuNodeReport, state: NodeFacts['state']): NodeFacts {
  const { uuid, model, memoryBytes, nvlinkGroup, bars } = node;
  return { box: slot.box.id, slot: slot.slot, uuid, model, memoryBytes, nvlinkGroup, bars, state };
}
