/** Why each GPU node would or would not do. */
import type { BoxEntry, NodeEntry } from './box-entry.ts';
import { freeOf } from './box-scan.ts';
import type { Candidate, Demand, Reason } from './demand.ts';
import { checkDemand } from './demand-check.ts';
import { DemandView, rttRank } from './demand-view.ts';
import type { PoolIndex } from './pool-index.ts';
import { bytesText, nodesText, quoted, timeText } from './words.ts';

/**
 * Every GPU node, by box and slot, with the first reason that rules it out; the counts of `plan`'s
 * refusal are those of this list. Made lazily: what changes meanwhile may be seen or not, and does no
 * harm. Throws the error of `checkDemand` at once, not at the first candidate.
 *
 * While the host has no free slot, its windows are judged as if all were free.
 */
export function explain(index: PoolIndex, demand: Demand): Iterable<Candidate> {
  const wrong = checkDemand(demand);
  if (wrong !== undefined) throw wrong;
  return candidates(index, demand);
}

function* candidates(index: PoolIndex, demand: Demand): Iterable<Candidate> {
  for (const box of index.boxes()) {
    // Anew for each box: the host and its slots may have changed since the last one was taken.
    const view = new DemandView(index, demand);
    for (const node of box.nodes.slice()) {
      const reason = view.reason(box, node) ?? fragmentation(view, box, node);
      const { slot, uuid } = node.facts;
      yield { box: box.id, slot, uuid, reason, message: messageOf(view, box, node, reason) };
    }
  }
}

/** How many may be taken together of where the GPU node is, when all must come from one place. */
function inOnePlace(view: DemandView, box: BoxEntry, node: NodeEntry): number {
  const { group } = node.lot;
  if (view.demand.nvlink && group === '') return 0;
  const lots = view.demand.nvlink ? box.lots.filter((lot) => lot.group === group) : box.lots;
  // With too few slots no place has enough; what is said here is said of the box.
  if (view.freeSlots < view.demand.gpus) return freeOf(lots.filter((lot) => view.accepts(lot)));
  return view.rank(lots);
}

function fragmentation(view: DemandView, box: BoxEntry, node: NodeEntry): Reason | undefined {
  const { gpus, sameBox, nvlink } = view.demand;
  return (sameBox || nvlink) && inOnePlace(view, box, node) < gpus ? 'fragmented' : undefined;
}

function messageOf(
  view: DemandView,
  box: BoxEntry,
  node: NodeEntry,
  reason: Reason | undefined,
): string {
  const { demand } = view;
  const { nodeClass, group } = node.lot;
  switch (reason) {
    case undefined:
      return 'would do';
    case 'gone':
      return 'it is no longer in its slot';
    case 'unreachable':
      return `the agent of box ${box.id} does not report`;
    case 'quarantined':
      return 'it is quarantined';
    case 'scrubbing':
      return 'it is being scrubbed';
    case 'bound':
      return 'it is bound';
    case 'model':
      return `its model is ${quoted(nodeClass.model)}, ${quoted(demand.model ?? '')} is asked for`;
    case 'memory':
      return `it has ${bytesText(nodeClass.memoryBytes)}, ${bytesText(demand.memoryBytes ?? 0)} is asked for`;
    case 'box-kind':
      return `box ${box.id} is of kind ${box.kind}, ${demand.boxKind} is asked for`;
    case 'no-path':
      return `host ${demand.host} has no path to box ${box.id}`;
    case 'path-down':
      return `every path of host ${demand.host} to box ${box.id} is down`;
    case 'round-trip':
      return roundTripText(view, box);
    case 'window':
      return `its BARs fit no ${view.freeSlots > 0 ? 'free ' : ''}virtual slot of host ${demand.host}`;
    case 'fragmented': {
      if (demand.nvlink && group === '') return 'it is in no NVLink group';
      const place = demand.nvlink
        ? `NVLink group ${quoted(group)} of box ${box.id}`
        : `box ${box.id}`;
      const there = inOnePlace(view, box, node);
      return `${place} has ${there} of the ${nodesText(demand.gpus)} asked for`;
    }
  }
}

function roundTripText({ host, demand }: DemandView, box: BoxEntry): string {
  const asked = `at most ${timeText(demand.maxRttNs ?? 0)} is asked for`;
  let lowest = Infinity;
  if (host !== undefined) {
    const { paths } = host;
    const first = paths.firstOf(box.id);
    const end = paths.endOfBox(first);
    for (let position = first; position < end; position++) {
      if (paths.up[position] === true) {
        lowest = Math.min(lowest, rttRank(paths.rttNs[position] ?? 0));
      }
    }
  }
  return lowest === Infinity
    ? `the round trip from host ${demand.host} was not measured, ${asked}`
    : `the round trip from host ${demand.host} is ${timeText(lowest)}, ${asked}`;
}
