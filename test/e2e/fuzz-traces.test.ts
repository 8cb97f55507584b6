/** A slice of `npm run soak -- fuzz-traces`; here because workers run what is built. */
import { pathToFileURL } from 'node:url';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { fuzzInWorkers } from '#testkit/trace-fuzz-pool';

const WORKER = join(import.meta.dirname, '../../dist/testkit/trace-fuzz-worker.js');
const FILES = 500;

it(`${FILES} mutated traces are read, or refused in words`, async () => {
  const result = await fuzzInWorkers({
    worker: pathToFileURL(WORKER),
    firstSeed: 1,
    count: FILES,
    workers: 1,
  });
  expect(result.files).toBe(FILES);
  // Both happen often, so that neither side goes untried.
  expect(result.read).toBeGreaterThan(FILES / 5);
  expect(result.refused).toBeGreaterThan(FILES / 5);
});
