/** Feasible, rank, plan: who gets which GPU nodes. */
import type { Demand, Plan, Refusal } from './demand.ts';
import { checkDemand } from './demand-check.ts';
import { DemandView } from './demand-view.ts';
import type { PoolIndex } from './pool-index.ts';
import { refuse } from './refusal.ts';
import { select } from './selection.ts';

/**
 * A complete plan, or why there is none. Pure: the same facts and demand give the same answer, in
 * whatever order the facts came. Refuses only when no set of GPU nodes satisfies the demand. Throws
 * the error of `checkDemand`.
 */
export function plan(index: PoolIndex, demand: Demand): Plan | Refusal {
  const wrong = checkDemand(demand);
  if (wrong !== undefined) throw wrong;
  const view = new DemandView(index, demand);
  const { host, freeSlots } = view;
  if (host === undefined || !host.reachable || freeSlots < demand.gpus) return refuse(view);
  const picks = view.poolHasEnough ? select(view, host) : undefined;
  return picks === undefined ? refuse(view) : { ok: true, demand, picks };
}
