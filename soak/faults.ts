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
import { parseArgs } from 'node:util';
import { Campaign } from '#testkit/faults/campaign';
import { FaultWorld } from '#testkit/faults/fault-world';

const PROGRESS_MS = 5000;

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
  console.error(`faults: --seeds takes a number or a range such as 1..20000, not ${options.seeds}`);
  process.exit(2);
}

if (options.events) {
  const world = new FaultWorld(first);
  world.oracle.onEvent = (nowNs, text) => console.log(`${(nowNs / 1e9).toFixed(6)} ${text}`);
  const { violation, trace } = world.run();
  console.log(violation === undefined ? `all well, trace ${trace}` : violation);
  process.exit(violation === undefined ? 0 : 1);
}

const campaign = new Campaign();
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
console.log(
  `${seeds} worlds, ${repeated} of them twice, ${(virtualNs / 3.6e12).toFixed(1)} hours of virtual ` +
    `time: ${failed.length} failed`,
);
for (const [name, count] of Object.entries(counts)) console.log(`  ${name.padEnd(14)} ${count}`);
process.exitCode = failed.length === 0 ? 0 : 1;
