/** The check before a plan is committed. */
import type { Plan } from './demand.ts';
import type { PoolIndex } from './pool-index.ts';

/**
 * Whether the plan is still a complete answer to its demand: every pick the same GPU node, free, in a
 * reachable box; the host reachable; its slots free and large enough; the paths up and within the
 * limit. Plans made of one view one after another: set the picks' states between them.
 */
export function holds(_index: PoolIndex, _plan: Plan): boolean {
  throw new Error('not yet');
}
