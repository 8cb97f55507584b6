/**
 * Random small workloads emulated, each compared with what must be: bytes, requests, tags, memory; and
 * run again, to the bit. `npm run soak -- emulate [COUNT [FIRST_SEED]]`, 1,000 from seed 0 if left out.
 */
import assert from 'node:assert/strict';
import { checkedRandomRun } from '#testkit/random-run';

const count = Number(process.argv[2] ?? 1000);
const first = Number(process.argv[3] ?? 0);
assert(
  Number.isSafeInteger(count) && Number.isSafeInteger(first),
  'COUNT and FIRST_SEED are whole numbers',
);
for (let seed = first; seed < first + count; seed += 1) {
  const run = checkedRandomRun(seed);
  assert.equal(JSON.stringify(checkedRandomRun(seed)), JSON.stringify(run), `seed ${seed} again`);
}
process.stdout.write(`${count} workloads from seed ${first} on: all as they must be\n`);
