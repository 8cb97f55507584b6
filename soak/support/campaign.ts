/** A campaign over the seeds asked for on the command line. */
import { parseArgs } from 'node:util';
import { Campaign, type Counts, violationText, type WorldKind } from '#testkit/campaign/campaign';
import { seedRange } from './seed-range.ts';

const PROGRESS_MS = 5000;

/**
 * Runs `--seeds A..B`, goes on after one that fails, prints each of those, progress and what happened how
 * often, and sets exit status 1 if any failed. `--events` prints the world of seed A event by event
 * instead, and ends the process, as do options that are wrong, with exit status 2.
 */
export function runCampaign<P, I extends string, C extends Counts<C>>(
  kind: WorldKind<P, I, C>,
): Campaign<P, I, C> {
  const { values: options } = parseArgs({
    options: {
      seeds: { type: 'string', default: '1..20000' },
      events: { type: 'boolean', default: false },
    },
  });
  const { first, last } = seedRange(kind.name, options.seeds);
  if (options.events) {
    const world = kind.newWorld(first);
    world.oracle.onEvent = (nowNs, text) => console.log(`${(nowNs / 1e9).toFixed(6)} ${text}`);
    const { violation, trace } = world.run();
    console.log(violation === undefined ? `all well, trace ${trace}` : violationText(violation));
    process.exit(violation === undefined ? 0 : 1);
  }

  const campaign = new Campaign(kind);
  const { counts, failed } = campaign;
  const start = Date.now();
  const rate = (): string => (campaign.seeds / ((Date.now() - start) / 1000)).toFixed(1);
  let reported = start;
  let told = 0;
  for (let seed = first; seed <= last; seed++) {
    campaign.run(seed, first === last || undefined);
    for (; told < failed.length; told++) console.error(failed[told]?.message);
    if (Date.now() - reported < PROGRESS_MS) continue;
    reported = Date.now();
    console.log(`seed ${seed} of ${last}, ${rate()} a second, ${failed.length} failed`);
  }

  const { seeds, repeated, virtualNs } = campaign;
  console.log(
    `${seeds} ${kind.worlds}, ${repeated} of them twice, ${rate()} a second, ` +
      `${(virtualNs / 3.6e12).toFixed(1)} hours of virtual time: ${failed.length} failed`,
  );
  for (const [name, count] of counts.entries()) console.log(`  ${name.padEnd(40)} ${count}`);
  if (failed.length > 0) process.exitCode = 1;
  return campaign;
}
