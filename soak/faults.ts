/**
 * Fault worlds over many seeds: whole pools in virtual time in which connections are cut, frames
 * lost, duplicated and reordered and processes killed at any step, judged by the invariants 2, 3,
 * 6b, 6c, 7 and 8 of the design.
 *
 *     npm run soak -- faults [--seeds 1..20000] [--events]
 *
 * Goes on after a seed that fails, prints which invariant it violates, and ends with exit status 1.
 * `--events` shows the world of one seed event by event.
 */
import { FAULT_WORLDS } from '#testkit/faults/fault-world';
import { runCampaign } from './support/campaign.ts';

runCampaign(FAULT_WORLDS);
