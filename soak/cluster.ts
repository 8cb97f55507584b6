/**
 * Virtual clusters over many seeds: a manager, ten hosts and ten boxes in virtual time in which processes
 * crash at any step, streams and links are cut, slow or half-open, proxies lie or come back emptied and
 * stores are set back, judged by the invariants 1, 2, 4, 5, 6a and 8 of the design.
 *
 *     npm run soak -- cluster [--seeds 1..20000] [--events]
 *
 * Goes on after a seed that fails, prints which invariant it violates, and ends with exit status 1, also
 * when a step in the life of a binding was never taken. `--events` shows the cluster of one seed event by
 * event.
 */
import { TRANSITIONS } from '#manager/domain/transitions';
import { CLUSTERS } from '#testkit/cluster/cluster-world';
import { runCampaign } from './support/campaign.ts';

/** With so many seeds every step must have been taken. */
const ENOUGH_SEEDS = 5000;

const { counts, seeds } = runCampaign(CLUSTERS);
const missing = TRANSITIONS.filter(({ name }) => counts.of(name) === 0);
console.log(`${TRANSITIONS.length - missing.length} of ${TRANSITIONS.length} steps were taken`);
for (const { name } of missing) console.log(`  never taken: ${name}`);
if (seeds >= ENOUGH_SEEDS && missing.length > 0) process.exitCode = 1;
