/**
 * The server-centric replay against the published results: every policy on every list, at 80 to
 * 130 % of GPU capacity arrived.
 *
 *     npm run soak -- simulate [--seeds 10] [--lists default,cpu100,gpushare40,gpuspec10]
 *
 * Ends with exit status 0 only if every mean is inside its band.
 */
import { parseArgs } from 'node:util';
import {
  compareWithPublished,
  hasOpenb,
  NO_OPENB,
  openbNodes,
  openbWorkload,
  PUBLISHED_LISTS,
  PUBLISHED_POLICIES,
  publishedRun,
} from '#testkit/openb';

const FIRST_SEED = 42;

const { values: options } = parseArgs({
  options: {
    seeds: { type: 'string', default: '10' },
    lists: { type: 'string', default: PUBLISHED_LISTS.join(',') },
  },
});
const count = Number(options.seeds);
const lists = options.lists.split(',');
const unknown = lists.find((list) => !(PUBLISHED_LISTS as readonly string[]).includes(list));
if (!Number.isSafeInteger(count) || count < 1 || unknown !== undefined) {
  console.error(`simulate: --seeds takes a whole number, --lists some of ${PUBLISHED_LISTS}`);
  process.exit(2);
}
if (!hasOpenb) {
  console.error(`simulate: ${NO_OPENB}`);
  process.exit(2);
}

const nodes = openbNodes();
let outside = 0;
let runs = 0;
const start = performance.now();
for (const list of lists) {
  const workload = openbWorkload(list);
  for (const policy of PUBLISHED_POLICIES) {
    const results = Array.from({ length: count }, (_, i) =>
      publishedRun(nodes, workload, policy, FIRST_SEED + i),
    );
    runs += count;
    for (const { arrivedPct, mean, publishedMean, bandPct } of compareWithPublished(
      list,
      policy,
      results,
    )) {
      const difference = mean - publishedMean;
      const inside = Math.abs(difference) <= bandPct;
      if (!inside) outside += 1;
      console.log(
        `${inside ? 'inside ' : 'OUTSIDE'} ${list} ${policy} at ${arrivedPct} %: ${mean.toFixed(2)}, ` +
          `published ${publishedMean.toFixed(2)}, difference ${difference.toFixed(2)}, band ${bandPct.toFixed(2)}`,
      );
    }
  }
}
const seconds = ((performance.now() - start) / 1000).toFixed(0);
console.log(`${runs} runs in ${seconds} s; ${outside} means outside their bands`);
process.exit(outside === 0 ? 0 : 1);
