/** Why each GPU node would or would not do. */
import type { Candidate, Demand } from './demand.ts';
import type { PoolIndex } from './pool-index.ts';

/**
 * Every GPU node, by box and slot, with the first reason that rules it out; the counts of `plan`'s
 * refusal are those of this list. Made lazily: what changes meanwhile may be seen or not, and does no
 * harm. Throws the error of `checkDemand` at once, not at the first candidate.
 */
export function explain(_index: PoolIndex, _demand: Demand): Iterable<Candidate> {
  throw new Error('not yet');
}
