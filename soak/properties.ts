/**
 * The property tests over other cases than those of `npm test`: once for every seed.
 *
 *     npm run soak -- properties [--seeds 2..20]
 *
 * Goes on after a seed that fails; fast-check prints the case. `DXPU_PROPERTY_SEED=N npx vitest run FILE`
 * runs one again.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { parseArgs } from 'node:util';
import { seedRange } from './support/seed-range.ts';

const { values: options } = parseArgs({ options: { seeds: { type: 'string', default: '2..20' } } });
const { first, last } = seedRange('properties', options.seeds);
const files = execFileSync(
  'git',
  ['grep', '-l', '#testkit/properties', '--', 'src/**.test.ts', 'test/**.test.ts'],
  {
    encoding: 'utf8',
  },
)
  .trim()
  .split('\n');
const failed: number[] = [];
for (let seed = first; seed <= last; seed++) {
  const { status } = spawnSync('npx', ['vitest', 'run', '--reporter=dot', ...files], {
    stdio: 'inherit',
    env: { ...process.env, DXPU_PROPERTY_SEED: String(seed) },
  });
  if (status !== 0) failed.push(seed);
  console.log(`seed ${seed} of ${last}: ${status === 0 ? 'all hold' : 'FAILED'}`);
}
console.log(
  `${last - first + 1} seeds, failed: ${failed.length === 0 ? 'none' : failed.join(', ')}`,
);
if (failed.length > 0) process.exitCode = 1;
