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
import { parseArgs } from 'node:util';
import { TRANSITIONS } from '#manager/domain/transitions';
import { ClusterCampaign } from '#testkit/cluster/cluster-campaign';
import { ClusterWorld } from '#testkit/cluster/cluster-world';

const PROGRESS_MS = 5000;
/** With so many seeds every step must have been taken. */
const ENOUGH_SEEDS = 5000;

const { values: options } = parseArgs({
  options: {
    seeds: { type: 'string', default: '1..20000' },
    events: { type: 'boolean', default: false },
  },
});
const range = /^(\d+)(?:\.\.(\d+))?$/.exec(options.seeds);
const first = Number(range?.[1]);
const last = Number(range?.[2] ?? range?.[1]);
if (range === null || !Number.isSafeInteger(last) || first > last) {
  console.error(
    `cluster: --seeds takes a number or a range such as 1..20000, not ${options.seeds}`,
  );
  process.exit(2);
}

if (options.events) {
  const world = new ClusterWorld(first);
  world.oracle.onEvent = (nowNs, text) => console.log(`${(nowNs / 1e9).toFixed(6)} ${text}`);
  const { violation, trace } = world.run();
  console.log(violation === undefined ? `all well, trace ${trace}` : violation);
  process.exit(violation === undefined ? 0 : 1);
}

const campaign = new ClusterCampaign();
const start = Date.now();
let reported = start;
let told = 0;
for (let seed = first; seed <= last; seed++) {
  campaign.run(seed, first === last || undefined);
  for (; told < campaign.failed.length; told++) console.error(campaign.failed[told]?.message);
  if (Date.now() - reported < PROGRESS_MS) continue;
  reported = Date.now();
  const rate = campaign.seeds / ((reported - start) / 1000);
  console.log(
    `seed ${seed} of ${last}, ${rate.toFixed(1)} a second, ${campaign.failed.length} failed`,
  );
}

const { counts, failed, seeds, repeated, virtualNs } = campaign;
const seconds = (Date.now() - start) / 1000;
console.log(
  `${seeds} clusters, ${repeated} of them twice, ${(seeds / seconds).toFixed(1)} a second, ` +
    `${(virtualNs / 3.6e12).toFixed(1)} hours of virtual time: ${failed.length} failed`,
);
for (const [name, count] of counts.entries()) console.log(`  ${name.padEnd(40)} ${count}`);
const missing = TRANSITIONS.filter(({ name }) => counts.of(name) === 0);
console.log(`${TRANSITIONS.length - missing.length} of ${TRANSITIONS.length} steps were taken`);
for (const { name } of missing) console.log(`  never taken: ${name}`);
const isIncomplete = seeds >= ENOUGH_SEEDS && missing.length > 0;
process.exitCode = failed.length === 0 && !isIncomplete ? 0 : 1;
