/** The check before a plan is committed. */
import { nodeAt } from './box-entry.ts';
import type { Pick, Plan } from './demand.ts';
import { DemandView } from './demand-view.ts';
import type { PoolIndex } from './pool-index.ts';
import { fitsSlot } from './bar-needs.ts';

/**
 * Whether the plan is still a complete answer to its demand: every pick the same GPU node, free, in a
 * reachable box; the host reachable; its slots free and large enough; the paths up and within the
 * limit. Plans made of one view one after another: set the picks' states between them.
 */
export function holds(index: PoolIndex, plan: Plan): boolean {
  const { demand, picks } = plan;
  const view = new DemandView(index, demand);
  if (view.host?.reachable !== true || picks.length !== demand.gpus) return false;
  const [first] = picks;
  const group = first === undefined ? undefined : groupOf(index, first);
  return (
    picks.every((pick) => pickHolds(view, pick)) &&
    new Set(picks.map((pick) => pick.hostSlot)).size === picks.length &&
    new Set(picks.map((pick) => JSON.stringify([pick.box, pick.slot]))).size === picks.length &&
    (!(demand.sameBox || demand.nvlink) || picks.every((pick) => pick.box === first?.box)) &&
    (!demand.nvlink || (group !== '' && picks.every((pick) => groupOf(index, pick) === group)))
  );
}

function groupOf(index: PoolIndex, pick: Pick): string | undefined {
  const box = index.box(pick.box);
  return box === undefined ? undefined : nodeAt(box, pick.slot)?.lot.group;
}

function pickHolds(view: DemandView, pick: Pick): boolean {
  const box = view.index.box(pick.box);
  const node = box === undefined ? undefined : nodeAt(box, pick.slot);
  if (box === undefined || node === undefined || view.host === undefined) return false;
  if (node.facts.uuid !== pick.uuid || node.facts.model !== pick.model) return false;
  if (view.reason(box, node) !== undefined) return false;
  const slot = view.host.slots.find((one) => one.slot === pick.hostSlot);
  if (slot?.free !== true || !fitsSlot(node.lot.nodeClass.needs, slot)) return false;
  const { paths } = view.host;
  const path = paths.find(pick.box, pick.path);
  return path >= 0 && paths.up[path] === true && view.withinRtt(paths.rttNs[path] ?? 0);
}
