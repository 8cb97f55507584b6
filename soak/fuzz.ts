/**
 * Mutated TLPs and frames against the decoders and live sessions, ten million by default.
 *
 *     npm run soak -- fuzz [--count 10000000] [--seed 1] [--only tlps|frames]
 *
 * Stops at the first fault, which names its seed; `--seed N --count 1` with `--only` replays the batch.
 */
import { parseArgs } from 'node:util';
import { fuzzFrames } from '#testkit/frame-fuzz';
import { fuzzTlps } from '#testkit/tlp-fuzz';

const BATCH = 20_000;
const PROGRESS_MS = 5000;

const { values: options } = parseArgs({
  options: {
    count: { type: 'string', default: '10000000' },
    seed: { type: 'string', default: '1' },
    only: { type: 'string' },
  },
});
const count = Number(options.count);
const firstSeed = Number(options.seed);
if (!Number.isSafeInteger(count) || count < 1 || !Number.isSafeInteger(firstSeed)) {
  console.error('fuzz: --count and --seed take whole numbers');
  process.exit(2);
}
if (options.only !== undefined && options.only !== 'tlps' && options.only !== 'frames') {
  console.error('fuzz: --only takes tlps or frames');
  process.exit(2);
}

const totals = { tlps: 0, frames: 0, accepted: 0, sessionsEnded: 0, delivered: 0 };
const start = Date.now();
let reported = start;
const batches = Math.ceil(count / BATCH);
for (let batch = 0; batch < batches; batch++) {
  const seed = firstSeed + batch;
  const frames = options.only === undefined ? batch % 2 === 1 : options.only === 'frames';
  try {
    if (frames) {
      const result = fuzzFrames(seed, BATCH);
      totals.frames += result.frames;
      totals.accepted += result.accepted;
      totals.sessionsEnded += result.sessionsEnded;
      totals.delivered += result.delivered;
    } else {
      const result = fuzzTlps(seed, BATCH);
      totals.tlps += result.tlps;
      totals.accepted += result.accepted;
    }
  } catch (error) {
    console.error(error);
    const kind = frames ? 'frames' : 'tlps';
    console.error(
      `seed ${seed} failed; npm run soak -- fuzz --only ${kind} --seed ${seed} --count 1`,
    );
    process.exit(1);
  }
  if (Date.now() - reported >= PROGRESS_MS) {
    reported = Date.now();
    const seconds = (reported - start) / 1000;
    const done = totals.tlps + totals.frames;
    console.error(
      `${done} of ${batches * BATCH}, ${seconds.toFixed(0)} s, ${Math.round(done / seconds)} a second`,
    );
  }
}
console.log(
  `${totals.tlps} TLPs and ${totals.frames} frames mutated, ${totals.accepted} accepted, ` +
    `${totals.delivered} TLPs delivered, ${totals.sessionsEnded} sessions ended: no fault, ` +
    `${((Date.now() - start) / 1000).toFixed(0)} s`,
);
