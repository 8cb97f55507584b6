/** Feasible, rank, plan: who gets which GPU nodes. */
import type { Demand, Plan, Refusal } from './demand.ts';
import type { PoolIndex } from './pool-index.ts';

/**
 * A complete plan, or why there is none. Pure: the same facts and demand give the same answer, in
 * whatever order the facts came. Refuses only when no set of GPU nodes satisfies the demand. Throws
 * the error of `checkDemand`.
 */
export function plan(_index: PoolIndex, _demand: Demand): Plan | Refusal {
  throw new Error('not yet');
}
