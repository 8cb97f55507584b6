/**
 * What QEMU sends a vfio-user server, and a server a client, recorded and mutated, against live sessions: a million
 * messages by default; or messages from stdin.
 *
 *     npm run soak -- fuzz-vfio-user [--count 1000000] [--seed 1] [--made-up]
 *     node dist-bench/soak/fuzz-vfio-user.js --stdin < MESSAGES
 *
 * Stops at the first fault, which names its seed; `--seed N --count 1` replays the batch. With `--made-up` the
 * messages are not recorded but of our own encoders. With `--stdin` the input is taken as messages one after
 * another, by their length fields, and the exit status says whether the process came through: what an outside
 * fuzzer needs. `npm run soak -- record-vfio-user` records the corpus anew.
 */
import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { fuzzVfioUser, giveVfioUserMessages } from '#testkit/vfio-user-fuzz';
import { fuzzRecorded } from '#testkit/vfio-user/recorded-fuzz';

const BATCH = 20_000;
const PROGRESS_MS = 5000;

const { values: options } = parseArgs({
  options: {
    count: { type: 'string', default: '1000000' },
    seed: { type: 'string', default: '1' },
    'made-up': { type: 'boolean', default: false },
    stdin: { type: 'boolean', default: false },
  },
});
const count = Number(options.count);
const firstSeed = Number(options.seed);
if (!Number.isSafeInteger(count) || count < 1 || !Number.isSafeInteger(firstSeed)) {
  console.error('fuzz-vfio-user: --count and --seed take whole numbers');
  process.exit(2);
}
if (options.stdin) {
  giveVfioUserMessages(readFileSync(0));
  process.exit(0);
}

/** A batch from a seed, by either fuzz. */
function fuzz(seed: number) {
  if (!options['made-up']) return fuzzRecorded(seed, BATCH);
  const { sessionsEnded: sessions, ...result } = fuzzVfioUser(seed, BATCH);
  return { ...result, sessions };
}

const totals = { messages: 0, accepted: 0, refused: 0, sessions: 0 };
const start = Date.now();
let reported = start;
for (let batch = 0; batch < Math.ceil(count / BATCH); batch++) {
  const seed = firstSeed + batch;
  try {
    const result = fuzz(seed);
    totals.messages += result.messages;
    totals.accepted += result.accepted;
    totals.refused += result.refused;
    totals.sessions += result.sessions;
  } catch (error) {
    console.error(error);
    const how = options['made-up'] ? ' --made-up' : '';
    const replay = `npm run soak -- fuzz-vfio-user${how} --seed ${seed} --count 1`;
    console.error(`seed ${seed} failed; ${replay}`);
    process.exit(1);
  }
  if (Date.now() - reported >= PROGRESS_MS) {
    reported = Date.now();
    const seconds = (reported - start) / 1000;
    const rate = Math.round(totals.messages / seconds);
    console.error(`${totals.messages} messages, ${seconds.toFixed(0)} s, ${rate} a second`);
  }
}
console.log(
  `${totals.messages} messages mutated, ${totals.accepted} answered, ${totals.refused} refused, ` +
    `${totals.sessions} sessions: no fault, ${((Date.now() - start) / 1000).toFixed(0)} s`,
);
