/**
 * Virtual clusters, one for each seed: processes crash and restart at any step, connections are cut, slow
 * and half-open, proxies lie or come back emptied, stores are set back. None of the invariants 1, 2, 4, 5,
 * 6a and 8 of the design is ever violated, and everything asked for reaches its goal or a stated failure.
 */
import { expect } from 'vitest';
import { testSeeds } from '../campaign/campaign-tests.ts';
import { CLUSTERS } from './cluster-world.ts';

/** What is printed of what happened; `npm run soak -- cluster` prints all. */
const TOLD = [
  'bind done',
  'bind refused',
  'unbind done',
  'attaching>attached',
  'commits',
  'agents killed',
  'links cut',
  'sessions ended',
  'stores restored',
] as const;

export function testClusters(first: number, last: number): void {
  testSeeds(CLUSTERS, first, last, {
    judge: (counts, seeds) => {
      for (const name of ['bind done', 'unbind done', 'attaching>attached', 'scrubbing>free']) {
        expect(counts.of(name), name).toBeGreaterThan(seeds);
      }
      for (const name of ['agents killed', 'links cut', 'bind refused', 'retried calls']) {
        expect(counts.of(name), name).toBeGreaterThan(seeds / 2);
      }
      for (const name of ['disk full', 'stores restored', 'clock jumps', 'GPU node gone']) {
        expect(counts.of(name), name).toBeGreaterThan(seeds / 20);
      }
    },
    told: (counts) => Object.fromEntries(TOLD.map((name) => [name, counts.of(name)])),
  });
}
