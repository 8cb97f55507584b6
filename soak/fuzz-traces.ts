/**
 * Mutated traces of every format against their readers and the model, in workers with a heap of 256 MB; 20,000 files
 * by default.
 *
 *     npm run soak -- fuzz-traces [--count 20000] [--seed 1] [--workers 2]
 *
 * Stops at the first finding, which names its seed; `--seed N --count 1 --workers 1` replays it.
 */
import { parseArgs } from 'node:util';
import { fuzzInWorkers } from '#testkit/trace-fuzz-pool';

const PROGRESS_MS = 5000;

const { values: options } = parseArgs({
  options: {
    count: { type: 'string', default: '20000' },
    seed: { type: 'string', default: '1' },
    workers: { type: 'string', default: '2' },
  },
});
const count = Number(options.count);
const firstSeed = Number(options.seed);
const workers = Number(options.workers);
if (![count, workers].every((value) => Number.isSafeInteger(value) && value >= 1)) {
  console.error('fuzz-traces: --count and --workers take whole numbers from 1');
  process.exit(2);
}
if (!Number.isSafeInteger(firstSeed)) {
  console.error('fuzz-traces: --seed takes a whole number');
  process.exit(2);
}

const start = Date.now();
const seconds = (): number => (Date.now() - start) / 1000;
let reported = start;
try {
  const { files, read, refused, warned } = await fuzzInWorkers({
    worker: new URL(import.meta.resolve('#testkit/trace-fuzz-worker')),
    firstSeed,
    count,
    workers,
    onProgress: (done) => {
      if (Date.now() - reported < PROGRESS_MS) return;
      reported = Date.now();
      console.error(`${done} of ${count}, ${seconds().toFixed(0)} s`);
    },
  });
  const peakMb = process.resourceUsage().maxRSS / 1024;
  console.log(
    `${files} traces mutated, ${read} read (${warned} with warnings), ${refused} refused: no finding, ` +
      `${seconds().toFixed(0)} s, at most ${peakMb.toFixed(0)} MB in all`,
  );
} catch (error) {
  console.error(error);
  console.error('npm run soak -- fuzz-traces --workers 1 --count 1 --seed SEED replays it');
  process.exit(1);
}
